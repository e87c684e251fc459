import assert from "node:assert/strict";
import { test } from "node:test";
import type { Residence } from "../api/contract.ts";
import { doubtOf, historyApart, listed, ofHistory } from "./residence.ts";

const residence = (changed: Partial<Residence>): Residence => ({
  device: "D",
  state: "contested",
  host: "stor-01",
  other_hosts: ["stor-02"],
  hosts: ["stor-01", "stor-02"],
  by: null,
  since: null,
  ...changed,
});

test("nothing is said of a disk that one host names", () => {
  assert.equal(doubtOf(residence({ state: "settled", other_hosts: [], hosts: [], by: "nobody_else" })), null);
});

test("a person may name each of the hosts that name the disk at the same time", () => {
  for (const state of ["contested", "asked"] as const) {
    const doubt = doubtOf(residence({ state, other_hosts: ["stor-02", "stor-03"], hosts: ["stor-01", "stor-02", "stor-03"] }));
    assert.deepEqual(doubt?.choices, ["stor-01", "stor-02", "stor-03"]);
    assert.equal(doubt?.title, "stor-01, stor-02 and stor-03 name this disk at the same time");
    assert.match(doubt?.sentence ?? "", /What stor-02 and stor-03 send is kept apart/);
  }
});

test("nobody is asked where the cluster has the disk under two hosts", () => {
  const doubt = doubtOf(residence({ hosts: [] }));
  assert.deepEqual(doubt?.choices, []);
  assert.match(doubt?.sentence ?? "", /two drives go by one name/);
});

test("what a person said may be said otherwise, what the cluster says may not", () => {
  const settled = { state: "settled" } as const;
  assert.deepEqual(doubtOf(residence({ ...settled, by: "person" }))?.choices, ["stor-02"]);
  assert.deepEqual(doubtOf(residence({ ...settled, by: "cluster" }))?.choices, []);
  assert.deepEqual(doubtOf(residence({ ...settled, by: "silence" }))?.choices, []);
});

test("a history that is kept apart is of the disk whose name it begins with", () => {
  assert.deepEqual(ofHistory("ACME_D1"), { device: "ACME_D1", host: null });
  assert.deepEqual(ofHistory(historyApart("ACME_D1", "stor-02")), { device: "ACME_D1", host: "stor-02" });
});

test("hosts are listed as a person lists them", () => {
  assert.deepEqual([[], ["a"], ["a", "b"], ["a", "b", "c"]].map(listed), ["", "a", "a and b", "a, b and c"]);
});
