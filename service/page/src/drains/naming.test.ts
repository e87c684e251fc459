import assert from "node:assert/strict";
import { test } from "node:test";
import type { DrainState, Intent } from "../api/contract.ts";
import { tellState } from "./naming.ts";

const told = (intent: Intent, state: DrainState, state_text?: string): string => tellState({ intent, state, ...(state_text === undefined ? {} : { state_text }) });

test("a text of a fill's or a quarantine's own stands without its noun", () => {
  assert.equal(told("fill", "draining", "filling"), "filling");
  assert.equal(told("fill", "verified", "filled and verified"), "filled and verified");
  assert.equal(told("fill", "cancelling", "being emptied again"), "being emptied again");
  assert.equal(told("quarantine", "draining", "quarantined"), "quarantined");
  assert.equal(told("quarantine", "cancelled", "released"), "released");
});

test("a state that every intent has is told with the noun", () => {
  assert.equal(told("fill", "paused", "paused"), "fill paused");
  assert.equal(told("quarantine", "proposed", "proposed"), "quarantine proposed");
  assert.equal(told("replace", "cancelling", "cancelling"), "drain cancelling");
  assert.equal(told("remove", "handed_over", "handed over"), "drain handed over");
});

test("a drain is not told twice, also by a service that gives no text", () => {
  assert.equal(told("replace", "draining", "draining"), "draining");
  assert.equal(told("remove", "drained"), "drained");
  assert.equal(told("replace", "handed_over"), "drain handed over");
});

test("no text of a service has a word and its noun beside each other", () => {
  const states: DrainState[] = ["proposed", "approved", "preparing", "draining", "holding", "drained", "verified", "handed_over", "paused", "cancelling", "cancelled", "failed"];
  const own: Partial<Record<Intent, Partial<Record<DrainState, string>>>> = {
    fill: { draining: "filling", drained: "filled", verified: "filled and verified", handed_over: "in service", cancelling: "being emptied again" },
    quarantine: { draining: "quarantined", drained: "quarantined", verified: "quarantined", cancelling: "being released", cancelled: "released" },
  };
  for (const intent of ["replace", "remove", "fill", "quarantine"] as const) {
    for (const state of states) {
      assert.doesNotMatch(told(intent, state, own[intent]?.[state] ?? state.replaceAll("_", " ")), /\b(drain drain|fill fill|quarantine quarantine)/);
    }
  }
});
