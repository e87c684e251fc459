import assert from "node:assert/strict";
import { test } from "node:test";
import type { Guard } from "../api/contract.ts";
import { insistableGuards } from "./insistable.ts";

const guard = (code: string, more: Partial<Guard>): Guard => ({ code, ok: false, sentence: `${code} refuses.`, insistable: false, overruled: false, transient: false, ...more });

const GUARDS = [
  guard("window", { insistable: true }),
  guard("budget", { insistable: true, overruled: true }),
  guard("upgrade", { insistable: true, ok: true }),
  guard("redundancy", { insistable: false }),
  guard("plan", {}),
];

test("a person may insist past guards that refuse, are marked and are not overruled yet", () => {
  assert.deepEqual(insistableGuards({ state: "holding", guards: GUARDS }).map((one) => one.code), ["window"]);
});

test("nobody insists on a drain that is paused, emptied or over", () => {
  for (const state of ["paused", "failed", "drained", "verified", "cancelled", "handed_over"] as const) {
    assert.deepEqual(insistableGuards({ state, guards: GUARDS }), []);
  }
});
