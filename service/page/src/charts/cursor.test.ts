import assert from "node:assert/strict";
import { test } from "node:test";
import { afterKey, saidAt, sayAll, type Span } from "./cursor.ts";

const TIMES = Array.from({ length: 30 }, (_, place) => place * 100);

test("arrows move the cursor by one instant, and it stays at the ends", () => {
  assert.deepEqual([afterKey(TIMES, 500, "ArrowLeft"), afterKey(TIMES, 500, "ArrowRight")], [400, 600]);
  assert.deepEqual([afterKey(TIMES, 0, "ArrowLeft"), afterKey(TIMES, 2_900, "ArrowRight")], [0, 2_900]);
});

test("Home and End go to the ends, and Page Up and Page Down by ten instants", () => {
  assert.deepEqual(["Home", "End", "PageUp", "PageDown"].map((key) => afterKey(TIMES, 1_500, key)), [0, 2_900, 500, 2_500]);
});

test("without a cursor the first key starts at the newest instant, and Escape takes the cursor away", () => {
  assert.equal(afterKey(TIMES, null, "ArrowLeft"), 2_800);
  assert.equal(afterKey(TIMES, 500, "Escape"), null);
});

test("any other key is left to the page", () => {
  assert.equal(afterKey(TIMES, 500, "n"), undefined);
  assert.equal(afterKey([], null, "Home"), null);
});

const drain: Span = { from: 100, to: 300, word: "The drain of osd.1 moves data.", short: "draining", tone: "acting" };
const osd = { title: "OSD", points: [[0, 0]] as const, write: () => "up", spans: [{ title: "drains", spans: [drain] }] };

test("a lane says its value and the spans that cover the instant", () => {
  assert.deepEqual([0, 100, 299, 300].map((at) => saidAt(osd, at)), ["up", "up, draining", "up, draining", "up"]);
});

test("a drain that goes on is said at the end of the axis too", () => {
  assert.equal(saidAt({ ...osd, spans: [{ title: "drains", spans: [{ ...drain, open: true }] }] }, drain.to), "up, draining");
});

test("an end that lasts no time is said at its instant", () => {
  const ended: Span = { ...drain, from: 300, short: "verified" };
  assert.deepEqual([299, 300, 301].map((at) => saidAt({ ...osd, spans: [{ title: "drains", spans: [ended] }] }, at)), ["up", "up, verified", "up"]);
});

test("all lanes at an instant are one sentence", () => {
  const heat = { title: "Temperature", points: [], write: String };
  assert.equal(sayAll([osd, heat], 100, "3 Nov 10:00 UTC"), "3 Nov 10:00 UTC: OSD up, draining; Temperature not reported.");
});
