/** What the figures of a policy preview say of the cost that is set. */
import type { PreviewRow } from "../api/contract.ts";
import { count } from "../format.ts";

const ENOUGH_FAILURES = 10;

/** failures: how many disks failed in the days that were replayed. */
export function compareCosts(here: PreviewRow, best: PreviewRow, failures: number): string {
  if (failures < ENOUGH_FAILURES) return "That is too few to tell the costs apart: they differ by chance.";
  if (best.cost_bytes >= 0.95 * here.cost_bytes) return "No other cost would have been clearly better.";
  return `At ${costWord(best)} in place of ${costWord(here)}, these days would have cost ${count((1 - best.cost_bytes / here.cost_bytes) * 100)} % less.`;
}

/** A cost as it is set: whole, or with the digit that it has. */
export const costWord = (row: PreviewRow): string => count(row.failure_cost, row.failure_cost % 1 === 0 ? 0 : 1);
