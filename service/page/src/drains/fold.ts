/** A journal made short: answers beside their decisions, equal holds as one line. Pure. */
import type { JournalLine } from "../api/contract.ts";

export interface Folded extends JournalLine {
  looks: number;
  until: string;
}

/** The cluster's answer may come as a line of its own: it belongs to the decision before it. */
function answered(lines: readonly JournalLine[]): JournalLine[] {
  const whole: JournalLine[] = [];
  for (const line of [...lines].sort((a, b) => a.at.localeCompare(b.at))) {
    const before = whole.at(-1);
    if (before && !line.observed && !line.decision && !before.result) {
      whole[whole.length - 1] = { ...before, result: line.result, epoch: line.epoch ?? before.epoch };
    } else {
      whole.push(line);
    }
  }
  return whole;
}

const isHold = (line: JournalLine): boolean => line.event === "held" || line.event === "waited";

/** Newest first; runs of the same decision and answer become one line with how long and how many looks. */
export function fold(lines: readonly JournalLine[]): Folded[] {
  const sorted = answered(lines).reverse();
  const folded: Folded[] = [];
  for (const line of sorted) {
    const over = folded.at(-1);
    if (over && over.decision === line.decision && over.result === line.result && line.event === over.event && isHold(line)) {
      over.looks += 1;
      over.at = line.at;
    } else {
      folded.push({ ...line, looks: 1, until: line.at });
    }
  }
  return folded;
}
