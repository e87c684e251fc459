import assert from "node:assert/strict";
import { test } from "node:test";
import type { Osd } from "../api/contract.ts";
import { answersTo, sortBy } from "./colouring.ts";
import { NOW, fleet, osd } from "./sample.ts";

const mixed: Osd[] = [
  ...fleet(20),
  osd(20, { status: "bad" }),
  osd(21, { status: "unknown", p_fail_30d: null, latency_ratio: null, age_days: null, used_bytes: null, model: null }),
  osd(22, { up: false }),
  osd(23, { as_of: "2026-11-18T03:12:00Z" }),
];

test("every colouring counts every disk once", () => {
  for (const by of ["outlook", "latency", "age", "model", "fullness"] as const) {
    const { buckets, of } = sortBy(by, mixed, NOW);
    assert.equal(buckets.reduce((sum, bucket) => sum + bucket.many, 0), mixed.length, by);
    assert.ok([...of].every((at) => at >= 0 && at < buckets.length), by);
  }
});

test("what is not reported is hollow, never the first step of the ramp", () => {
  for (const by of ["latency", "age", "fullness", "model"] as const) {
    const { buckets, of } = sortBy(by, mixed, NOW);
    assert.equal(buckets[of[21] ?? 0]?.key, "none", by);
  }
});

test("down, old and unknown are told apart from good", () => {
  const { buckets, of } = sortBy("outlook", mixed, NOW);
  assert.deepEqual([20, 21, 22, 23].map((at) => buckets[of[at] ?? 0]?.key), ["bad", "unknown", "down", "old"]);
});

test("a filter looks at host, rack, model, device and OSD", () => {
  for (const text of ["stor-01", "r1", "st12000", "nm0008_7", "osd.7", ""]) assert.ok(answersTo(osd(7), text), text);
  assert.ok(!answersTo(osd(7), "stor-99"));
});
