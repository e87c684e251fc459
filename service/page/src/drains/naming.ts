/** What a drain is called and which shape stands for its state. */
import type { Drain, DrainState, Intent } from "../api/contract.ts";
import type { Condition } from "../condition.ts";

export const STATE_SHAPE: Record<DrainState, Condition> = {
  proposed: "bad",
  approved: "draining",
  preparing: "draining",
  draining: "draining",
  holding: "draining",
  drained: "drained",
  verified: "drained",
  handed_over: "drained",
  paused: "draining",
  cancelling: "draining",
  cancelled: "good",
  failed: "bad",
};

export const targetOf = (drain: Drain): string => drain.osds.map((osd) => `osd.${osd}`).join(", ") || (drain.device ?? drain.id);

/** What each intent is called, and what the disk is when it is done. */
export const CALLED: Record<Intent, { noun: string; done: string }> = {
  replace: { noun: "drain", done: "drained" },
  remove: { noun: "drain", done: "drained" },
  fill: { noun: "fill", done: "filled" },
  quarantine: { noun: "quarantine", done: "spared" },
};

type Stated = Pick<Drain, "intent" | "state" | "state_text">;

/** A state with the noun of its drain, fill or quarantine, unless the text says that itself: "fill paused", "filling". */
export function tellState({ intent, state, state_text }: Stated): string {
  const { noun } = CALLED[intent];
  const name = state.replaceAll("_", " ");
  const text = state_text || name;
  const saysNoun = text !== name || text.startsWith(noun); // a text of an intent's own tells which intent it is
  return saysNoun ? text : `${noun} ${text}`;
}
