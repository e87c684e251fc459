import assert from "node:assert/strict";
import { test } from "node:test";
import type { Calibration } from "../api/contract.ts";
import { verdict } from "./verdict.ts";

const family = (name: string, expected: number, observed: number, said: NonNullable<Calibration["verdict"]>): Calibration => ({ family: name, expected, observed, ratio: expected / observed, low: 0.2, high: 0.8, off: false, verdict: said });

test("figures that differ by more than chance are never called no concern", () => {
  const told = verdict([family("ST4000", 40, 41, "fits"), family("HGST", 2.9, 8, "doubtful")]);
  assert.equal(told, ": in doubt for HGST (2.9 failures expected, 8 seen); an alert wants 30 failures.");
});

test("too few failures are called that", () => {
  assert.equal(verdict([family("HGST", 1.1, 1, "too_few")]), ": no concern, on too few failures to judge the chances.");
  assert.equal(verdict([family("ST4000", 40, 41, "fits")]), ": no concern.");
});
