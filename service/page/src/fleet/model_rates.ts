/** Annual failure rates in words, and the order of models. Pure. */
import type { DriveModel } from "../api/contract.ts";

export const atRisk = (one: Pick<DriveModel, "bad" | "warning">): number => one.bad + one.warning;

/** Most bad disks first, then most warnings, most failures, most disks. */
export function byRisk(a: DriveModel, b: DriveModel): number {
  return b.bad - a.bad || b.warning - a.warning || b.failed - a.failed || b.disks - a.disks || ((a.model ?? "") < (b.model ?? "") ? -1 : 1);
}

/** Below it a rate without a failure says nothing yet. */
export const FEW_YEARS = 1;

/** "1.2 % (0.6 to 2.1)"; without a failure the upper end alone. */
export function rateText(one: Pick<DriveModel, "failed" | "drive_years" | "failures_per_year" | "failures_per_year_low" | "failures_per_year_high">): string {
  const { failures_per_year: rate, failures_per_year_low: low, failures_per_year_high: high } = one;
  if (rate === null || low === null || high === null) return "not watched yet";
  if (one.failed === 0 && one.drive_years < FEW_YEARS) return "watched too briefly";
  if (one.failed === 0) return `none; under ${percents(high)} %`;
  return `${percents(rate)} % (${percents(low)} to ${percents(high)})`;
}

function percents(rate: number): string {
  const value = rate * 100;
  return value < 9.95 ? value.toFixed(1) : value.toFixed(0);
}
