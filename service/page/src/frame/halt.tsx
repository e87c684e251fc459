/** The halt: its button stands in the header of every view. One click halts all drains without a question, since halting is
 * safe; lifting it asks. */
import { useState } from "preact/hooks";
import { haltAll, liftHalt } from "../act.ts";
import { Acting, Modal, Question, WhyOff } from "../pieces.tsx";
import { go, route, withQuery } from "../route.ts";
import { session, status } from "../state.ts";

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

/** The dialog that a message links to, `?ask=halt`: to open it changes nothing, and only its button halts. Where reading needs
 * a name, the sign-in comes first and leads back here. */
export function HaltAsked() {
  if (route.value.query.get("ask") !== "halt" || session.value?.can_read === false) return null;
  const close = (): void => go(withQuery({ ask: null }), true);
  const why = haltedBecause();
  return (
    <Modal title={why === null ? "Halt all drains?" : "All drains are halted"} onClose={close}>
      <p>
        {why === null
          ? "No command is sent to the cluster until a person lifts the halt. Data that is moving arrives; forecasts and messages go on."
          : `${why}. The button in the header lifts the halt.`}
      </p>
      <div class="buttons">
        {why === null && (
          <Acting
            kind="primary"
            onPress={() => {
              close();
              void haltAll();
            }}
          >
            Halt them now
          </Acting>
        )}
        <button type="button" class="button plain" onClick={close}>
          {why === null ? "Change nothing" : "Close"}
        </button>
        {why === null && <WhyOff />}
      </div>
    </Modal>
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
