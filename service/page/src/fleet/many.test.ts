import assert from "node:assert/strict";
import { test } from "node:test";
import { Problem } from "../api/client.ts";
import type { Osd } from "../api/contract.ts";
import { askEach, drainable, noneDrainable, outcomesOf, proposalsOf, silencesOf, type Asked } from "./many.ts";
import { rowsOfOsds, type DiskRow } from "./rows.ts";
import { NOW, osd } from "./sample.ts";

const row = (told: Partial<Osd> = {}, number = 1): DiskRow => rowsOfOsds([osd(number, told)], [], NOW)[0]!;
const drain = (state: NonNullable<Osd["drain"]>["state"]): Partial<Osd> => ({ drain: { state } as NonNullable<Osd["drain"]> });
const ASKED: Asked[] = ["a", "b", "c"].map((name) => ({ name, path: `drains/${name}`, body: {} }));

test("a silence meets the id of its disk alone, whatever signs of a pattern stand in it", () => {
  const [asked] = silencesOf([row({ device: "ST[1]*?_X" })], 4, "moved");
  assert.equal((asked?.body as { name: string }).name, "*:ST[[]1][*][?]_X");
  assert.equal(asked?.path, "silences");
});

test("a disk without an id is neither silenced nor noted", () => {
  const nameless = row({ device: null });
  assert.deepEqual([silencesOf([nameless], 4, "moved"), outcomesOf([nameless], "failed", "")], [[], []]);
});

test("an outcome is noted under the id of the disk, with a slash that is no part of the path", () => {
  assert.equal(outcomesOf([row({ device: "ST_Z1/0" })], "failed", "")[0]?.path, "devices/ST_Z1%2F0/outcome");
});

test("a drain is proposed where the service would accept it, whatever the state of the last one, and the OSD has not left", () => {
  const blocked = { blocking_drain: "osd.8-1" };
  assert.deepEqual([row(), row(drain("cancelled")), row(drain("verified")), row({ up: false })].map(drainable), [true, true, true, true]);
  assert.deepEqual([row({ ...drain("draining"), ...blocked }), row(blocked), row({ up: false, in: false })].map(drainable), [false, false, false]);
  const rows = [row({}, 7), row(blocked, 8)];
  assert.deepEqual(proposalsOf(rows, "old"), [{ name: "osd.7", path: "drains", body: { target: "osd.7", intent: "replace", reason: "old" } }]);
});

test("where no chosen disk can be drained, the drain in the way is named, and of a failed one what ends it", () => {
  const failed = row({ ...drain("failed"), blocking_drain: "osd.8-1" });
  assert.equal(noneDrainable([failed]), "a drain stands in the way: osd.8-1, which failed: resume or cancel it");
  assert.equal(noneDrainable([row({ blocking_drain: "a" }), row({ blocking_drain: "b" })]), "2 drains stand in the way, such as a");
  assert.equal(noneDrainable([row({ up: false, in: false })]), "none of them is an OSD that can be drained now");
});

test("a refusal concerns one disk, and the next is asked for", async () => {
  const told: number[] = [];
  const send = async (path: string): Promise<void> => {
    if (path === "drains/b") throw new Problem(409, "A drain is under way.");
  };
  const result = await askEach(ASKED, send, (done) => told.push(done));
  assert.deepEqual(result, { done: 2, refused: [{ name: "b", sentence: "A drain is under way." }], stopped: null });
  assert.deepEqual(told, [1, 2, 3]);
});

for (const [what, error] of [
  ["without the right", new Problem(403, "Not allowed.")],
  ["once signed out", new Problem(401, "Sign in.")],
  ["of a service that is asked too often", new Problem(429, "Later.")],
  ["of a service that does not answer", new TypeError("Failed to fetch")],
] as const) {
  test(`nothing further is asked ${what}`, async () => {
    const asked: string[] = [];
    const send = async (path: string): Promise<void> => {
      asked.push(path);
      if (path === "drains/b") throw error;
    };
    const { done, stopped } = await askEach(ASKED, send, () => undefined);
    assert.deepEqual([asked, done], [["drains/a", "drains/b"], 1]);
    assert.notEqual(stopped, null);
  });
}
