/** Where every cell stands. A row a host and racks abreast while hosts can be named; a block a rack when there are too many. */
import type { Osd } from "../api/contract.ts";

export interface Cell {
  /** Index into the list of OSDs that was laid out. */
  index: number;
  x: number;
  y: number;
}

export interface HostRow {
  host: string;
  /** Its name without the domain that all hosts share. */
  label: string;
  y: number;
  /** In the order of slots. */
  cells: Cell[];
}

export interface Block {
  /** As the address names it. */
  rack: string;
  title: string;
  x: number;
  y: number;
  width: number;
  height: number;
  /** Left edge of the first cell, and right edge of the last. */
  cellsX: number;
  cellsEnd: number;
  hosts: HostRow[];
  slots: number;
}

export interface Layout {
  style: "rows" | "blocks";
  pitch: number;
  rowPitch: number;
  blocks: Block[];
  width: number;
  height: number;
  /** By index of OSD. */
  cells: Cell[];
}

const HEAD = 22;
const ROWS_PITCH = 23;
const PITCH_LEAST = 7;
const PITCH_MOST = 24;
const HOST_WIDTH = 64;
const LABEL_WIDTH = 104;
const MOST_ROWS_STYLE = 600;
/** A rack of few slots is as wide as its name. */
const BLOCK_LEAST = 80;
const HOSTS_A_PART = 20;
const CELLS_A_PART = 400;

interface Host {
  name: string;
  /** Indices of its OSDs in the order of slots. */
  indices: number[];
  /** By place in `indices`. */
  columns: number[];
}

interface Rack {
  name: string;
  title: string;
  hosts: Host[];
  slots: number;
}

const natural = new Intl.Collator("en", { numeric: true });

function racksOf(osds: readonly Osd[]): Rack[] {
  const racks = new Map<string | null, Map<string, number[]>>();
  osds.forEach(({ rack, host }, index) => {
    const hosts = racks.get(rack) ?? new Map<string, number[]>();
    racks.set(rack, hosts);
    const indices = hosts.get(host);
    if (indices) indices.push(index);
    else hosts.set(host, [index]);
  });
  return [...racks]
    .sort((a, b) => natural.compare(a[0] ?? "", b[0] ?? ""))
    .flatMap(([name, hosts]) => {
      const rows = [...hosts].sort((a, b) => natural.compare(a[0], b[0])).map(([host, indices]) => hostOf(host, indices, osds));
      return parted(name, rows);
    });
}

/** A rack as it is; hosts without one, and racks too large to be looked at, in parts of neighbouring hosts. */
function parted(rack: string | null, hosts: Host[]): Rack[] {
  const slots = Math.max(1, ...hosts.map((host) => (host.columns.at(-1) ?? 0) + 1));
  const most = Math.max(1, Math.min(HOSTS_A_PART, Math.floor(CELLS_A_PART / slots)));
  const parts = rack === null ? Math.ceil(hosts.length / most) : hosts.length * slots > 2 * CELLS_A_PART ? Math.ceil(hosts.length / most) : 1;
  if (parts === 1) {
    const name = rack ?? "no rack";
    return [{ name, title: rack === null || /^rack/i.test(rack) ? name : `rack ${rack}`, hosts, slots }];
  }
  const each = Math.ceil(hosts.length / parts);
  return Array.from({ length: Math.ceil(hosts.length / each) }, (_, part) => {
    const own = hosts.slice(part * each, (part + 1) * each);
    const name = [rack, fromTo(own[0]?.name ?? "", own.at(-1)?.name ?? "")].filter(Boolean).join(" ");
    return { name, title: name, hosts: own, slots };
  });
}

/** "stor-001 to 020": what both names begin with is said once. */
function fromTo(first: string, last: string): string {
  const stem = /^.*?(?=\d*$)/.exec(first)?.[0] ?? "";
  return first === last ? first : `${first} to ${stem && last.startsWith(stem) && last !== stem ? last.slice(stem.length) : last}`;
}

/** ".dc1.example.com": the domain that all names end with; empty where some has another one, or there is one name only. */
function shared(names: readonly string[]): string {
  const [first = "", ...others] = names;
  for (let dot = first.indexOf("."); dot > 0 && others.length > 0; dot = first.indexOf(".", dot + 1)) {
    const domain = first.slice(dot);
    if (others.every((name) => name.endsWith(domain) && name.length > domain.length)) return domain;
  }
  return "";
}

/** Slots keep their gaps where they are numbered closely; otherwise disks stand side by side. */
function hostOf(name: string, indices: number[], osds: readonly Osd[]): Host {
  const slotOf = (index: number): number => osds[index]?.slot ?? 0;
  indices.sort((a, b) => slotOf(a) - slotOf(b) || (osds[a]?.osd ?? 0) - (osds[b]?.osd ?? 0));
  const slots = indices.map(slotOf);
  const real = (slots[0] ?? 0) >= 0 && slots.every((slot, place) => slot !== slots[place - 1]);
  const tight = real && (slots.at(-1) ?? 0) < indices.length * 2 + 4;
  return { name, indices, columns: tight ? slots : slots.map((_, place) => place) };
}

/** `zoom` shows one rack alone, as rows. `width` in CSS pixels; `compact` for a window that is not tall. */
export function layOut(osds: readonly Osd[], width: number, zoom: string | null, compact = false): Layout {
  const racks = racksOf(osds).filter((rack) => zoom === null || rack.name === zoom);
  const many = racks.reduce((sum, rack) => sum + rack.hosts.reduce((n, host) => n + host.indices.length, 0), 0);
  const rows = zoom !== null || (many <= MOST_ROWS_STYLE && width >= 700);
  return rows ? asRows(racks, osds.length, width, compact) : asBlocks(racks, osds.length, width);
}

function asRows(racks: Rack[], many: number, width: number, compact: boolean): Layout {
  const abreast = Math.max(1, Math.min(racks.length, Math.floor(width / 330), 3));
  const gap = 24;
  const blockWidth = Math.floor((width - gap * (abreast - 1)) / abreast);
  const slots = Math.max(1, ...racks.map((rack) => rack.slots));
  const label = width < 500 ? 68 : LABEL_WIDTH;
  const pitch = clamp(Math.floor((blockWidth - HOST_WIDTH - label) / slots), PITCH_LEAST, ROWS_PITCH);
  return place(racks, many, {
    style: "rows",
    pitch,
    rowPitch: compact || pitch <= 20 ? 20 : ROWS_PITCH,
    abreast,
    blockWidth,
    gap,
    left: HOST_WIDTH,
    width,
  });
}

function asBlocks(racks: Rack[], many: number, width: number): Layout {
  const slots = Math.max(1, ...racks.map((rack) => rack.slots));
  const tallest = Math.max(1, ...racks.map((rack) => rack.hosts.length));
  const gap = width < 500 ? 8 : 16;
  const room = width < 500 ? 220 : 400;
  const wide = (pitch: number): number => Math.min(width, Math.max(slots * pitch, BLOCK_LEAST));
  let pitch = PITCH_MOST;
  let abreast = 1;
  for (; pitch >= PITCH_LEAST; pitch -= 1) {
    if (slots * pitch > width) continue;
    abreast = Math.floor((width + gap) / (wide(pitch) + gap));
    const lines = Math.ceil(racks.length / abreast);
    if (lines * (tallest * pitch + HEAD) <= room) break;
  }
  pitch = Math.max(PITCH_LEAST, pitch);
  const blockWidth = Math.max(wide(pitch), slots * pitch);
  abreast = Math.max(1, Math.min(racks.length, Math.floor((width + gap) / (blockWidth + gap))));
  return place(racks, many, { style: "blocks", pitch, rowPitch: pitch, abreast, blockWidth, gap, left: 0, width });
}

interface Plan {
  style: "rows" | "blocks";
  pitch: number;
  rowPitch: number;
  abreast: number;
  blockWidth: number;
  gap: number;
  left: number;
  width: number;
}

function place(racks: Rack[], many: number, plan: Plan): Layout {
  const cells = new Array<Cell>(many);
  const domain = shared(racks.flatMap((rack) => rack.hosts.map((host) => host.name)));
  const blocks: Block[] = [];
  let top = 0;
  for (let first = 0; first < racks.length; first += plan.abreast) {
    const line = racks.slice(first, first + plan.abreast);
    const tallest = Math.max(...line.map((rack) => rack.hosts.length));
    line.forEach((rack, column) => {
      const x = column * (plan.blockWidth + plan.gap);
      const hosts = rack.hosts.map((host, row): HostRow => {
        const y = top + HEAD + row * plan.rowPitch + plan.rowPitch / 2;
        const placed = host.indices.map((index, at): Cell => ({ index, x: x + plan.left + ((host.columns[at] ?? 0) + 0.5) * plan.pitch, y }));
        for (const cell of placed) cells[cell.index] = cell;
        return { host: host.name, label: host.name.slice(0, host.name.length - domain.length), y, cells: placed };
      });
      blocks.push({
        rack: rack.name,
        title: rack.title,
        x,
        y: top,
        width: plan.blockWidth,
        height: HEAD + rack.hosts.length * plan.rowPitch,
        cellsX: x + plan.left,
        cellsEnd: x + plan.left + rack.slots * plan.pitch,
        hosts,
        slots: rack.slots,
      });
    });
    top += HEAD + tallest * plan.rowPitch + 4;
  }
  // Hosts of very many disks are wider than a phone: the sheet is as wide as they are, and is moved under the window.
  const width = Math.max(plan.width, ...blocks.map((block) => block.cellsEnd));
  return { style: plan.style, pitch: plan.pitch, rowPitch: plan.rowPitch, blocks, width, height: top, cells };
}

/** The cell under a point, snapping within 6 px to one that `isTrouble`. Null beside the map. */
export function cellAt(layout: Layout, x: number, y: number, isTrouble: (index: number) => boolean): number | null {
  let under: number | null = null;
  let snapped: number | null = null;
  let nearest = 6 + layout.pitch / 2;
  for (const block of layout.blocks) {
    if (x < block.cellsX - 6 || x > block.cellsEnd + 6 || y < block.y || y > block.y + block.height + 6) continue;
    for (const row of block.hosts) {
      if (Math.abs(row.y - y) > layout.rowPitch / 2 + 6) continue;
      for (const cell of row.cells) {
        const dx = Math.abs(cell.x - x);
        const dy = Math.abs(cell.y - y);
        if (dx <= layout.pitch / 2 && dy <= layout.rowPitch / 2) under = cell.index;
        const far = Math.hypot(dx, dy);
        if (far < nearest && isTrouble(cell.index)) {
          nearest = far;
          snapped = cell.index;
        }
      }
    }
  }
  return under !== null && isTrouble(under) ? under : (snapped ?? under);
}

function clamp(value: number, least: number, most: number): number {
  return Math.max(least, Math.min(most, value));
}
