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

type Stated = Pick<Drain, "intent" | "state_text" | "state_names_intent">;

/** A state with the noun of its drain, fill or quarantine, unless the state's name tells that itself: "fill paused", "filling". */
export const tellState = ({ intent, state_text, state_names_intent }: Stated): string =>
  state_names_intent ? state_text : `${CALLED[intent].noun} ${state_text}`;
