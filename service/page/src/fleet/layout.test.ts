import assert from "node:assert/strict";
import { test } from "node:test";
import { cellAt, layOut } from "./layout.ts";
import { fleet, osd } from "./sample.ts";

const none = (): boolean => false;

test("450 disks stand as rows of named hosts, three racks abreast", () => {
  const layout = layOut(fleet(450), 1232, null);
  assert.equal(layout.style, "rows");
  assert.equal(new Set(layout.blocks.map((block) => block.y)).size, 1);
  assert.deepEqual(layout.blocks.map((block) => block.hosts.length), [15, 15, 15]);
});

test("6,000 disks stand as a block a rack, within a screen, no cell under 7 px", () => {
  const many = Array.from({ length: 6_000 }, (_, n) => osd(n, { host: `h${Math.floor(n / 20)}`, slot: n % 20, rack: `r${Math.floor(n / 400)}` }));
  const layout = layOut(many, 1232, null);
  assert.equal(layout.style, "blocks");
  assert.ok(layout.pitch >= 7);
  assert.ok(layout.height <= 400, `${layout.height}`);
});

test("a phone gets blocks, and one rack as rows when it is opened", () => {
  assert.equal(layOut(fleet(450), 358, null).style, "blocks");
  const rack = layOut(fleet(450), 358, "r2");
  assert.equal(rack.style, "rows");
  assert.deepEqual(rack.blocks.map((block) => block.rack), ["r2"]);
});

test("hosts are called by what tells them apart, without the domain that all of them share", () => {
  const called = (names: string[]) => {
    const disks = names.map((host, n) => osd(n, { host, slot: 0, rack: "r1" }));
    return layOut(disks, 1232, null).blocks.flatMap((block) => block.hosts.map((row) => row.label));
  };
  assert.deepEqual(called(["osd-1.dc1.example.com", "osd-2.dc1.example.com"]), ["osd-1", "osd-2"]);
  assert.deepEqual(called(["a.dc1.example.com", "b.dc2.example.com"]), ["a.dc1", "b.dc2"]);
  assert.deepEqual(called(["stor-1", "stor-2"]), ["stor-1", "stor-2"]);
  assert.deepEqual(called(["alone.example.com"]), ["alone.example.com"]);
});

test("every cell is hit at its own middle and nothing runs off the sheet", () => {
  for (const width of [358, 800, 1232]) {
    const layout = layOut(fleet(450), width, null);
    layout.cells.forEach((cell, index) => {
      assert.equal(cellAt(layout, cell.x, cell.y, none), index);
      assert.ok(cell.x > 0 && cell.x < width && cell.y > 0 && cell.y < layout.height);
    });
  }
});

test("a pointer beside a cell in trouble snaps to it, not past it", () => {
  const layout = layOut(fleet(450), 1232, null);
  const cell = layout.cells[217];
  assert.ok(cell);
  const trouble = (index: number): boolean => index === 217;
  assert.equal(cellAt(layout, cell.x + layout.pitch / 2 + 4, cell.y, trouble), 217);
  assert.equal(cellAt(layout, cell.x + layout.pitch / 2 + 4, cell.y, none), 218);
  assert.equal(cellAt(layout, cell.x + 2 * layout.pitch, cell.y, trouble), 219);
});

test("an empty slot stays empty, and OSDs whose slots have one number stand side by side", () => {
  const gap = layOut([osd(0), osd(1), osd(3)], 1232, null);
  assert.equal(Math.round(((gap.cells[2]?.x ?? 0) - (gap.cells[1]?.x ?? 0)) / gap.pitch), 2);
  const bare = layOut([0, 1, 3].map((n) => osd(n, { slot: 0 })), 1232, null);
  assert.equal(Math.round(((bare.cells[2]?.x ?? 0) - (bare.cells[1]?.x ?? 0)) / bare.pitch), 1);
});

test("disks stand in the order of their slots, and side by side where slots are far apart or unknown", () => {
  const columnsOf = (slots: number[]): (number | undefined)[] => {
    const disks = slots.map((slot, n) => osd(n, { slot }));
    const layout = layOut(disks, 1232, null);
    const left = layout.blocks[0]?.cellsX ?? 0;
    return layout.cells.map((cell) => Math.floor((cell.x - left) / layout.pitch));
  };
  assert.deepEqual(columnsOf([3, 1, 0]), [3, 1, 0]);
  assert.deepEqual(columnsOf([40, 1, 0]), [2, 1, 0]);
  assert.deepEqual(columnsOf([1, -1, 0]), [2, 0, 1]);
});

test("hosts without a rack stand in parts of neighbours, each named, within a screen", () => {
  const many = Array.from({ length: 6_000 }, (_, n) => osd(n, { host: `stor-${String(Math.floor(n / 20) + 1).padStart(3, "0")}`, slot: n % 20, rack: null }));
  const layout = layOut(many, 1232, null);
  assert.equal(layout.blocks.length, 15);
  assert.deepEqual(layout.blocks.map((block) => block.hosts.length), Array(15).fill(20));
  assert.equal(layout.blocks[1]?.title, "stor-021 to 040");
  assert.ok(layout.height <= 400, `${layout.height}`);
  assert.deepEqual(layOut(many, 358, "stor-021 to 040").blocks.map((block) => block.hosts.length), [20]);
});

test("few hosts without a rack stand together", () => {
  const few = Array.from({ length: 30 }, (_, n) => osd(n, { rack: null }));
  assert.deepEqual(layOut(few, 1232, null).blocks.map((block) => block.title), ["no rack"]);
});

test("a rack too large to be looked at is parted, under its name", () => {
  const huge = Array.from({ length: 2_000 }, (_, n) => osd(n, { host: `h${Math.floor(n / 20)}`, slot: n % 20, rack: "r1" }));
  const layout = layOut(huge, 1232, null);
  assert.deepEqual(layout.blocks.map((block) => block.rack), ["r1 h0 to 19", "r1 h20 to 39", "r1 h40 to 59", "r1 h60 to 79", "r1 h80 to 99"]);
});

test("hosts of sixty disks are wider than a phone, and none of their disks is left out", () => {
  const dense = Array.from({ length: 600 }, (_, n) => osd(n, { host: `h${Math.floor(n / 60)}`, slot: n % 60, rack: "r1" }));
  for (const zoom of [null, "r1"]) {
    const layout = layOut(dense, 358, zoom);
    for (const cell of layout.cells) assert.ok(cell.x + layout.pitch / 2 <= layout.width, `${cell.x} of ${layout.width}`);
  }
});

test("a rack of one disk is as wide on a phone as its name, not as its cell", () => {
  const [block] = layOut([osd(1, { rack: "rack-1", slot: 0 })], 358, null).blocks;
  assert.ok(block && block.width >= 80);
  const racks = Array.from({ length: 3 }, (_, n) => osd(n, { host: `h${n}`, rack: `rack-${n}`, slot: 0 }));
  assert.ok(layOut(racks, 358, null).width <= 358);
});
