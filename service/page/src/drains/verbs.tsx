/** What a person can tell a running drain: pause asks nothing, resume and cancel ask once, each with its consequence. */
import { useState } from "preact/hooks";
import { drainVerb } from "../act.ts";
import type { DrainWhole } from "../api/contract.ts";
import { about, percent, plural, sentence, tib } from "../format.ts";
import { Acting, Question, WhyOff } from "../pieces.tsx";
import { osdByNumber } from "../state.ts";
import { CALLED, targetOf } from "./naming.ts";

const MOVING = new Set(["approved", "preparing", "draining", "holding"]);
const CANCELLABLE = new Set([...MOVING, "paused", "drained", "verified", "failed"]);

export function Verbs({ drain }: { drain: DrainWhole }) {
  const [asking, setAsking] = useState<"resume" | "cancel" | null>(null);
  const target = targetOf(drain);
  const flight = drain.progress.in_flight;
  return (
    <div class="buttons">
      <WhyOff />
      {MOVING.has(drain.state) && (
        <Acting
          onPress={() => void drainVerb(drain.id, "pause", `Paused: ${flight ? `${plural(flight, "PG")} in flight ${flight === 1 ? "finishes" : "finish"}, then ` : ""}nothing moves until it is resumed.`)}
        >
          Pause
        </Acting>
      )}
      {(drain.state === "paused" || drain.state === "failed") && <Acting onPress={() => setAsking("resume")}>Resume</Acting>}
      {CANCELLABLE.has(drain.state) && <Acting onPress={() => setAsking("cancel")}>Cancel</Acting>}
      {asking === "resume" && (
        <Question
          title={`Resume the ${CALLED[drain.intent].noun} of ${target}?`}
          yes={drain.intent === "quarantine" ? "Resume" : `Resume: move the other ${tib(drain.progress.planned_bytes - drain.progress.moved_bytes)}`}
          onYes={() => void drainVerb(drain.id, "resume", `Resumed: ${target} goes on as its guards allow.`)}
          onClose={() => setAsking(null)}
        >
          <p>
            {drain.end_reason && `It stopped: ${sentence(drain.end_reason)} `}It goes on where it stood, with every guard asked again before each step.
          </p>
        </Question>
      )}
      {asking === "cancel" && (
        <Question
          title={`Cancel the ${CALLED[drain.intent].noun} of ${target}?`}
          yes={drain.intent === "quarantine" ? "Cancel: make it a primary again" : `Cancel: put ${tib(drain.progress.moved_bytes)} back`}
          {...(drain.state === "drained" || drain.state === "verified" ? { typed: target } : {})}
          onYes={() => void drainVerb(drain.id, "cancel", `Cancelling: weights and settings of ${target} go back as they were.`)}
          onClose={() => setAsking(null)}
        >
          <p>{consequence(drain)}</p>
        </Question>
      )}
    </div>
  );
}

function consequence(drain: DrainWhole): string {
  const { moved_bytes: moved } = drain.progress;
  const osd = osdByNumber.value.get(drain.osds[0] ?? -1);
  const time = drain.cancel_hours === null ? "" : ` in ${about(drain.cancel_hours)}`;
  const back = moved > 0 ? `This puts ${tib(moved)} back${time} and restores weights and settings` : "No data has moved; weights, leadership and settings are restored";
  const risk = osd?.p_fail_30d == null ? "" : `; ${targetOf(drain)} stays at ${percent(osd.p_fail_30d)} within 30 days`;
  return `${back}${risk}.`;
}
