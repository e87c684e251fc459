import assert from "node:assert/strict";
import { test } from "node:test";
import { fleet, osd } from "../fleet/sample.ts";
import { type ListPage, Problem } from "./client.ts";
import { FollowedList, followOsds, merged, placeOf } from "./followed.ts";

const numberOf = (one: { osd: number }): number => one.osd;
/** A page as the service answers with it: with the query of the next page beside its body, in a header. */
const page = (told: object, query: string | null = null): ListPage => {
  const next = query === null ? null : (new URLSearchParams(query).get("cursor"));
  return { body: Promise.resolve({ next, removed: [], full: true, at: "a-1", ...told }), next: query };
};
/** Answers in turn, and notes what was asked. */
const asker = (answers: ListPage[], asked: string[] = []) => async (path: string): Promise<ListPage> => {
  asked.push(path);
  const answer = answers.shift();
  assert.ok(answer, `nothing is left to answer ${path}`);
  return answer;
};

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
  const ask = asker(answers, asked);
  await list.now(ask);
  const second = await list.now(ask);
  assert.equal(second[1]?.up, false);
  assert.equal(await list.now(ask), second);
  assert.deepEqual(asked, ["osds", "osds?since=a-1", "osds?since=a-2"]);
});

test("a service that does not know what was seen answers with everything, and that replaces all", async () => {
  const answers = [page({ items: fleet(3) }), page({ items: [osd(7)], at: "b-1" })];
  const list = followOsds();
  const ask = asker(answers);
  await list.now(ask);
  assert.deepEqual((await list.now(ask)).map((one) => one.osd), [7]);
});

test("pages are joined; what changed between them comes with the answer since the first of them", async () => {
  const asked: string[] = [];
  const changed = osd(0, { up: false });
  const answers = [
    page({ items: fleet(2) }, "?cursor=x"),
    page({ items: [osd(2)], at: "a-3" }),
    page({ items: [changed], full: false, at: "a-3" }),
  ];
  const list = followOsds();
  const ask = asker(answers, asked);
  assert.equal((await list.now(ask)).length, 3);
  assert.equal((await list.now(ask))[0], changed);
  assert.deepEqual(asked, ["osds", "osds?cursor=x", "osds?since=a-1"]);
});

test("changes that fill more than one page are asked for since the same answer", async () => {
  const asked: string[] = [];
  const answers = [
    page({ items: fleet(3) }),
    page({ items: [osd(0, { up: false })], full: false, at: "a-2" }, "?since=a-1&cursor=y"),
    page({ items: [osd(2, { up: false })], full: false, at: "a-4" }),
    page({ items: [], full: false, at: "a-4" }),
  ];
  const list = followOsds();
  const ask = asker(answers, asked);
  await list.now(ask);
  assert.deepEqual((await list.now(ask)).map((one) => one.up), [false, true, false]);
  await list.now(ask);
  assert.deepEqual(asked, ["osds", "osds?since=a-1", "osds?since=a-1&cursor=y", "osds?since=a-2"]);
});

test("an OSD is found by its number, and one that is not there is not", () => {
  const some = [osd(1), osd(4), osd(9)];
  assert.deepEqual([0, 1, 4, 5, 9, 10].map((number) => placeOf(some, number)), [null, 0, 1, null, 2, null]);
  assert.equal(placeOf([], 1), null);
});

test("a list whose path has a query of its own keeps it beside what is asked", async () => {
  const asked: string[] = [];
  const answers = [page({ items: [{ id: "a" }] }, "?limit=2&cursor=x"), page({ items: [{ id: "b" }] }), page({ items: [{ id: "c" }], full: false, removed: ["a"] })];
  const list = new FollowedList<{ id: string }>("devices?limit=2", (one) => one.id);
  const ask = asker(answers, asked);
  await list.now(ask);
  assert.deepEqual((await list.now(ask)).map((one) => one.id), ["b", "c"]);
  assert.deepEqual(asked, ["devices?limit=2", "devices?limit=2&cursor=x", "devices?limit=2&since=a-1"]);
});

test("the next page is asked for while the page before is still on its way", async () => {
  const asked: string[] = [];
  let arrive: (body: unknown) => void = () => undefined;
  const slow: ListPage = { body: new Promise((resolve) => (arrive = resolve)), next: "?cursor=x" };
  const rows = followOsds().now(asker([slow, page({ items: [osd(2)] })], asked));
  await new Promise((later) => setTimeout(later));
  assert.deepEqual(asked, ["osds", "osds?cursor=x"]);
  arrive(await page({ items: fleet(2), next: "x" }).body);
  assert.deepEqual((await rows).map((one) => one.osd), [0, 1, 2]);
});

test("a list whose next page no header names is refused, and never shown as whole", async () => {
  const cut: ListPage = { ...page({ items: fleet(2) }, "?cursor=x"), next: null };
  await assert.rejects(followOsds().now(asker([cut])), (error) => error instanceof Problem && error.message.includes("Link header"));
});

test("a page that breaks off ends the round, and the next round asks for the whole list", async () => {
  const broken: ListPage = { body: Promise.reject(new TypeError("network")), next: "?cursor=x" };
  const asked: string[] = [];
  const list = followOsds();
  const ask = asker([broken, page({ items: [osd(2)] }), page({ items: fleet(3) })], asked);
  await assert.rejects(list.now(ask), TypeError);
  assert.equal((await list.now(ask)).length, 3);
  assert.equal(asked.at(-1), "osds");
});
