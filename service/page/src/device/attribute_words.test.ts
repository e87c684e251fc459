import assert from "node:assert/strict";
import { test } from "node:test";
import { rarityWords } from "./attribute_words.ts";

const told = (better: number, equal: number, compared = 200, same_model = true) =>
  rarityWords({ worse: "high", shows_fault: true, rarity: { better, equal, compared, same_model } });

test("a value above that of all peers is rare, and the peers are counted", () => {
  assert.deepEqual(told(200, 0), { text: "higher than on all others", among: "200 others of its model", rare: true });
});

test("a value that most peers have is not rare", () => {
  assert.deepEqual(told(0, 200), { text: "the same on every one", among: "200 others of its model", rare: false });
  assert.equal(told(20, 180).text, "the same on 90 %");
});

test("few peers that are as bad are said by their number", () => {
  assert.deepEqual(told(198, 1), { text: "as bad on 1 % (2 drives)", among: "200 others of its model", rare: true });
});

test("drives of other models are said to be compared", () => {
  assert.equal(told(3, 0, 7, false).among, "all 7 other drives that report it");
});

test("a rare value of work is no sign of a fault", () => {
  const rarity = { better: 200, equal: 0, compared: 200, same_model: true };
  assert.equal(rarityWords({ worse: "high", shows_fault: false, rarity }).rare, false);
});
