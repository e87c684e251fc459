/** Where the data goes: from the disk to the racks that take it, each band as wide as its share. */
import { useRef } from "preact/hooks";
import type { Plan } from "../api/contract.ts";
import { plural, tib } from "../format.ts";
import { useWidth } from "../width.ts";

const HEIGHT = 150;
const GAP = 12;
const MOST = 5;

export function Flow({ from, plan }: { from: string; plan: Plan }) {
  const frame = useRef<HTMLDivElement>(null);
  const width = useWidth(frame);
  const sorted = [...plan.targets].sort((a, b) => b.bytes - a.bytes);
  const shown = sorted.slice(0, MOST);
  const rest = sorted.slice(MOST);
  if (rest.length > 0) {
    shown.push({
      rack: `${rest.length} more racks`,
      bytes: rest.reduce((sum, one) => sum + one.bytes, 0),
      hosts: rest.reduce((sum, one) => sum + one.hosts, 0),
      osds: rest.reduce((sum, one) => sum + one.osds, 0),
    });
  }
  const all = shown.reduce((sum, one) => sum + one.bytes, 0);
  if (all === 0) return <p class="muted">Nothing has to move.</p>;
  const least = 26;
  const room = Math.max(HEIGHT, shown.length * (least + GAP));
  const free = room - GAP * (shown.length - 1) - least * shown.length;
  const x0 = 92;
  const x1 = Math.max(x0 + 60, width - 150);
  let taken = 0;
  let top = 0;
  const sourceHeight = room - GAP * (shown.length - 1);
  const sourceTop = (room - sourceHeight) / 2;
  const bands = shown.map((one) => {
    const part = one.bytes / all;
    const band = { ...one, y0: sourceTop + taken, h0: part * sourceHeight, y1: top, h1: least + part * free };
    taken += band.h0;
    top += band.h1 + GAP;
    return band;
  });
  const said = `${tib(plan.bytes)} leave ${from}: ${shown.map((one) => `${tib(one.bytes)} to ${one.rack ?? "hosts without a rack"}`).join(", ")}.`;
  const middle = (x0 + x1) / 2;
  return (
    <figure class="flow" ref={frame}>
      {width > 0 && (
        <svg width={width} height={room} role="img" aria-label={said}>
          {bands.map((band) => (
            <g key={band.rack}>
              <path
                class="band"
                d={`M${x0 + 6} ${band.y0}C${middle} ${band.y0} ${middle} ${band.y1} ${x1} ${band.y1}V${band.y1 + band.h1}C${middle} ${band.y1 + band.h1} ${middle} ${band.y0 + band.h0} ${x0 + 6} ${band.y0 + band.h0}Z`}
              />
              <rect class="target" x={x1} y={band.y1} width={5} height={band.h1} />
              <text class="strong" x={x1 + 12} y={band.y1 + band.h1 / 2 - 2}>
                {band.rack ?? "no rack"}, {tib(band.bytes)}
              </text>
              <text class="axis" x={x1 + 12} y={band.y1 + band.h1 / 2 + 12}>
                {plural(band.hosts, "host")}, {plural(band.osds, "OSD")}
              </text>
            </g>
          ))}
          <rect class="source" x={x0} y={sourceTop} width={6} height={sourceHeight} />
          <text class="strong" x={x0 - 8} y={room / 2 - 12} text-anchor="end">
            {from.length > 12 ? `${from.slice(0, 11)}\u2026` : from}
          </text>
          <text class="axis" x={x0 - 8} y={room / 2 + 3} text-anchor="end">
            {tib(plan.bytes)}
          </text>
          <text class="axis" x={x0 - 8} y={room / 2 + 17} text-anchor="end">
            {plural(plan.pgs, "PG")}
          </text>
        </svg>
      )}
    </figure>
  );
}
