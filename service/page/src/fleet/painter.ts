/** Keeps a canvas true to the scene: only blocks that look otherwise are drawn, and many of them over several frames. */
import { paintBlock, paletteOf, sized, type Scene } from "./paint.ts";
import type { Block, Layout } from "./layout.ts";

/** Of a frame's 16 ms; the first picture of 50,000 disks takes some frames, and no frame holds up a key. */
const BUDGET_MS = 10;

/** What was drawn last, or is to be drawn. */
interface Looks {
  layout: Layout;
  theme: unknown;
  marks: string;
  /** A number for each cell: cells that look alike have the same. */
  cells: Int32Array;
  rings: readonly (number | null)[];
}

export function looksOf(scene: Scene, theme: unknown): Looks {
  const cells = new Int32Array(scene.osds.length);
  for (let index = 0; index < cells.length; index += 1) {
    const trouble = scene.conditions[index] === "good" ? 0 : 1;
    cells[index] = (scene.of[index] ?? 0) * 4 + (scene.shown(index) ? 2 : 0) + trouble;
  }
  const marks = [globalThis.devicePixelRatio, ...scene.buckets.map((bucket) => bucket.key)].join(" ");
  return { layout: scene.layout, theme, marks, cells, rings: [scene.hovered, scene.focused] };
}

/** The blocks that look otherwise than before. In rows every block does, since words stand beside its cells. */
export function blocksToPaint(before: Looks | null, after: Looks): readonly Block[] {
  const { layout } = after;
  const same = before?.layout === layout && before.theme === after.theme && before.marks === after.marks;
  if (!same || layout.style === "rows") return layout.blocks;
  const ringed = new Set([...before.rings, ...after.rings].filter((_, place, all) => all[place % 2] !== all[(place % 2) + 2]));
  return layout.blocks.filter((block) =>
    block.hosts.some((row) => row.cells.some(({ index }) => before.cells[index] !== after.cells[index] || ringed.has(index))),
  );
}

export class Painter {
  #last: Looks | null = null;
  #waiting = new Set<Block>();
  #frame = 0;
  /** Whether another layout still stands on the canvas. */
  #fresh = false;

  /** Draws a scene in place of the one before, from the next frame on. theme: another one where colours changed. */
  show(canvas: HTMLCanvasElement, scene: Scene, theme: unknown): void {
    const looks = looksOf(scene, theme);
    const blocks = blocksToPaint(this.#last, looks);
    if (this.#last?.layout !== scene.layout) {
      this.#fresh = true;
      this.#waiting.clear();
    }
    for (const block of blocks) this.#waiting.add(block);
    this.#last = looks;
    cancelAnimationFrame(this.#frame);
    if (this.#waiting.size > 0) this.#frame = requestAnimationFrame(() => this.#paint(canvas, scene));
  }

  stop(): void {
    cancelAnimationFrame(this.#frame);
  }

  #paint(canvas: HTMLCanvasElement, scene: Scene): void {
    const ctx = sized(canvas, scene.layout);
    if (!ctx) return;
    const whole = scene.layout.style === "rows";
    if (this.#fresh || whole) ctx.clearRect(0, 0, scene.layout.width, scene.layout.height);
    this.#fresh = false;
    const colour = paletteOf(canvas);
    const font = getComputedStyle(canvas).fontFamily;
    const until = performance.now() + BUDGET_MS;
    for (const block of this.#waiting) {
      paintBlock(ctx, scene, block, colour, font);
      this.#waiting.delete(block);
      if (!whole && performance.now() > until) break;
    }
    if (this.#waiting.size > 0) this.#frame = requestAnimationFrame(() => this.#paint(canvas, scene));
  }
}
