import assert from "node:assert/strict";
import { test } from "node:test";
import { layLabels, type Label, type Span } from "./labels.ts";

const LONG = "held 24 min, clients wait 1.31x as long as be\u2026";
const SHORT = "held 24 min";
const holds = (count: number): string => `${count} holds`;
const spanAt = (from: number, width = 3): Span => ({ from, to: from + width, texts: [LONG, SHORT] });
const lay = (spans: readonly Span[], start = 44, end = 320): Label[] => layLabels(spans, start, end, holds);

function checkRow(labels: readonly Label[], start: number, end: number): void {
  labels.forEach((label, place) => {
    assert.ok(label.at >= start && label.at + label.width <= end, `${label.text} at ${label.at} lies within ${start} to ${end}`);
    const next = labels[place + 1];
    assert.ok(!next || label.at + label.width < next.at, `${label.text} and ${next?.text} overlap`);
  });
}

test("a hold with room beside it has its whole label", () => {
  assert.deepEqual(lay([spanAt(500)], 150, 1100).map((label) => [label.text, label.at]), [[LONG, 508]]);
});

test("a wide hold has its label inside it", () => {
  assert.equal(lay([spanAt(200, 600)], 150, 1100)[0]?.at, 206);
});

test("labels that would touch are shortened before any is counted with its neighbour", () => {
  const labels = lay([spanAt(200), spanAt(420), spanAt(900)], 150, 1100);
  assert.deepEqual(labels.map((label) => label.text), [SHORT, SHORT, LONG]);
});

test("short holds beside each other are counted together, and every hold is in one label", () => {
  const labels = lay([50, 60, 70, 260, 270].map((at) => spanAt(at)));
  assert.deepEqual(labels.map((label) => [label.text, label.of]), [
    ["3 holds", [0, 1, 2]],
    ["2 holds", [3, 4]],
  ]);
});

test("no two labels overlap and none leaves its row, however many holds there are and wherever they lie", () => {
  for (const [start, end] of [[150, 1100], [44, 320], [44, 84], [44, 60]] as const) {
    for (let seed = 1; seed <= 200; seed += 1) {
      const count = 1 + ((seed * 7) % 40);
      const places = Array.from({ length: count }, (_, n) => start + ((seed * 131 + n * n * 37 + n * 211) % (end - start)));
      const spans = places.map((from, n) => ({ ...spanAt(from), to: Math.min(end, from + 2 + ((seed * n) % 90)) }));
      const labels = lay(spans, start, end);
      checkRow(labels, start, end);
      const counted = labels.flatMap((label) => label.of);
      assert.equal(new Set(counted).size, counted.length);
      if (end - start >= 80) assert.equal(counted.length, count);
    }
  }
});

test("a row that is too narrow for any text has no label", () => {
  assert.deepEqual(lay([spanAt(50)], 44, 60), []);
});
