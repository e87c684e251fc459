import assert from "node:assert/strict";
import { test } from "node:test";
import { fleet, osd } from "../fleet/sample.ts";
import { FollowedList, followOsds, merged, placeOf } from "./followed.ts";

const numberOf = (one: { osd: number }): number => one.osd;
const page = (told: object): object => ({ next: null, removed: [], full: true, at: "a-1", ...told });

test("what changed stands in its place, what is gone is gone, the rest is the same object", () => {
  const before = fleet(4);
  const after = merged(before, [osd(1, { status: "bad" }), osd(9)], [2], numberOf);
  assert.deepEqual(after.map((one) => [one.osd, one.status]), [[0, "good"], [1, "bad"], [3, "good"], [9, "good"]]);
  assert.equal(after[0], before[0]);
});

test("nothing new is the same list, so that nothing is painted", () => {
  const before = fleet(3);
  assert.equal(merged(before, [], [], numberOf), before);
});

test("the first answer is whole, later ones are asked for by what was seen last", async () => {
  const asked: string[] = [];
  const answers = [page({ items: fleet(3) }), page({ items: [osd(1, { up: false })], full: false, at: "a-2" }), page({ items: [], full: false, at: "a-2" })];
  const list = followOsds();
  const ask = async (path: string): Promise<unknown> => (asked.push(path), answers.shift());
  await list.now(ask);
  const second = await list.now(ask);
  assert.equal(second[1]?.up, false);
  assert.equal(await list.now(ask), second);
  assert.deepEqual(asked, ["osds", "osds?since=a-1", "osds?since=a-2"]);
});

test("a service that does not know what was seen answers with everything, and that replaces all", async () => {
  const answers = [page({ items: fleet(3) }), page({ items: [osd(7)], at: "b-1" })];
  const list = followOsds();
  const ask = async (): Promise<unknown> => answers.shift();
  await list.now(ask);
  assert.deepEqual((await list.now(ask)).map((one) => one.osd), [7]);
});

test("pages are joined; what changed between them comes with the answer since the first of them", async () => {
  const asked: string[] = [];
  const changed = osd(0, { up: false });
  const answers = [
    page({ items: fleet(2), next: "x" }),
    page({ items: [osd(2)], at: "a-3" }),
    page({ items: [changed], full: false, at: "a-3" }),
  ];
  const list = followOsds();
  const ask = async (path: string): Promise<unknown> => (asked.push(path), answers.shift());
  assert.equal((await list.now(ask)).length, 3);
  assert.equal((await list.now(ask))[0], changed);
  assert.deepEqual(asked, ["osds", "osds?cursor=x", "osds?since=a-1"]);
});

test("changes that fill more than one page are asked for since the same answer", async () => {
  const asked: string[] = [];
  const answers = [
    page({ items: fleet(3) }),
    page({ items: [osd(0, { up: false })], full: false, next: "y", at: "a-2" }),
    page({ items: [osd(2, { up: false })], full: false, at: "a-4" }),
    page({ items: [], full: false, at: "a-4" }),
  ];
  const list = followOsds();
  const ask = async (path: string): Promise<unknown> => (asked.push(path), answers.shift());
  await list.now(ask);
  assert.deepEqual((await list.now(ask)).map((one) => one.up), [false, true, false]);
  await list.now(ask);
  assert.deepEqual(asked, ["osds", "osds?since=a-1", "osds?cursor=y&since=a-1", "osds?since=a-2"]);
});

test("an OSD is found by its number, and one that is not there is not", () => {
  const some = [osd(1), osd(4), osd(9)];
  assert.deepEqual([0, 1, 4, 5, 9, 10].map((number) => placeOf(some, number)), [null, 0, 1, null, 2, null]);
  assert.equal(placeOf([], 1), null);
});

test("a list whose path has a query of its own keeps it beside what is asked", async () => {
  const asked: string[] = [];
  const answers = [page({ items: [{ id: "a" }], next: "x" }), page({ items: [{ id: "b" }] }), page({ items: [{ id: "c" }], full: false, removed: ["a"] })];
  const list = new FollowedList<{ id: string }>("devices?limit=2", (one) => one.id);
  const ask = async (path: string): Promise<unknown> => (asked.push(path), answers.shift());
  await list.now(ask);
  assert.deepEqual((await list.now(ask)).map((one) => one.id), ["b", "c"]);
  assert.deepEqual(asked, ["devices?limit=2", "devices?limit=2&cursor=x", "devices?limit=2&since=a-1"]);
});
