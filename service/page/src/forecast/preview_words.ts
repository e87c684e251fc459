/** What the figures of a policy preview say of the cost that is set. */
import type { PreviewRow } from "../api/contract.ts";
import { count } from "../format.ts";

export function compareCosts(here: PreviewRow, best: PreviewRow): string {
  if (best.cost_bytes >= 0.95 * here.cost_bytes) return "No other cost would have been clearly better.";
  return `At ${count(best.failure_cost)} in place of ${count(here.failure_cost)}, these days would have cost ${count((1 - best.cost_bytes / here.cost_bytes) * 100)} % less; a few failures make such a difference by chance.`;
}
