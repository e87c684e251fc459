import assert from "node:assert/strict";
import { test } from "node:test";
import type { Osd } from "../api/contract.ts";
import { condition } from "../condition.ts";
import { sortBy } from "./colouring.ts";
import { layOut, type Layout } from "./layout.ts";
import type { Scene } from "./paint.ts";
import { blocksToPaint, looksOf } from "./painter.ts";
import { NOW, fleet, osd } from "./sample.ts";

const DISKS = fleet(6_000);
const LAYOUT = layOut(DISKS, 1232, null);

function scene(osds: readonly Osd[], told: Partial<Scene> = {}, layout: Layout = LAYOUT): Scene {
  const conditions = osds.map((one) => condition(one, NOW));
  return { layout, osds, conditions, ...sortBy("outlook", osds, NOW), shown: () => true, focused: null, hovered: null, ...told };
}

const painted = (before: Scene, after: Scene): readonly string[] => blocksToPaint(looksOf(before, 0), looksOf(after, 0)).map((block) => block.rack);
const changed = (number: number, told: Partial<Osd>): Osd[] => DISKS.with(number, osd(number, told));

test("the first scene, another layout and other colours are painted whole", () => {
  const first = looksOf(scene(DISKS), 0);
  assert.equal(blocksToPaint(null, first).length, LAYOUT.blocks.length);
  assert.equal(blocksToPaint(first, looksOf(scene(DISKS), 1)).length, LAYOUT.blocks.length);
  const narrow = layOut(DISKS, 900, null);
  assert.equal(blocksToPaint(first, looksOf(scene(DISKS, {}, narrow), 0)), narrow.blocks);
});

test("a new reading that changes no colour is not painted", () => {
  assert.deepEqual(painted(scene(DISKS), scene(changed(7, { as_of: NOW, p_fail_30d: 0.003 }))), []);
});

test("a disk that turns bad is painted with its rack, and no other rack", () => {
  assert.deepEqual(painted(scene(DISKS), scene(changed(301, { status: "bad" }))), ["r3"]);
});

test("a ring is taken from the rack that it leaves and drawn in the one that it enters", () => {
  assert.deepEqual(painted(scene(DISKS, { hovered: 0 }), scene(DISKS, { hovered: 200 })), ["r1", "r2"]);
  assert.deepEqual(painted(scene(DISKS, { hovered: 0 }), scene(DISKS, { hovered: 0 })), []);
});

test("a filter is painted where it hides a disk", () => {
  assert.deepEqual(painted(scene(DISKS), scene(DISKS, { shown: (index) => index >= 150 })), ["r1"]);
});

test("in rows every change is painted whole, since words stand beside the cells", () => {
  const few = DISKS.slice(0, 300);
  const layout = layOut(few, 1232, null);
  assert.equal(layout.style, "rows");
  assert.equal(painted(scene(few, {}, layout), scene(few, {}, layout)).length, layout.blocks.length);
});
