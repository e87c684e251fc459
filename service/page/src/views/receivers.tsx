/** The channels by which people get messages: route, deliveries, trouble, and a button that sends a test. */
import { useState } from "preact/hooks";
import { testReceiver } from "../act.ts";
import type { MessageReceiver } from "../api/contract.ts";
import { Acting, Loading, Refused } from "../pieces.tsx";
import { useResource } from "../resource.ts";

export function Receivers() {
  const found = useResource<{ items: MessageReceiver[] }>("receivers");
  return (
    <section aria-labelledby="receivers-head">
      <h2 id="receivers-head">Receivers</h2>
      <List found={found} />
    </section>
  );
}

function List({ found }: { found: { data: { items: MessageReceiver[] } | null; refused: string | null } }) {
  if (found.data === null) return found.refused ? <Refused sentence={found.refused} /> : <Loading lines={2} />;
  if (found.data.items.length === 0) return <p class="muted">The settings name no receiver, so nobody is notified.</p>;
  return (
    <ul class="alert-list">
      {found.data.items.map((one) => (
        <One receiver={one} key={one.name} />
      ))}
    </ul>
  );
}

function One({ receiver }: { receiver: MessageReceiver }) {
  const [sending, setSending] = useState(false);
  const route = [
    receiver.min_severity === "urgent" ? "what is urgent" : "notices, too",
    ...receiver.only_hosts.map((host) => `host ${host}`),
    ...receiver.only_racks.map((rack) => `rack ${rack}`),
  ];
  return (
    <li class="card">
      <div>
        <p>
          <b>{receiver.name}</b> <span class="muted">{route.join(", ")}</span>
        </p>
        <p class="muted">
          {receiver.sent} sent, {receiver.failed} failed since the start
        </p>
        {receiver.problem && <p role="alert">{receiver.problem}</p>}
        <Acting
          kind="link"
          off={sending ? "the test is under way" : null}
          onPress={() => {
            setSending(true);
            void testReceiver(receiver.name).then(() => setSending(false));
          }}
        >
          Send a test to {receiver.name}
        </Acting>
      </div>
    </li>
  );
}
