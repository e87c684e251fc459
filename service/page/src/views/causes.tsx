/** What a person has to do, at once or when there is time, one card a cause, and what nobody wants to hear of for a while. */
import { useState } from "preact/hooks";
import { liftSilence, silence } from "../act.ts";
import type { Cause, Silence } from "../api/contract.ts";
import { At, Acting, Loading, Modal, Refused, WhyOff } from "../pieces.tsx";
import { useResource } from "../resource.ts";
import { Shape } from "../shape.tsx";

const SHOWN = 6;
const SPANS: readonly { hours: number; said: string }[] = [
  { hours: 8, said: "8 hours" },
  { hours: 24, said: "a day" },
  { hours: 24 * 7, said: "a week" },
];

export function Causes() {
  const causes = useResource<{ items: Cause[] }>("causes");
  const silences = useResource<{ items: Silence[] }>("silences");
  if (causes.data === null) return causes.refused ? <Refused sentence={causes.refused} /> : <Loading lines={3} />;
  const standing = causes.data.items;
  return (
    <>
      {causes.refused && <Refused sentence={causes.refused} />}
      {standing.length === 0 ? (
        <div class="card empty">
          <p>Nothing stands: no disk and no part of predrain needs a person.</p>
        </div>
      ) : (
        <ul class="alert-list">
          {standing.map((cause) => (
            <One cause={cause} key={cause.key} />
          ))}
        </ul>
      )}
      {(standing.length > 0 || silences.data?.items.length) && <WhyOff />}
      <Silences standing={silences.data?.items ?? []} />
    </>
  );
}

function One({ cause }: { cause: Cause }) {
  const [asking, setAsking] = useState(false);
  const silenced = cause.points.every((point) => point.silence !== null);
  return (
    <li class="card">
      <Shape of={cause.severity === "urgent" ? "bad" : "warning"} size={16} />
      <div>
        <p>
          <b>
            <a href={cause.path}>{cause.title}</a>
          </b>{" "}
          <span class="muted">{silenced ? "silenced" : cause.severity === "urgent" ? "look now" : "can wait"}</span>
        </p>
        <ul class="points">
          {cause.points.slice(0, SHOWN).map((point) => (
            <li key={point.name}>
              {point.sentence}
              {point.silence && !silenced ? <span class="muted"> (silenced)</span> : null}
            </li>
          ))}
        </ul>
        {cause.points.length > SHOWN && <p class="muted">and {cause.points.length - SHOWN} more</p>}
        {cause.action && <p>{cause.action}</p>}
        {!silenced && (
          <Acting kind="link" onPress={() => setAsking(true)}>
            Silence
          </Acting>
        )}
        {asking && <Ask cause={cause} onClose={() => setAsking(false)} />}
      </div>
    </li>
  );
}

function Ask({ cause, onClose }: { cause: Cause; onClose: () => void }) {
  const [why, setWhy] = useState("");
  const [hours, setHours] = useState(SPANS[0]!.hours);
  return (
    <Modal title="Silence this cause?" onClose={onClose}>
      <p>{cause.title}. No message is sent about it until then; this page shows it, and drains go on.</p>
      <label class="typed">
        For how long
        <select value={hours} onChange={(event) => setHours(Number(event.currentTarget.value))}>
          {SPANS.map((span) => (
            <option value={span.hours} key={span.hours}>
              {span.said}
            </option>
          ))}
        </select>
      </label>
      <label class="typed">
        Reason of the silence
        <input value={why} maxLength={500} onInput={(event) => setWhy(event.currentTarget.value)} autocomplete="off" />
      </label>
      <div class="buttons">
        <button
          type="button"
          class="button primary"
          disabled={why.trim() === ""}
          onClick={() => {
            onClose();
            void silence(cause.key, hours, why.trim());
          }}
        >
          Silence it
        </button>
        <button type="button" class="button plain" onClick={onClose}>
          Leave it as it is
        </button>
      </div>
    </Modal>
  );
}

function Silences({ standing }: { standing: readonly Silence[] }) {
  if (standing.length === 0) return null;
  return (
    <section aria-labelledby="silences-head">
      <h2 id="silences-head">Silences</h2>
      <ul class="alert-list">
        {standing.map((one) => (
          <li class="card" key={one.id}>
            <div>
              <p>
                <b>{[one.cause, one.host, one.model, one.name].filter(Boolean).join(", ")}</b> until <At time={one.until} /> UTC
              </p>
              <p class="muted">
                {one.reason}, said by {one.by}
              </p>
              <Acting kind="link" onPress={() => void liftSilence(one.id)}>
                Lift
              </Acting>
            </div>
          </li>
        ))}
      </ul>
    </section>
  );
}
