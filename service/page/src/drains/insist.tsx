/** A person lets one drain pass guards for a while: by typing its OSD and a reason; shown for as long as it holds. */
import { useState } from "preact/hooks";
import { insist } from "../act.ts";
import type { DrainWhole } from "../api/contract.ts";
import { clockOf, statement } from "../format.ts";
import { Acting, Question } from "../pieces.tsx";
import { adminOff } from "../state.ts";
import { insistableGuards } from "./insistable.ts";

const MINUTES = [15, 30, 60];

export function Insisting({ drain }: { drain: DrainWhole }) {
  const said = drain.insistence;
  if (!said) return null;
  return (
    <div class="banner insisting" role="status">
      <span>
        <b>
          {said.by} insists past {said.guards.join(", ")} until {clockOf(Date.parse(said.until))} UTC at most:
        </b>{" "}
        {statement(said.reason)} All other guards hold this drain as ever.
      </span>
    </div>
  );
}

export function Insist({ drain }: { drain: DrainWhole }) {
  const [asking, setAsking] = useState(false);
  const [chosen, setChosen] = useState<readonly string[]>([]);
  const [reason, setReason] = useState("");
  const [minutes, setMinutes] = useState(30);
  const guards = insistableGuards(drain);
  const typed = `osd.${drain.osds[0]}`;
  if (guards.length === 0) return null;
  const open = (): void => {
    setChosen([]);
    setReason("");
    setAsking(true);
  };
  return (
    <div class="buttons left">
      <Acting off={adminOff.value} onPress={open}>
        Insist
      </Acting>
      <span class="muted">lets this drain pass {guards.map((guard) => guard.code).join(", ")} for a while.</span>
      {asking && (
        <Question
          title={`Insist on the drain of ${typed}?`}
          yes={`Insist for ${minutes} minutes`}
          typed={typed}
          filled={chosen.length > 0 && reason.trim() !== ""}
          onYes={() => void insist(drain.id, chosen, reason.trim(), minutes, typed)}
          onClose={() => setAsking(false)}
        >
          <p>The guards that you name hold this drain no more in its present step, until the time is over. All others do. The audit keeps who insisted and why.</p>
          <fieldset class="choices">
            <legend>Past which guards</legend>
            {guards.map((guard) => (
              <label key={guard.code} class="check">
                <input
                  type="checkbox"
                  checked={chosen.includes(guard.code)}
                  onChange={() => setChosen(chosen.includes(guard.code) ? chosen.filter((code) => code !== guard.code) : [...chosen, guard.code])}
                />
                <span>
                  <b>{guard.code}</b> <span class="muted">{guard.sentence}</span>
                </span>
              </label>
            ))}
          </fieldset>
          <label class="typed">
            Why
            <input value={reason} maxLength={2000} onInput={(event) => setReason(event.currentTarget.value)} autocomplete="off" />
          </label>
          <label class="typed">
            For how many minutes
            <select value={String(minutes)} onChange={(event) => setMinutes(Number(event.currentTarget.value))}>
              {MINUTES.map((one) => (
                <option key={one} value={String(one)}>
                  {one}
                </option>
              ))}
            </select>
          </label>
        </Question>
      )}
    </div>
  );
}
