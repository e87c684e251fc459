/** What may be said of the forecast when nothing alarms: it follows from the figures by family, not from silence. */
import type { Calibration } from "../api/contract.ts";
import { count, plural } from "../format.ts";

export function verdict(calibration: readonly Calibration[]): string {
  const doubtful = calibration.filter((one) => one.verdict === "doubtful");
  const [worst] = [...doubtful].sort((a, b) => Math.abs(b.observed - b.expected) - Math.abs(a.observed - a.expected));
  if (worst) {
    const others = doubtful.length > 1 ? `, and ${plural(doubtful.length - 1, "other family", "other families")}` : "";
    return `: in doubt for ${worst.family} (${count(worst.expected, 1)} failures expected, ${count(worst.observed)} seen)${others}; an alert wants 30 failures.`;
  }
  if (calibration.length > 0 && calibration.every((one) => one.verdict === "too_few")) return ": no concern, on too few failures to judge the chances.";
  return ": no concern.";
}
