import assert from "node:assert/strict";
import { test } from "node:test";
import type { JournalLine } from "../api/contract.ts";
import { fold } from "./fold.ts";

const line = (minute: number, decided: string, answered = "", seen = "seen", event: JournalLine["event"] = null): JournalLine => ({
  at: `2026-11-21T03:${String(minute).padStart(2, "0")}:00Z`,
  observed: seen,
  decision: decided,
  result: answered,
  epoch: null,
  caller: "controller",
  event,
  cluster: null,
});

const hold = (minute: number, decided: string, event: JournalLine["event"] = "held") => line(minute, decided, "", "seen", event);

test("equal holds become one line that says from when to when and how many looks", () => {
  const folded = fold([line(1, "release 2 PGs"), hold(2, "hold: above 1.2x"), hold(3, "hold: above 1.2x"), hold(9, "hold: above 1.2x")]);
  assert.deepEqual(folded.map((one) => [one.decision, one.looks]), [["hold: above 1.2x", 3], ["release 2 PGs", 1]]);
  assert.equal(folded[0]?.at, "2026-11-21T03:02:00Z");
  assert.equal(folded[0]?.until, "2026-11-21T03:09:00Z");
});

test("steps are never folded, however equal", () => {
  assert.equal(fold([line(1, "release 2 PGs"), line(2, "release 2 PGs")]).length, 2);
});

test("the event folds lines, and no word of their sentences", () => {
  assert.equal(fold([line(1, "hold: balancer off"), line(2, "hold: balancer off")]).length, 2);
  assert.equal(fold([hold(1, "nothing has moved", "waited"), hold(2, "nothing has moved", "waited")]).length, 1);
});

test("an answer of its own line stands beside its decision", () => {
  const folded = fold([line(1, "upmap 1.24"), line(1, "", "set 1.24", "")]);
  assert.deepEqual(folded.map((one) => [one.decision, one.result]), [["upmap 1.24", "set 1.24"]]);
});
