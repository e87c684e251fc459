/** A small chart in a cell: how one value went, without an axis; its ends are said in words. */
import { linear, runs, type Point } from "./scale.ts";

const WIDE = 120;
const HIGH = 26;

export function Spark({ points, write }: { points: readonly Point[]; write: (value: number) => string }) {
  const values = points.flatMap((point) => (point[1] === null ? [] : [point[1]]));
  const first = values[0];
  const last = values.at(-1);
  if (first === undefined || last === undefined) return <span class="muted">not reported</span>;
  const low = Math.min(...values);
  const high = Math.max(...values);
  if (low === high) return <span class="muted">{values.length === 1 ? "one reading" : "did not move"}</span>;
  const x = linear(points[0]?.[0] ?? 0, points.at(-1)?.[0] ?? 1, 1, WIDE - 3);
  const y = linear(low, high, HIGH - 4, 4);
  return (
    <svg class="spark" width={WIDE} height={HIGH} role="img" aria-label={`from ${write(first)} to ${write(last)}, between ${write(low)} and ${write(high)}`}>
      {runs(points, false).map((run) => (
        <path key={run[0]?.[0]} d={run.map(([at, value], place) => (place === 0 ? `M${x(at).toFixed(1)} ${y(value).toFixed(1)}` : `H${x(at).toFixed(1)}V${y(value).toFixed(1)}`)).join("")} />
      ))}
      <circle cx={x(points.at(-1)?.[0] ?? 0)} cy={y(last)} r={2} />
    </svg>
  );
}
