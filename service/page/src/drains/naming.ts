/** What a drain is called and which shape stands for its state. */
import type { Drain, DrainState } from "../api/contract.ts";
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
