/** What a disk's cell shows. Good, warning and bad are the service's words; the rest is what is known of it besides. */
import type { Drain, DrainState, Intent, LifeChange, LifeState, Osd } from "./api/contract.ts";
import { about, clockOf, percent, ratio, share } from "./format.ts";
import { ruleOf } from "./source.ts";

export type Condition =
  | "bad"
  | "warning"
  | "slow"
  | "down"
  | "unknown"
  | "old"
  | "draining"
  | "drained"
  | "good";

/** In the order of the legend. */
export const CONDITIONS: readonly Condition[] = [
  "good",
  "warning",
  "bad",
  "slow",
  "down",
  "unknown",
  "old",
  "draining",
  "drained",
];

/** An outlook is too old to act upon after 36 hours, unless the service says how often it reads (design 5, trust). */
const OLD_MS = 36 * 3_600_000;

/** The time before which an outlook is old at `now`. Times in UTC compare as texts, and thousands are compared at a time. */
let oldBefore: { now: string; text: string } | null = null;

const DRAINING: ReadonlySet<DrainState> = new Set([
  "approved",
  "preparing",
  "draining",
  "holding",
  "paused",
  "cancelling",
]);
const DRAINED: ReadonlySet<DrainState> = new Set(["drained", "verified", "handed_over"]);

export function isOpen(state: DrainState): boolean {
  return DRAINING.has(state) || state === "proposed" || state === "drained" || state === "verified" || state === "failed";
}

export function isOld(osd: Osd, now: string | null): boolean {
  if (osd.as_of === null || now === null) return false;
  if (oldBefore?.now !== now) {
    const at = Date.parse(now);
    oldBefore = { now, text: Number.isNaN(at) ? "" : new Date(at - OLD_MS).toISOString() };
  }
  return osd.as_of < oldBefore.text;
}

/** Whether data leaves a disk: a quarantine moves none, a fill brings some. */
export const empties = (drain: { intent: Intent }): boolean => drain.intent === "replace" || drain.intent === "remove";

export function condition(osd: Osd, now: string | null): Condition {
  if (osd.drain && empties(osd.drain)) {
    if (DRAINING.has(osd.drain.state)) return "draining";
    if (DRAINED.has(osd.drain.state)) return "drained";
  }
  if (!osd.up) return "down";
  if (osd.unreadable || osd.status === "unknown") return "unknown";
  if (osd.status === "bad") return "bad";
  if (isOld(osd, now)) return "old";
  // Slow is the rule's word, sustained over days: one high ratio, as under a drain nearby, is not.
  if (ruleOf(osd.source)?.startsWith("slow")) return "slow";
  return osd.status;
}

/** The few words beside a cell in trouble: "68 %", "no reading", "swap". */
export function brief(osd: Osd, shown: Condition): string {
  switch (shown) {
    case "bad":
    case "warning":
      return osd.p_fail_30d === null ? "rule" : percent(osd.p_fail_30d);
    case "slow":
      return ratio(osd.latency_ratio);
    case "down":
      return "down";
    case "unknown":
      if (hasEnded(osd.state)) return osd.state ?? "";
      return osd.unreadable ? "no reading" : osd.source ? "not judged" : "new";
    case "old":
      return `as of ${clockOf(osd.as_of)}`;
    case "draining":
      return osd.drain?.state === "paused" ? "paused" : osd.drain?.state === "holding" ? "holding" : "draining";
    case "drained":
      return osd.drain?.state === "drained" ? "drained" : "swap";
    case "good":
      return "";
  }
}

/** What becomes of an OSD that is down: its forecast is over, whatever it said. */
export function whenDown(osd: Osd): string {
  return osd.in
    ? "Ceph rebuilds its data once it is out, unless it comes back. See to its disk and its host."
    : "Ceph rebuilds its data from the other copies. Replace the disk.";
}

/** What is to be done about a disk whose data is counted elsewhere. */
export function whenVerified({ intent }: { intent: Intent }): string {
  return intent === "replace" ? "Hand it over, then swap the disk; the OSD keeps its id." : "Hand it over, then pull the disk; its OSD goes with it.";
}

export function fullness(osd: Osd): number | null {
  return osd.size_bytes && osd.used_bytes !== null ? osd.used_bytes / osd.size_bytes : null;
}

/** One cell read aloud, or by a tooltip without eyes. */
export function spoken(osd: Osd, shown: Condition): string {
  const where = `osd.${osd.osd}, ${shown}, ${osd.host} slot ${osd.slot}.`;
  const before = osd.p_fail_30d_week_ago;
  const sure =
    osd.p_fail_30d === null
      ? ruleOf(osd.source) !== null
        ? " By a rule, no probability."
        : ""
      : ` ${percent(osd.p_fail_30d)} within 30 days${before === null ? "" : `, was ${percent(before)} a week ago`}.`;
  const why = osd.reasons[0] ? ` ${osd.reasons[0]}` : "";
  return where + sure + why;
}

/** Progress of a drain as a share of its planned bytes; null while nothing is planned. */
export function moved(drain: { moved_bytes: number; planned_bytes: number }): number | null {
  return drain.planned_bytes > 0 ? Math.min(1, drain.moved_bytes / drain.planned_bytes) : null;
}

export function movedText(drain: { moved_bytes: number; planned_bytes: number }): string {
  const part = moved(drain);
  return part === null ? "" : share(Math.floor(part * 100) / 100);
}


/** ", about 3 h left": what the service says is to come of a drain; nothing where nobody can tell. */
export function remaining(drain: Pick<Drain, "remaining_hours"> | null): string {
  return drain?.remaining_hours ? `, ${about(drain.remaining_hours)} left` : "";
}

/** Whether a disk failed or is retired: it has no severity, and nothing is forecast of it. */
export function hasEnded(state: LifeState | null | undefined): boolean {
  return state === "failed" || state === "retired";
}

/** "failed", or why it is retired. */
export function endWord(change: LifeChange): string {
  return change.retired_reason ?? change.state;
}
