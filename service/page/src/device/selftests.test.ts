import assert from "node:assert/strict";
import { test } from "node:test";
import type { DiskRequests } from "../api/contract.ts";
import { minutes, progress, reasonsAgainst, refusalOf } from "./selftests.ts";

const HALTED = { kind: "halted", sentence: "Everything is halted: lift the halt first." } as const;
const SILENT = { kind: "host-silent", sentence: "stor-01 has never asked for work." } as const;
const TOLD = {
  options: [
    { verb: "selftest-short", refusals: [HALTED, SILENT] },
    { verb: "selftest-long", refusals: [HALTED] },
    { verb: "locate-on", refusals: [] },
  ],
} as unknown as DiskRequests;

test("a button is off with every reason against it, and on without one", () => {
  assert.equal(refusalOf(TOLD, "selftest-short"), `${HALTED.sentence} ${SILENT.sentence}`);
  assert.equal(refusalOf(TOLD, "locate-on"), null);
});

test("a reason that stands against several buttons is told once", () => {
  assert.deepEqual(reasonsAgainst(TOLD), [HALTED.sentence, SILENT.sentence]);
});

test("a running test is told with what the drive reports of it", () => {
  assert.equal(progress({ kind: "long", done_percent: 30 }), "A long self-test runs, 30 % done.");
  assert.equal(progress({ kind: null, done_percent: null }), "A self-test runs.");
});

test("the drive's estimate is told in minutes, then in hours", () => {
  assert.equal(minutes(85), "about 85 minutes");
  assert.equal(minutes(1822), "about 30 hours");
  assert.equal(minutes(null), "hours");
});
