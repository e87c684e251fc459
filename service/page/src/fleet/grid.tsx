/** The focused rack as a real grid over the canvas: one tab stop, arrows within, every cell a sentence. */
import { useLayoutEffect, useRef } from "preact/hooks";
import type { Osd } from "../api/contract.ts";
import { spoken, type Condition } from "../condition.ts";
import { osdLink } from "../links.ts";
import { go, route, withQuery } from "../route.ts";
import type { Block, Layout } from "./layout.ts";

interface Props {
  layout: Layout;
  osds: readonly Osd[];
  conditions: readonly Condition[];
  focused: number | null;
  /** Set when a key moved the focus: then the browser's focus follows. */
  steered: { current: boolean };
  onFocus: (index: number | null) => void;
}

interface Spot {
  block: number;
  row: number;
  place: number;
}

export function RackGrid({ layout, osds, conditions, focused, steered, onFocus }: Props) {
  const grid = useRef<HTMLDivElement>(null);
  const spot = focused === null ? null : spotOf(layout, focused);
  const block = layout.blocks[spot?.block ?? 0];
  const tabStop = spot === null ? block?.hosts[0]?.cells[0]?.index : focused;

  // With the paint that shows it: later, a second key would come between, and its step be taken for this one's.
  useLayoutEffect(() => {
    if (!steered.current || focused === null) return;
    steered.current = false;
    const cell = grid.current?.querySelector<HTMLElement>(`[data-index="${focused}"]`);
    cell?.focus({ preventScroll: true });
    cell?.scrollIntoView({ block: "nearest" });
  }, [focused]);

  if (!block) return null;
  const move = (event: KeyboardEvent): void => {
    const here = spot ?? { block: 0, row: 0, place: 0 };
    if (event.key === "Enter") {
      const osd = focused === null ? undefined : osds[focused];
      if (osd) go(osdLink(osd));
    } else if (event.key === "Escape") {
      if (route.value.query.get("rack")) go(withQuery({ rack: null }));
      (document.activeElement as HTMLElement | null)?.blur();
    } else {
      const next = stepped(layout, here, event.key, event.ctrlKey);
      if (next === undefined) return;
      if (next !== null && next !== focused) {
        steered.current = true;
        onFocus(next);
      }
    }
    event.preventDefault();
  };

  return (
    <div
      class="rack-grid"
      role="grid"
      ref={grid}
      aria-label={`${block.title}: a row a host, a cell a disk`}
      aria-rowcount={block.hosts.length}
      aria-colcount={block.slots}
      onKeyDown={move}
      onFocusOut={(event) => {
        if (!grid.current?.contains(event.relatedTarget as Node | null) && !steered.current) onFocus(null);
      }}
    >
      {block.hosts.map((row, rowNumber) => (
        <div role="row" key={row.host} aria-label={row.host} aria-rowindex={rowNumber + 1}>
          {row.cells.map((cell, place) => {
            const osd = osds[cell.index];
            const shown = conditions[cell.index];
            if (!osd || !shown) return null;
            return (
              <div
                role="gridcell"
                key={osd.osd}
                data-index={cell.index}
                aria-colindex={place + 1}
                aria-label={spoken(osd, shown)}
                tabIndex={cell.index === tabStop ? 0 : -1}
                style={{ left: `${cell.x}px`, top: `${cell.y}px`, width: `${layout.pitch}px`, height: `${layout.pitch}px` }}
                onClick={(event) => {
                  event.stopPropagation();
                  go(osdLink(osd));
                }}
                onFocus={() => {
                  if (cell.index !== focused) onFocus(cell.index);
                }}
              />
            );
          })}
        </div>
      ))}
    </div>
  );
}

function spotOf(layout: Layout, index: number): Spot | null {
  for (let block = 0; block < layout.blocks.length; block += 1) {
    const hosts = (layout.blocks[block] as Block).hosts;
    for (let row = 0; row < hosts.length; row += 1) {
      const place = hosts[row]?.cells.findIndex((cell) => cell.index === index) ?? -1;
      if (place >= 0) return { block, row, place };
    }
  }
  return null;
}

/** Where a key leads: an index, null where it leads nowhere, undefined where the key is not ours. */
function stepped(layout: Layout, from: Spot, key: string, whole: boolean): number | null | undefined {
  const at = (block: number, row: number, place: number): number | null => {
    const hosts = layout.blocks[block]?.hosts;
    const cells = hosts?.[Math.max(0, Math.min(hosts.length - 1, row))]?.cells;
    return cells?.[Math.max(0, Math.min(cells.length - 1, place))]?.index ?? null;
  };
  const cells = layout.blocks[from.block]?.hosts[from.row]?.cells ?? [];
  const rows = layout.blocks[from.block]?.hosts.length ?? 0;
  switch (key) {
    case "ArrowRight":
      return from.place + 1 < cells.length ? at(from.block, from.row, from.place + 1) : at(from.block + 1, from.row, 0);
    case "ArrowLeft":
      return from.place > 0 ? at(from.block, from.row, from.place - 1) : at(from.block - 1, from.row, 9_999);
    case "ArrowDown":
      return from.row + 1 < rows ? at(from.block, from.row + 1, from.place) : null;
    case "ArrowUp":
      return from.row > 0 ? at(from.block, from.row - 1, from.place) : null;
    case "Home":
      return at(from.block, whole ? 0 : from.row, 0);
    case "End":
      return at(from.block, whole ? rows - 1 : from.row, 9_999);
    case "PageDown":
      return at(from.block + 1, from.row, from.place);
    case "PageUp":
      return at(from.block - 1, from.row, from.place);
    default:
      return undefined;
  }
}
