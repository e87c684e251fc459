import assert from "node:assert/strict";
import { test } from "node:test";
import { gapsIn, roundUp, runs, timeTicks } from "./scale.ts";

const HOUR = 3_600_000;

test("null breaks a line, and so does a silence", () => {
  const hourly = Array.from({ length: 10 }, (_, hour): [number, number | null] => [hour * HOUR, hour === 4 ? null : 1]);
  assert.deepEqual(runs(hourly).map((run) => run.length), [4, 5]);
  const silent = [0, 1, 2, 3, 4, 40, 41, 42, 43].map((hour): [number, number] => [hour * HOUR, 1]);
  assert.deepEqual(runs(silent).map((run) => run.length), [5, 4]);
  assert.equal(runs(silent, false).length, 1);
});

test("days before hours are no gaps", () => {
  const times = [0, 24, 48, 72, 96, 102, 108, 114, 120, 126, 132].map((hour) => hour * HOUR);
  assert.ok(!gapsIn(times).includes(true));
  const mostlyHours = [...Array.from({ length: 20 }, (_, day) => 24 * day), ...Array.from({ length: 300 }, (_, n) => 480 + 6 * n)];
  assert.ok(!gapsIn(mostlyHours.map((hour) => hour * HOUR)).includes(true));
});

test("ticks are round UTC instants inside the range and never crowd", () => {
  for (const days of [0.1, 1, 7, 60, 365]) {
    const from = Date.parse("2026-01-01T05:17:00Z");
    const ticks = timeTicks(from, from + days * 24 * HOUR, 600);
    assert.ok(ticks.length >= 1 && ticks.length <= 7, `${days}: ${ticks.length}`);
    assert.ok(ticks.every((tick) => tick.at >= from && tick.at % (HOUR / 4) === 0));
  }
});

test("an axis ends at a round number at or above its data", () => {
  for (const value of [0.3, 1, 3, 7, 48, 99, 101, 53_384]) assert.ok(roundUp(value) >= value && roundUp(value) <= 2.5 * value, String(value));
  assert.equal(roundUp(0), 1);
});
