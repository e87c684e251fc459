/** Draws blocks of the map on its canvas; `painter.ts` says which of them, and when. */
import type { Osd } from "../api/contract.ts";
import { brief, type Condition } from "../condition.ts";
import { FORMS } from "../forms.ts";
import type { Bucket } from "./colouring.ts";
import type { Block, Layout } from "./layout.ts";

export interface Scene {
  layout: Layout;
  osds: readonly Osd[];
  conditions: readonly Condition[];
  buckets: readonly Bucket[];
  of: Int16Array;
  /** Cells that the filter leaves out are drawn faint. */
  shown: (index: number) => boolean;
  focused: number | null;
  hovered: number | null;
}

const INSIDE_FROM = 16;
/** Smaller tiles have corners: nobody sees that they are not round, and thousands of round ones take most of a drawing. */
const ROUND_FROM = 10;
/** Letters of a rack's name that leave room for the slots' numbers beside it. */
const SHORT_TITLE = 11;
/** Room beside a rack's name for the number of its cells that are not good. */
const COUNT_WIDTH = 24;
const paths = new Map<string, Path2D>();

function pathOf(condition: Condition): Path2D {
  const known = paths.get(condition);
  if (known) return known;
  const path = new Path2D(FORMS[condition].path);
  paths.set(condition, path);
  return path;
}

/** Colours come from the style sheet, so that light, dark and forced colours are settled in one place. */
export function paletteOf(element: Element): (name: string) => string {
  const style = getComputedStyle(element);
  const known = new Map<string, string>();
  return (name) => {
    let value = known.get(name);
    if (value === undefined) {
      value = style.getPropertyValue(`--${name}`).trim() || "CanvasText";
      known.set(name, value);
    }
    return value;
  };
}

/** Room around a block for the ring and the marks of cells at its edge. */
const MARGIN = 5;

/** The context of a canvas that is as large as the layout; null where the browser has none. A canvas of another size is cleared. */
export function sized(canvas: HTMLCanvasElement, layout: Layout): CanvasRenderingContext2D | null {
  const scale = devicePixelRatio || 1;
  const width = Math.round(layout.width * scale);
  const height = Math.round(layout.height * scale);
  if (canvas.width !== width || canvas.height !== height) {
    canvas.width = width;
    canvas.height = height;
  }
  const ctx = canvas.getContext("2d");
  ctx?.setTransform(scale, 0, 0, scale, 0, 0);
  return ctx;
}

/** Draws one block in place of what stood there. */
export function paintBlock(
  ctx: CanvasRenderingContext2D,
  scene: Scene,
  block: Block,
  colour: (name: string) => string,
  font: string,
): void {
  const width = Math.max(block.width, block.cellsEnd - block.x);
  ctx.clearRect(block.x - MARGIN, block.y, width + 2 * MARGIN, block.height + MARGIN);
  paintNames(ctx, scene, block, colour, font);
  let alpha = 1;
  for (const row of block.hosts) {
    for (const cell of row.cells) {
      const own = scene.shown(cell.index) ? 1 : 0.18;
      if (own !== alpha) ctx.globalAlpha = alpha = own;
      paintCell(ctx, scene, cell.index, cell.x, cell.y, colour, font);
    }
  }
  ctx.globalAlpha = 1;
  const within = (index: number | null): boolean => block.hosts.some((row) => row.cells.some((cell) => cell.index === index));
  if (scene.hovered !== null && within(scene.hovered)) paintRing(ctx, scene, scene.hovered, colour("muted"));
  if (scene.focused !== null && within(scene.focused)) paintRing(ctx, scene, scene.focused, colour("text"));
}

function paintNames(ctx: CanvasRenderingContext2D, scene: Scene, block: Block, colour: (name: string) => string, font: string): void {
  const { layout, conditions } = scene;
  ctx.textBaseline = "middle";
  ctx.textAlign = "left";
  ctx.fillStyle = colour("text");
  ctx.font = `600 11px ${font}`;
  const rows = layout.style === "rows";
  const trouble = (index: number): boolean => conditions[index] !== "good" && scene.shown(index);
  ctx.fillText(fit(ctx, rows ? block.title : block.rack, rows && block.title.length <= SHORT_TITLE ? block.cellsX - block.x - 4 : block.width - COUNT_WIDTH), block.x, block.y + 9);
  ctx.font = `400 11px ${font}`;
  ctx.fillStyle = colour("muted");
  if (!rows) {
    const bad = block.hosts.reduce((sum, row) => sum + row.cells.filter((cell) => conditions[cell.index] !== "good").length, 0);
    ctx.textAlign = "right";
    if (bad > 0) ctx.fillText(String(bad), Math.max(block.cellsEnd, block.x + block.width), block.y + 9);
    return;
  }
  if (block.title.length <= SHORT_TITLE) ctx.fillText("slot 0", block.cellsX, block.y + 9);
  if (block.slots > 4) {
    ctx.textAlign = "right";
    ctx.fillText(String(block.slots - 1), block.cellsEnd - 2, block.y + 9);
    ctx.textAlign = "left";
  }
  for (const row of block.hosts) {
    const troubled = row.cells.filter((cell) => trouble(cell.index));
    ctx.font = `${troubled.length ? 600 : 400} 11px ${font}`;
    ctx.fillStyle = colour(troubled.length ? "text" : "muted");
    ctx.fillText(fitEnd(ctx, row.label, block.cellsX - block.x - 6), block.x, row.y);
    let x = block.cellsEnd + 8;
    troubled.forEach((cell, place) => {
      const osd = scene.osds[cell.index];
      const condition = conditions[cell.index];
      if (!osd || !condition || place > 2) return;
      const room = block.x + block.width - x;
      const words = troubled.length > 1 ? String(osd.osd) : `${osd.osd}  ${brief(osd, condition)}`;
      const text = place === 2 && troubled.length > 3 ? `+${troubled.length - 2}` : words;
      if (room < 16) return;
      ctx.font = `600 11px ${font}`;
      ctx.fillStyle = colour(`text-${condition}`);
      ctx.fillText(fit(ctx, text, room), x, row.y);
      x += ctx.measureText(text).width + 8;
    });
  }
}

function fit(ctx: CanvasRenderingContext2D, text: string, room: number): string {
  if (ctx.measureText(text).width <= room) return text;
  let short = text;
  while (short.length > 1 && ctx.measureText(`${short}\u2026`).width > room) short = short.slice(0, -1);
  return `${short}\u2026`;
}

/** Names of one cluster begin alike: what tells them apart is their end. */
function fitEnd(ctx: CanvasRenderingContext2D, text: string, room: number): string {
  if (ctx.measureText(text).width <= room) return text;
  let short = text;
  while (short.length > 1 && ctx.measureText(`\u2026${short}`).width > room) short = short.slice(1);
  return `\u2026${short}`;
}

function paintCell(
  ctx: CanvasRenderingContext2D,
  scene: Scene,
  index: number,
  x: number,
  y: number,
  colour: (name: string) => string,
  font: string,
): void {
  const mark = scene.buckets[scene.of[index] ?? 0]?.mark;
  if (!mark) return;
  const { pitch } = scene.layout;
  if ("condition" in mark) {
    paintCondition(ctx, mark.condition, x, y, pitch, colour, font);
    return;
  }
  const width = Math.max(4, pitch * 0.72);
  const height = Math.max(4, Math.min(pitch * 0.72, pitch >= INSIDE_FROM ? 13 : 99));
  if ("step" in mark) {
    ctx.fillStyle = colour(`ramp-${mark.step}`);
    filled(ctx, x, y, width, height);
  } else if ("hollow" in mark) {
    ctx.strokeStyle = colour("unknown");
    ctx.lineWidth = 1.2;
    tile(ctx, x, y, width - 1, height - 1);
    ctx.stroke();
  } else {
    ctx.fillStyle = colour("text");
    ctx.font = `600 ${Math.max(7, Math.min(12, pitch - 2))}px ${font}`;
    ctx.textAlign = "center";
    ctx.textBaseline = "middle";
    ctx.fillText(mark.letter, x, y + 0.5);
  }
}

function paintCondition(
  ctx: CanvasRenderingContext2D,
  condition: Condition,
  x: number,
  y: number,
  pitch: number,
  colour: (name: string) => string,
  font: string,
): void {
  const inside = pitch >= INSIDE_FROM;
  if (condition === "good") {
    const side = inside ? pitch * 0.72 : Math.max(4, Math.round(pitch * 0.62));
    ctx.fillStyle = colour("good");
    filled(ctx, x, y, side, inside ? Math.min(13, side) : side);
    return;
  }
  const own = colour(condition);
  const hollow = condition === "unknown" || condition === "old" || condition === "drained" || condition === "down";
  if (!inside) {
    stamp(ctx, condition, x, y, Math.max(9, pitch * 1.1), own);
    return;
  }
  const width = pitch * 0.8;
  if (hollow) {
    ctx.fillStyle = colour("surface");
    ctx.strokeStyle = own;
    ctx.lineWidth = 1.5;
    tile(ctx, x, y, width, 14);
    ctx.fill();
    ctx.stroke();
  } else {
    ctx.fillStyle = own;
    tile(ctx, x, y, width + 1, 15);
    ctx.fill();
  }
  if (condition === "unknown" || condition === "old") {
    ctx.fillStyle = own;
    ctx.font = `600 10px ${font}`;
    ctx.textAlign = "center";
    ctx.textBaseline = "middle";
    ctx.fillText(condition === "unknown" ? "?" : "\u2022", x, y + 0.5);
  } else {
    stamp(ctx, condition, x, y, 10, hollow ? own : colour(`on-${condition}`));
  }
}

function stamp(ctx: CanvasRenderingContext2D, condition: Condition, x: number, y: number, size: number, own: string): void {
  const form = FORMS[condition];
  const scale = size / 16;
  ctx.save();
  ctx.translate(x - size / 2, y - size / 2);
  ctx.scale(scale, scale);
  if (form.line) {
    ctx.strokeStyle = own;
    ctx.lineWidth = Math.max(2, 1.4 / scale);
    ctx.stroke(pathOf(condition));
  } else {
    ctx.fillStyle = own;
    ctx.fill(pathOf(condition));
  }
  ctx.restore();
}

function filled(ctx: CanvasRenderingContext2D, x: number, y: number, width: number, height: number): void {
  if (width < ROUND_FROM) {
    ctx.fillRect(Math.round(x - width / 2), Math.round(y - height / 2), width, height);
    return;
  }
  tile(ctx, x, y, width, height);
  ctx.fill();
}

function tile(ctx: CanvasRenderingContext2D, x: number, y: number, width: number, height: number): void {
  ctx.beginPath();
  ctx.roundRect(x - width / 2, y - height / 2, width, height, Math.min(2, width / 4));
}

function paintRing(ctx: CanvasRenderingContext2D, scene: Scene, index: number | null, own: string): void {
  const cell = index === null ? undefined : scene.layout.cells[index];
  if (!cell) return;
  const side = Math.max(12, scene.layout.pitch + 1);
  const height = scene.layout.pitch >= INSIDE_FROM ? 20 : side;
  ctx.strokeStyle = own;
  ctx.lineWidth = 2;
  ctx.beginPath();
  ctx.roundRect(cell.x - side / 2, cell.y - height / 2, side, height, 3);
  ctx.stroke();
}
