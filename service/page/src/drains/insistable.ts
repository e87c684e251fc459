/** The guards of a held drain that a person may insist past. Pure. */
import type { DrainState, DrainWhole, Guard } from "../api/contract.ts";

/** States in which the service takes an insistence. */
const TAKEN: ReadonlySet<DrainState> = new Set(["proposed", "approved", "preparing", "draining", "holding", "cancelling"]);

export function insistableGuards(drain: Pick<DrainWhole, "state" | "guards">): Guard[] {
  if (!TAKEN.has(drain.state)) return [];
  return drain.guards.filter((guard) => !guard.ok && guard.insistable && !guard.overruled);
}
