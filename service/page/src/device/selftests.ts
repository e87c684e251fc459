/** What the block of self-tests says, as text. */
import type { DiskRequests, RunningSelfTest } from "../api/contract.ts";

export type DiskVerb = DiskRequests["options"][number]["verb"];

export const VERBS: Record<DiskVerb, string> = {
  "selftest-short": "Short self-test",
  "selftest-long": "Long self-test",
  "locate-on": "Light on",
  "locate-off": "Light off",
};

/** Why `verb` would be refused now, in sentences; null where it would be taken. */
export function refusalOf(told: DiskRequests, verb: DiskVerb): string | null {
  const refusals = told.options.find((one) => one.verb === verb)?.refusals ?? [];
  return refusals.length > 0 ? refusals.map((one) => one.sentence).join(" ") : null;
}

/** Every reason that stands against any of the buttons, each once. */
export function reasonsAgainst(told: DiskRequests): string[] {
  return [...new Set(told.options.flatMap((option) => option.refusals.map((one) => one.sentence)))];
}

export function progress(running: RunningSelfTest): string {
  const kind = running.kind === "short" || running.kind === "long" ? `A ${running.kind} self-test` : "A self-test";
  return `${kind} runs${running.done_percent === null ? "" : `, ${running.done_percent} % done`}.`;
}

/** The drive's own estimate: "about 2 hours". */
export function minutes(estimate: number | null): string {
  if (estimate === null) return "hours";
  return estimate < 90 ? `about ${estimate} minutes` : `about ${Math.round(estimate / 60)} hours`;
}
