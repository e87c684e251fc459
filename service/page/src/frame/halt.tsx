/** The halt: its button stands in the header of every view. One click halts all drains without a question, since halting is
 * safe; lifting it asks. */
import { useState } from "preact/hooks";
import { haltAll, liftHalt } from "../act.ts";
import { Acting, Question } from "../pieces.tsx";
import { status } from "../state.ts";

/** Why a person has halted everything; null where nobody has. That the cluster does not answer is no person's halt. */
const haltedBecause = (): string | null => (status.value?.halt_passes ? null : (status.value?.halted ?? null));

export function HaltButton() {
  const [asking, setAsking] = useState(false);
  if (haltedBecause() === null) {
    return (
      <Acting kind="halt" onPress={() => void haltAll()}>
        Halt<span class="beside"> all drains</span>
      </Acting>
    );
  }
  return (
    <>
      <Acting kind="halt" onPress={() => setAsking(true)}>
        Lift<span class="beside"> the</span> halt
      </Acting>
      {asking && (
        <Question title="Lift the halt?" yes="Lift the halt" onYes={() => void liftHalt()} onClose={() => setAsking(false)}>
          <p>Drains that were running go on as soon as their guards pass. Nothing that waits for approval starts by this.</p>
        </Question>
      )}
    </>
  );
}

/** What the halt means, on every view while it stands. */
export function Halted() {
  const known = status.value;
  if (known?.halted == null) return null;
  return (
    <div class="banner halted" role="status">
      {known.halt_passes ? (
        <span>
          <b>The cluster does not answer, so nothing moves:</b> {known.halted}. Drains go on by themselves when it answers; what disks say is read and judged all the same.
        </span>
      ) : (
        <span>
          <b>All drains are halted:</b> {known.halted}. No command is sent to the cluster until a person lifts the halt.
        </span>
      )}
    </div>
  );
}
