import assert from "node:assert/strict";
import { test } from "node:test";
import { tellState } from "./naming.ts";

test("a name that tells the intent stands without the noun", () => {
  assert.equal(tellState({ intent: "fill", state_text: "filling", state_names_intent: true }), "filling");
  assert.equal(tellState({ intent: "replace", state_text: "draining", state_names_intent: true }), "draining");
});

test("a name that every intent has stands behind the noun", () => {
  assert.equal(tellState({ intent: "fill", state_text: "paused", state_names_intent: false }), "fill paused");
  assert.equal(tellState({ intent: "remove", state_text: "handed over", state_names_intent: false }), "drain handed over");
});

test("the words of the text decide nothing", () => {
  assert.equal(tellState({ intent: "replace", state_text: "drain", state_names_intent: false }), "drain drain");
});
