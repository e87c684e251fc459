/** Self-tests of the disk and the light of its slot: what runs, what the drive's log says, and the buttons that ask for more. */
import { useState } from "preact/hooks";
import { askSelfTest, switchLight } from "../act.ts";
import type { DiskRequest, DiskRequests, SelfTests } from "../api/contract.ts";
import { count } from "../format.ts";
import { Acting, At, Question, Refused, WhyOff } from "../pieces.tsx";
import { useResource } from "../resource.ts";
import { minutes, progress, reasonsAgainst, refusalOf, VERBS } from "./selftests.ts";

const SHOWN_TESTS = 8;
const SHOWN_REQUESTS = 5;

export function SelfTestCard({ device }: { device: string }) {
  const { data, refused } = useResource<DiskRequests>(`devices/${encodeURIComponent(device)}/requests`);
  const [long, setLong] = useState(false);
  if (data === null) return refused ? <Refused sentence={refused} /> : null;
  const reasons = reasonsAgainst(data);
  const requests = [...data.open, ...data.ended].slice(0, SHOWN_REQUESTS);
  return (
    <section class="card selftests" aria-label="Self-tests and light">
      <div class="card-head">
        <h2>Self-tests and light</h2>
        {data.slot && <span class="muted small">enclosure slot: {data.slot}</span>}
      </div>
      <Tests tests={data.self_tests} />
      <div class="buttons left">
        <Acting off={refusalOf(data, "selftest-short")} onPress={() => void askSelfTest(device, "short")}>
          Short test
        </Acting>
        <Acting off={refusalOf(data, "selftest-long")} onPress={() => setLong(true)}>
          Long test
        </Acting>
        <Acting off={refusalOf(data, "locate-on")} onPress={() => void switchLight(device, true)}>
          Light on
        </Acting>
        <Acting off={refusalOf(data, "locate-off")} onPress={() => void switchLight(device, false)}>
          Light off
        </Acting>
        <WhyOff />
      </div>
      {reasons.length > 0 && (
        <ul class="muted small" aria-label="Reasons against">
          {reasons.map((one) => (
            <li key={one}>{one}</li>
          ))}
        </ul>
      )}
      {requests.length > 0 && (
        <ul class="log" aria-label="Requests">
          {requests.map((one) => (
            <Request key={one.id} one={one} />
          ))}
        </ul>
      )}
      {long && (
        <Question title="Start a long self-test?" yes="Start the long test" onYes={() => void askSelfTest(device, "long")} onClose={() => setLong(false)}>
          <p>
            The drive reads its whole surface, which takes {minutes(data.self_tests?.long_minutes ?? null)}. It serves its clients meanwhile, more slowly. A halt, or a drain of the
            disk, stops the test.
          </p>
        </Question>
      )}
    </section>
  );
}

function Tests({ tests }: { tests: SelfTests | null }) {
  if (tests === null) return <p class="muted">The collector of its host has not sent the drive's log of self-tests yet.</p>;
  return (
    <>
      {tests.running && (
        <p>
          <b>{progress(tests.running)}</b> <span class="muted">Read at <At time={tests.read_at} /> UTC.</span>
        </p>
      )}
      {tests.log.length === 0 ? (
        !tests.running && <p class="muted">The drive's log has no self-test.</p>
      ) : (
        <div class="table-frame">
          <table class="table">
            <thead>
              <tr>
                <th>Test</th>
                <th class="number">At hour</th>
                <th>Result</th>
                <th class="number">First bad block</th>
              </tr>
            </thead>
            <tbody>
              {tests.log.slice(0, SHOWN_TESTS).map((one, at) => (
                <tr key={at}>
                  <td>{one.kind}</td>
                  <td class="number">{one.power_on_hours === null ? "" : count(one.power_on_hours)}</td>
                  <td class={one.failed ? "text-bad" : ""}>{one.sentence}</td>
                  <td class="number">{one.first_error_lba === null ? "" : count(one.first_error_lba)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </>
  );
}

function Request({ one }: { one: DiskRequest }) {
  return (
    <li>
      <At time={one.issued_at} />{" "}
      <span>
        {VERBS[one.verb]}, by {one.by}: {one.sentence} {one.slot && `Slot: ${one.slot}.`}
      </span>
    </li>
  );
}
