/** The map of all disks: one canvas for the eye, a grid of the focused rack over it for keys and screen readers. */
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Osd } from "../api/contract.ts";
import { placeOf } from "../api/followed.ts";
import { condition } from "../condition.ts";
import { onLetter } from "../keys.ts";
import { osdLink } from "../links.ts";
import { go, route, withQuery } from "../route.ts";
import { useWidth } from "../width.ts";
import type { Sorted } from "./colouring.ts";
import { RackGrid } from "./grid.tsx";
import { cellAt, layOut, type Layout } from "./layout.ts";
import { Painter } from "./painter.ts";
import { Tooltip } from "./tooltip.tsx";

interface Props {
  osds: readonly Osd[];
  sorted: Sorted;
  shown: (index: number) => boolean;
  now: string | null;
}

const PHONE = 600;
const TALL = 1000;
/** From so many disks on the map is laid out after the paint of all else: one frame would take longer than 100 ms. */
const LAID_OUT_LATER = 10_000;

export function FleetMap({ osds, sorted, shown, now }: Props) {
  const frame = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const width = useWidth(frame);
  const theme = useTheme();
  const zoom = route.value.query.get("rack");
  const [focused, setFocused] = useState<number | null>(null);
  const [hovered, setHovered] = useState<number | null>(null);
  const steered = useRef(false);

  const places = usePlaces(osds);
  const painted = usePainted(osds.length < LAID_OUT_LATER);
  const layout = useMemo(() => (width > 0 && painted ? layOut(osds, width, zoom, innerHeight < TALL) : null), [places, width, zoom, painted]);
  const conditions = useMemo(() => osds.map((osd) => condition(osd, now)), [osds, now]);
  const focusedIndex = focused === null ? null : placeOf(osds, focused);
  const hoveredIndex = hovered === null ? null : placeOf(osds, hovered);

  const painter = useRef<Painter | null>(null);
  painter.current ??= new Painter();
  useLayoutEffect(() => {
    if (!canvas.current || !layout) return;
    const scene = { layout, osds, conditions, ...sorted, shown, focused: focusedIndex, hovered: hoveredIndex };
    painter.current?.show(canvas.current, scene, theme);
  }, [layout, osds, conditions, sorted, shown, focusedIndex, hoveredIndex, theme]);
  useEffect(() => () => painter.current?.stop(), []);

  const step = (by: 1 | -1): void => {
    if (!layout) return;
    const order = layout.blocks.flatMap((block) => block.hosts.flatMap((row) => row.cells.map((cell) => cell.index)));
    const troubled = order.filter((index) => conditions[index] !== "good" && shown(index));
    if (troubled.length === 0) return;
    const place = focusedIndex === null ? -1 : troubled.indexOf(focusedIndex);
    const at = place < 0 ? (by === 1 ? 0 : troubled.length - 1) : (place + by + troubled.length) % troubled.length;
    const next = osds[troubled[at] ?? -1]?.osd ?? null;
    if (next === null || next === focused) return;
    steered.current = true;
    setFocused(next);
  };
  const latest = useRef(step);
  latest.current = step;
  useEffect(() => {
    const stops = [onLetter("n", () => latest.current(1)), onLetter("N", () => latest.current(-1))];
    return () => stops.forEach((stop) => stop());
  }, []);

  const under = (event: PointerEvent | MouseEvent): number | null => {
    const box = canvas.current?.getBoundingClientRect();
    if (!box || !layout) return null;
    return cellAt(layout, event.clientX - box.left, event.clientY - box.top, (index) => conditions[index] !== "good");
  };
  const open = (event: MouseEvent): void => {
    const index = under(event);
    const box = canvas.current?.getBoundingClientRect();
    if (!layout || !box) return;
    const rack = rackAt(layout, event.clientX - box.left, event.clientY - box.top);
    if (layout.style === "blocks" && rack && box.width < PHONE) go(withQuery({ rack }));
    else if (index !== null && osds[index]) go(osdLink(osds[index]));
    else if (layout.style === "blocks" && rack) go(withQuery({ rack }));
  };

  return (
    <div class="map" ref={frame}>
      {zoom !== null && (
        <p class="zoomed">
          {layout?.blocks[0]?.title ?? zoom} alone. <a href={withQuery({ rack: null })}>All racks</a>
        </p>
      )}
      {layout && layout.blocks.length === 0 && <p class="muted">No such rack.</p>}
      <div
        class="map-sheet"
        onPointerMove={(event) => {
          if (event.pointerType === "touch") return;
          const index = under(event);
          setHovered(index === null ? null : (osds[index]?.osd ?? null));
        }}
        onPointerLeave={() => setHovered(null)}
        onClick={open}
      >
        <canvas
          ref={canvas}
          aria-hidden="true"
          style={{ width: `${layout?.width ?? 0}px`, height: `${layout?.height ?? 0}px` }}
        />
        {layout && (
          <RackGrid
            layout={layout}
            osds={osds}
            conditions={conditions}
            focused={focusedIndex}
            steered={steered}
            onFocus={(index) => setFocused(index === null ? null : (osds[index]?.osd ?? null))}
          />
        )}
        {layout && <Tooltip layout={layout} index={hoveredIndex ?? focusedIndex} osds={osds} conditions={conditions} now={now} />}
      </div>
    </div>
  );
}

function rackAt(layout: Layout, x: number, y: number): string | null {
  const inside = layout.blocks.find((b) => x >= b.x && x <= b.x + b.width && y >= b.y && y <= b.y + b.height);
  return inside?.rack ?? null;
}

/** Turns true once what surrounds the map is painted; true at once where `atOnce`. */
function usePainted(atOnce: boolean): boolean {
  const [painted, setPainted] = useState(atOnce);
  useEffect(() => {
    if (painted) return undefined;
    let timer: ReturnType<typeof setTimeout> | undefined;
    // The callback runs before the paint of its frame, the timer after it.
    const frame = requestAnimationFrame(() => (timer = setTimeout(() => setPainted(true))));
    return () => {
      cancelAnimationFrame(frame);
      clearTimeout(timer);
    };
  }, []);
  return painted;
}

/** Grows when disks come, go or move: a new outlook needs no new layout. */
function usePlaces(osds: readonly Osd[]): number {
  const last = useRef({ osds, turn: 0 });
  if (!samePlaces(last.current.osds, osds)) last.current.turn += 1;
  last.current.osds = osds;
  return last.current.turn;
}

function samePlaces(before: readonly Osd[], after: readonly Osd[]): boolean {
  if (before === after) return true;
  return (
    before.length === after.length &&
    after.every((osd, index) => {
      const old = before[index];
      return osd === old || (osd.osd === old?.osd && osd.slot === old.slot && osd.host === old.host && osd.rack === old.rack);
    })
  );
}

/** Grows when light turns dark, colours are forced or the pixel density changes: the canvas must then be drawn anew. */
function useTheme(): number {
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    const queries = ["(prefers-color-scheme: dark)", "(forced-colors: active)", "(min-resolution: 1.5dppx)"].map((q) => matchMedia(q));
    const changed = (): void => setTurn((old) => old + 1);
    for (const query of queries) query.addEventListener("change", changed);
    return () => {
      for (const query of queries) query.removeEventListener("change", changed);
    };
  }, []);
  return turn;
}
