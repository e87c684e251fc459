import assert from "node:assert/strict";
import { test } from "node:test";
import type { PreviewRow } from "../api/contract.ts";
import { compareCosts } from "./preview_words.ts";

const row = (failure_cost: number, cost_bytes: number, here = false): PreviewRow => ({ failure_cost, current: here, drains: 0, in_time: 0, needless: 0, undecided: 0, moved_bytes: 0, needless_bytes: 0, rebuilt_bytes: 0, moving_hours: 0, cost_bytes });

test("a cost that is hardly better is not recommended", () => {
  assert.equal(compareCosts(row(10, 100, true), row(20, 96), 40), "No other cost would have been clearly better.");
});

test("a cost that is clearly better is named with how much it would have saved", () => {
  const told = compareCosts(row(10, 100, true), row(20, 60), 40);
  assert.equal(told, "At 20 in place of 10, these days would have cost 40 % less.");
});

test("of a few failures no cost is called better", () => {
  assert.equal(compareCosts(row(10, 100, true), row(20, 60), 3), "That is too few to tell the costs apart: they differ by chance.");
});
