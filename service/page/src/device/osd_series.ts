/** When the OSD of a disk was down, as a series beside those of the drive. Pure. */
import type { HistoryEvent, Series } from "../api/contract.ts";

/** `from`, `to`: of the chart, in ms. `up`: whether the OSD is up now. `events`: of the disk, in any order. */
export function osdSeries(events: readonly HistoryEvent[], from: number, to: number, up: boolean): Series {
  const changes = events
    .filter((one) => one.kind === "osd_down" || one.kind === "osd_up")
    .map((one): [number, number] => [Date.parse(one.at), one.kind === "osd_down" ? 1 : 0])
    .filter(([at]) => at >= from && at <= to)
    .sort((a, b) => a[0] - b[0]);
  const first = changes[0];
  const before = first ? 1 - first[1] : up ? 0 : 1;
  return { name: "osd_down", unit: null, points: [[from, before], ...changes, [to, up ? 0 : 1]] };
}
