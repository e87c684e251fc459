/** The stop: one click holds every drain and needs no question, since stopping is safe; lifting it asks. */
import { useState } from "preact/hooks";
import { holdAll, liftHold } from "../act.ts";
import { Acting, Question, WhyOff } from "../pieces.tsx";
import { status } from "../state.ts";

export function HoldAll({ kind = "plain" }: { kind?: "plain" | "link" }) {
  if (!status.value || status.value.halted !== null) return null;
  return (
    <Acting kind={kind} onPress={() => void holdAll()}>
      Hold all drains
    </Acting>
  );
}

export function Halted() {
  const [asking, setAsking] = useState(false);
  const why = status.value?.halted ?? null;
  if (why === null) return null;
  if (status.value?.halt_passes) {
    return (
      <div class="banner halted" role="status">
        <span>
          <b>The cluster does not answer, so nothing moves:</b> {why}. Drains go on by themselves when it answers; what disks say is read and judged all the same.
        </span>
      </div>
    );
  }
  return (
    <div class="banner halted" role="status">
      <span>
        <b>All drains are held:</b> {why}. No command is sent to the cluster until a person lifts this.
      </span>
      <Acting onPress={() => setAsking(true)}>Lift the hold</Acting>
      <WhyOff />
      {asking && (
        <Question title="Lift the hold?" yes="Lift the hold" onYes={() => void liftHold()} onClose={() => setAsking(false)}>
          <p>Drains that were running go on as soon as their guards pass. Nothing that waits for approval starts by this.</p>
        </Question>
      )}
    </div>
  );
}
