/** The shapes that tell conditions apart without colour, one path each for SVG and canvas, and their words. */
import type { Condition } from "./condition.ts";

interface Form {
  /** In a box of 16 x 16. */
  path: string;
  /** Drawn as a line instead of filled. */
  line?: boolean;
}

export const FORMS: Record<Condition, Form> = {
  good: { path: "M4 4h8v8H4z" },
  warning: { path: "M8 2 14.5 13.5h-13z" },
  bad: { path: "M8 .8 15.2 8 8 15.2.8 8z" },
  slow: { path: "M2 3.2h12v3.4H2zM2 9.4h12v3.4H2z" },
  down: { path: "M3.5 3.5l9 9M12.5 3.5l-9 9", line: true },
  unknown: { path: "M3.5 3.5h9v9h-9z", line: true },
  old: { path: "M3.5 3.5h9v9h-9z", line: true },
  draining: { path: "M1.5 2.5h13L8 14z" },
  drained: { path: "M2.2 8.6 6.3 12.6 13.8 3.8", line: true },
};

export const WORDS: Record<Condition, string> = {
  good: "good",
  warning: "warning",
  bad: "bad",
  slow: "slow",
  down: "down",
  unknown: "unknown",
  old: "old",
  draining: "draining",
  drained: "drained",
};
