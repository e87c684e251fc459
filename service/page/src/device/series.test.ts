import assert from "node:assert/strict";
import { test } from "node:test";
import type { HistoryEvent, Series } from "../api/contract.ts";
import { nearest, valueAt } from "../charts/scale.ts";
import { drainSpans, osdSeries, slowSpans, waitSpans } from "./osd_series.ts";
import { lanesOf } from "./series.ts";

const series = (name: string, ...values: (number | null)[]): Series => ({ name, unit: "count", points: values.map((value, at) => [at * 1_000, value]) });
const keys = (...all: Series[]): string[] => lanesOf(all, null, false).lanes.map((one) => one.key);

test("errors of kernel, OSD and link and the temperature stand together at the end, whether they moved or not", () => {
  const found = keys(series("temperature_c", 30, 31), series("crc_errors", 0, 0), series("kernel_errors", 0, 0), series("pending", 0, 8), series("osd_down", 0, 0));
  assert.deepEqual(found, ["pending", "kernel_errors", "osd_down", "crc_errors", "temperature_c"]);
});

test("of the two counters of a link the one that moved is drawn", () => {
  assert.deepEqual(keys(series("crc_errors", 0, 0), series("link_errors", 0, 3)), ["link_errors"]);
  assert.deepEqual(keys(series("crc_errors", 0, 0), series("link_errors", 2, 2)), ["crc_errors"]);
});

test("the temperature has the drive's own limits, and a drive without one says so", () => {
  const heat = series("temperature_c", 30, 31);
  const limits = (limit: number | null, critical: number | null) => lanesOf([heat], null, false, { limit, critical }).lanes[0]!;
  assert.deepEqual(
    limits(60, 70).limits?.map((one) => [one.at, one.tone]),
    [
      [70, "bad"],
      [60, "warning"],
    ],
  );
  assert.deepEqual(limits(70, 70).limits?.map((one) => one.at), [70]);
  assert.deepEqual(limits(null, 68).limits?.map((one) => one.at), [68]);
  assert.match(limits(null, null).under, /no limit reported/);
});

test("an OSD is down from its event on, and before the first event it was the other", () => {
  const event = (kind: string, at: number): HistoryEvent => ({ kind, at: new Date(at).toISOString() }) as HistoryEvent;
  const points = osdSeries([event("osd_up", 3_000), event("osd_down", 2_000), event("disk_silent", 2_500)], 1_000, 9_000, true).points;
  assert.deepEqual(points, [[1_000, 0], [2_000, 1], [3_000, 0], [9_000, 0]]);
  assert.deepEqual(osdSeries([], 1_000, 9_000, false).points, [[1_000, 1], [9_000, 1]]);
});

test("the cursor stands at the nearest instant and shows what was known then", () => {
  const times = [1_000, 2_000, 10_000];
  assert.deepEqual([0, 1_400, 1_600, 7_000, 99_000].map((at) => nearest(times, at)), [1_000, 1_000, 2_000, 10_000, 10_000]);
  assert.equal(nearest([], 5), null);
  const points = [[1_000, 3], [2_000, null], [10_000, 5]] as const;
  assert.deepEqual([500, 1_000, 1_999, 2_000, 10_001].map((at) => valueAt(points, at)), [null, 3, 3, null, 5]);
});

const MINUTE = 60_000;
const told = (kind: string, at: number, drain: string | null = "d1"): HistoryEvent => ({ kind, at: new Date(at).toISOString(), drain, sentence: `${drain} ${kind}` }) as HistoryEvent;
const times = (spans: readonly { from: number; to: number; short: string }[]) => spans.map(({ from, to, short }) => [from, to, short]);

test("a drain is in each state until its next event, and in an open one until now", () => {
  const events = [told("drain_draining", 3_000), told("drain_approved", 2_000), told("osd_down", 2_500, null), told("drain_proposed", 2_800, "d2")];
  assert.deepEqual(times(drainSpans(events, 1_000, 9_000, null)), [[2_000, 3_000, "approved"], [2_800, 9_000, "proposed"], [3_000, 9_000, "draining"]]);
});

test("an end of a drain is a mark, not a state that lasts until now", () => {
  const events = [told("drain_draining", 2_000), told("drain_cancelling", 3_000), told("drain_cancelled", 4_000)];
  assert.deepEqual(times(drainSpans(events, 1_000, 9_000, null)), [[2_000, 3_000, "draining"], [3_000, 4_000, "cancelling"], [4_000, 4_000, "cancelled"]]);
});

test("a drain without an event in these days was in its state all the while", () => {
  const open = { id: "d1", state: "paused" } as NonNullable<Parameters<typeof drainSpans>[3]>;
  assert.deepEqual(times(drainSpans([], 1_000, 9_000, open)), [[1_000, 9_000, "paused"]]);
  assert.deepEqual(drainSpans([], 1_000, 9_000, { ...open, state: "cancelled" }), []);
});

test("neighbouring points with slow minutes are one span, and a point without a value ends it", () => {
  const minutes = [0, 2, 3, null, 1].map((value, at): [number, number | null] => [at * 5 * MINUTE, value]);
  const spans = slowSpans({ name: "slow_minutes", unit: "minutes", points: minutes });
  assert.deepEqual(times(spans), [[5 * MINUTE, 15 * MINUTE, "5 slow minutes"], [20 * MINUTE, 25 * MINUTE, "1 slow minute"]]);
  assert.deepEqual(slowSpans(undefined), []);
});

test("of operations that waited too long the most at once is told", () => {
  const spans = waitSpans({ name: "slow_ops", unit: "count", points: [[0, 2], [MINUTE, 7], [2 * MINUTE, 0]] });
  assert.deepEqual(times(spans), [[0, 2 * MINUTE, "7 slow ops"]]);
});

test("the lane of the OSD has its bars, and slow minutes are a lane of their own only among all series", () => {
  const all = [series("osd_down", 0, 0), series("slow_minutes", 0, 3), series("slow_ops", 0, 1), series("latency_ratio", 1, 2)];
  const rows = [{ title: "slow minutes", spans: slowSpans(all[1]) }];
  const drawn = lanesOf(all, null, false, undefined, { rows, slowRatio: 1.5 });
  assert.deepEqual(drawn.lanes.map((one) => one.key), ["osd_down", "latency_ratio"]);
  assert.deepEqual(drawn.lanes[0]?.spans, rows);
  assert.deepEqual(drawn.lanes[1]?.limits?.map((one) => one.at), [1.5]);
  assert.equal(lanesOf(all, null, true).lanes.length, 4);
});
