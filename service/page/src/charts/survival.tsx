/** How sure: the share of such disks still alive by day, with the days when one in ten, half, nine in ten are gone. */
import { useRef } from "preact/hooks";
import type { SurvivalPoint } from "../api/contract.ts";
import { lifeEnd, life as lifeSpan, percent } from "../format.ts";
import { useWidth } from "../width.ts";
import { linear, roundUp } from "./scale.ts";

interface Props {
  curve: readonly SurvivalPoint[];
  /** The same model and age without symptoms. */
  family: readonly SurvivalPoint[] | null;
  life: { p10: number | null; p50: number | null; p90: number | null } | null;
  tone: "good" | "warning" | "bad" | "unknown";
}

const HEIGHT = 226;
const LEFT = 44;
const TOP = 14;
const BOTTOM = 28;

export function Survival({ curve, family, life, tone }: Props) {
  const frame = useRef<HTMLDivElement>(null);
  const width = useWidth(frame);
  const days = horizon(life, curve);
  const x = linear(0, days, LEFT, Math.max(LEFT + 40, width - 12));
  const y = linear(0, 1, HEIGHT - BOTTOM, TOP);
  const ends = [
    { day: life?.p10 ?? null, alive: 0.9, word: "1 in 10 gone" },
    { day: life?.p50 ?? null, alive: 0.5, word: "half gone" },
    { day: life?.p90 ?? null, alive: 0.1, word: "9 in 10 gone" },
  ].filter((end): end is { day: number; alive: number; word: string } => end.day !== null && end.day <= days);
  // The last tick carries the unit and needs room for it.
  const parts = width < 400 ? [0, 0.5, 1] : [0, 0.25, 0.5, 0.75, 1];
  const likely = life?.p10 != null && life.p10 < days ? { from: life.p10, to: Math.min(life.p90 ?? days, days) } : null;
  const at30 = aliveAt(curve, 30);
  const said = `Of 100 such disks ${at30 === null ? "an unknown number" : percent(1 - at30).replace(" %", "")} fail within 30 days; ${
    life ? `one in ten is gone after ${lifeEnd(life.p10)}, half after ${lifeEnd(life.p50)}, nine in ten after ${lifeEnd(life.p90)}` : "life is not reported"
  }.`;
  return (
    <figure class={`survival tone-${tone}`} ref={frame}>
      {width > 0 && (
        <svg width={width} height={HEIGHT} role="img" aria-label={said}>
          {[1, 0.5, 0].map((level) => (
            <g key={level}>
              <line class={level === 0 ? "base" : "grid"} x1={LEFT} x2={width - 12} y1={y(level)} y2={y(level)} />
              <text class="axis" x={LEFT - 6} y={y(level) + 4} text-anchor="end">
                {level === 1 ? "100 %" : level * 100}
              </text>
            </g>
          ))}
          {parts.map((part) => (
            <text class="axis" key={part} x={x(part * days)} y={HEIGHT - 8} text-anchor={part === 1 ? "end" : "middle"}>
              {Math.round(part * days)}
              {part === 1 ? " days" : ""}
            </text>
          ))}
          {family && <path class="family" d={path(family, days, x, y)} />}
          <path class="area" d={`${path(curve, days, x, y)}V${y(0)}H${x(0)}Z`} />
          <path class="line" d={path(curve, days, x, y)} />
          {likely && <rect class="likely" x={x(likely.from)} y={y(0) - 2} width={Math.max(2, x(likely.to) - x(likely.from))} height={4} />}
          {ends.map((end) => {
            const flip = x(end.day) > width - 140;
            // The curve is flat by then: the words stand above it.
            const flat = flip || end.alive < 0.3;
            return (
              <g key={end.word}>
                <circle class="end" cx={x(end.day)} cy={y(end.alive)} r={3.6} />
                <text class="axis strong" x={flip ? width - 12 : x(end.day) + 9} y={y(end.alive) + (flat ? -11 : 4)} text-anchor={flip ? "end" : "start"}>
                  {end.word}, day {Math.round(end.day)}
                </text>
              </g>
            );
          })}
        </svg>
      )}
      <figcaption class="muted small">
        {likely && life && `Bar: 8 in 10 such disks end in ${lifeSpan(life.p10, life.p90)}. `}
        {family && "Dashed: disks of the same model and age without symptoms."}
      </figcaption>
      <details class="as-table">
        <summary>As a table</summary>
        <table class="table">
          <caption>{said}</caption>
          <tbody>
            {curve
              .filter((point) => [1, 7, 14, 30, 60, 88, 179, 361, 720, 1_830, 3_630].includes(point.day))
              .map((point) => (
                <tr key={point.day}>
                  <th scope="row">day {point.day}</th>
                  <td class="number">{percent(1 - point.p)} failed</td>
                </tr>
              ))}
          </tbody>
        </table>
      </details>
    </figure>
  );
}

/** As far as nine in ten, rounded, between two months and ten years. */
function horizon(life: Props["life"], curve: readonly SurvivalPoint[]): number {
  const end = curve.at(-1)?.day ?? 60;
  const wanted = life?.p90 ?? (life?.p50 ? life.p50 * 1.5 : 365);
  return Math.min(end, Math.max(60, roundUp(wanted * 1.08)));
}

function aliveAt(curve: readonly SurvivalPoint[], day: number): number | null {
  let alive: number | null = null;
  for (const point of curve) {
    if (point.day > day) break;
    alive = point.p;
  }
  return alive;
}

function path(curve: readonly SurvivalPoint[], days: number, x: (day: number) => number, y: (p: number) => number): string {
  const inside = curve.filter((point) => point.day <= days);
  const before = inside.at(-1);
  const after = curve[inside.length];
  if (before && after && before.day < days) {
    inside.push({ day: days, p: before.p + ((after.p - before.p) * (days - before.day)) / (after.day - before.day) });
  }
  return inside
    .map((point, index) => `${index ? "L" : "M"}${x(point.day).toFixed(1)} ${y(point.p).toFixed(1)}`)
    .join("");
}
