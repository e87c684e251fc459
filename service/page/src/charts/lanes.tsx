/** Charts stacked on one time axis: each lane names its quantity at the left and its last value beside its line. */
import { useMemo, useRef, useState } from "preact/hooks";
import { moment } from "../format.ts";
import { useWidth } from "../width.ts";
import { SPAN_ROW, saidAt, sayAll, type Span, type SpanRow } from "./cursor.ts";
import { CursorKeys } from "./cursor_keys.tsx";
import { layLabels, type Label } from "./labels.ts";
import { last, linear, nearest, roundUp, runs, timeTicks, type Point } from "./scale.ts";

export interface Limit {
  at: number;
  word: string;
  tone: "warning" | "bad" | "plain";
}

export interface Lane {
  key: string;
  title: string;
  under: string;
  points: readonly Point[];
  /** Counters are steps: between two readings nothing is known to have moved. */
  draw: "step" | "line";
  filled?: boolean;
  /** Given only where something changed: far apart is then no gap. */
  changesOnly?: boolean;
  tone?: "bad" | "warning" | "acting" | undefined;
  /** Ends of the value axis; the upper grows with the data. */
  from?: number;
  to?: number;
  write: (value: number) => string;
  tick?: (value: number) => string;
  limits?: readonly Limit[];
  /** Numbered reasons, at the instant that shows them. */
  marks?: readonly { at: number; number: number }[];
  /** What is to come: the line goes on dashed from the last value to this. */
  ahead?: { at: number; early: number; late: number; value: number; word: string; under: string } | null;
  height?: number | undefined;
  /** Drawn above the line, each row as high as SPAN_ROW; `height` has room for them. */
  spans?: readonly SpanRow[];
}

export interface Band {
  from: number;
  to: number;
  /** The whole text; its tooltip. */
  word: string;
  /** What may stand at it in the chart, the longest first; nothing where it is not given. */
  labels?: readonly string[];
  kind: "hold" | "gap";
}

/** A band as it is drawn, in px. */
interface Shown {
  band: Band;
  from: number;
  to: number;
}

interface Props {
  lanes: readonly Lane[];
  from: number;
  to: number;
  now?: number | null;
  bands?: readonly Band[];
  /** The chart in a sentence, for those who do not see it. */
  sentence: string;
}

const LANE = 78;
/** px above the lanes for the labels of bands. */
const LABELS = 16;
const AXIS = 26;

export function Lanes({ lanes, from, to, now = null, bands = [], sentence }: Props) {
  const frame = useRef<HTMLDivElement>(null);
  const [pointed, point] = useState<number | null>(null);
  const times = useMemo(() => instantsOf(lanes, from, to), [lanes, from, to]);
  const say = (at: number): string => sayAll(lanes, at, `${moment(at, null)} UTC`);
  const width = useWidth(frame);
  const narrow = width < 520;
  const left = narrow ? 44 : 150;
  const words = Math.max(narrow ? 62 : 84, ...lanes.map(wordWidth));
  const ahead = now === null ? 0 : ((to - now) / (to - from)) * (width - left);
  // Last values stand beside their lines: right of the chart, or in the room of what is to come.
  const right = ahead > words + 12 ? 12 : words;
  const start = left;
  const end = Math.max(left + 40, width - right);
  const x = linear(from, to, start, end);
  const shown = bands.flatMap((band): Shown[] => {
    const a = Math.max(start, x(band.from));
    const b = Math.min(end, x(band.to));
    return b > a ? [{ band, from: a, to: Math.max(b, a + 2) }] : [];
  });
  const labelled = shown.filter(({ band }) => band.labels);
  const labels = layLabels(labelled.map(({ band, from: a, to: b }) => ({ from: a, to: b, texts: band.labels ?? [] })), start, end, (holds) => `${holds} holds`);
  let top = 4 + (labelled.length ? LABELS : 0);
  const tops = lanes.map((lane) => {
    const at = top;
    top += (lane.height ?? LANE) + (narrow ? 20 : 0);
    return at;
  });
  const bottom = top;
  /** The middle of the cursor's own time below the lanes, and whether it leaves room for a word at this instant. */
  const wordAt = pointed === null ? null : Math.min(end - 44, Math.max(start + 44, x(pointed)));
  const free = (at: number): boolean => wordAt === null || Math.abs(x(at) - wordAt) > 70;
  const follow = (event: PointerEvent & { currentTarget: SVGSVGElement }): void => {
    const at = event.clientX - event.currentTarget.getBoundingClientRect().left;
    point(at < start || at > end ? null : nearest(times, from + ((at - start) / (end - start)) * (to - from)));
  };
  return (
    <figure class="lanes" ref={frame}>
      {width > 0 && (
        <svg
          width={width}
          height={bottom + AXIS}
          role="img"
          aria-label={sentence}
          onPointerMove={follow}
          onPointerDown={follow}
          onPointerLeave={() => point(null)}
        >
          {shown.map(({ band, from: a, to: b }) => (
            <rect key={`${band.kind}${band.from}`} class={`band ${band.kind}`} x={a} y={0} width={b - a} height={bottom}>
              <title>{band.word}</title>
            </rect>
          ))}
          {labels.map((label) => (
            <BandLabel key={label.of[0]} label={label} words={label.of.map((place) => labelled[place]?.band.word ?? "")} />
          ))}
          {timeTicks(from, to, end - start).filter((tick) => now === null || now >= to || Math.abs(x(tick.at) - x(now)) > 40).map((tick) => (
            <g key={tick.at}>
              <line class="grid" x1={x(tick.at)} x2={x(tick.at)} y1={0} y2={bottom} />
              {free(tick.at) && (
                <text class="axis" x={x(tick.at)} y={bottom + 16} text-anchor="middle">
                  {tick.word}
                </text>
              )}
            </g>
          ))}
          {now !== null && now > from && now < to && (
            <g>
              <line class="now-line" x1={x(now)} x2={x(now)} y1={0} y2={bottom} />
              {free(now) && (
                <text class="axis strong" x={x(now)} y={bottom + 16} text-anchor="middle">
                  now
                </text>
              )}
            </g>
          )}
          {lanes.map((lane, index) => (
            <LaneRow key={lane.key} lane={lane} top={(tops[index] ?? 0) + (narrow ? 20 : 0)} x={x} start={start} end={end} narrow={narrow} />
          ))}
          {pointed !== null && wordAt !== null && (
            <Cursor lanes={lanes} tops={tops.map((one, index) => one + (narrow ? 20 : 0) + spanRoom(lanes[index]))} at={pointed} x={x(pointed)} early={x(pointed) < (start + end) / 2} wordAt={wordAt} bottom={bottom} />
          )}
        </svg>
      )}
      <CursorKeys times={times} at={pointed} move={point} say={say} />
      <AsTable lanes={lanes} sentence={sentence} />
    </figure>
  );
}

/** Every instant within the axis at which a lane has a value or a span begins, in order. */
function instantsOf(lanes: readonly Lane[], from: number, to: number): number[] {
  const valued = lanes.flatMap((lane) => lane.points.flatMap(([at, value]) => (value === null ? [] : [at])));
  const begun = lanes.flatMap((lane) => (lane.spans ?? []).flatMap((row) => row.spans.map((span) => span.from)));
  const all = new Set([...valued, ...begun].filter((at) => at >= from && at <= to));
  return [...all].sort((a, b) => a - b);
}

interface CursorProps {
  lanes: readonly Lane[];
  tops: readonly number[];
  at: number;
  x: number;
  /** Whether the values stand at the right of the line. */
  early: boolean;
  wordAt: number;
  bottom: number;
}

/** One line over all lanes, with what each of them was then. */
function Cursor({ lanes, tops, at, x, early, wordAt, bottom }: CursorProps) {
  return (
    <g class="cursor">
      <line x1={x} x2={x} y1={0} y2={bottom} />
      <text class="axis strong" x={wordAt} y={bottom + 16} text-anchor="middle">
        {moment(at, null)}
      </text>
      {lanes.map((lane, index) => {
        return (
          <text key={lane.key} class="cursor-value" x={early ? x + 6 : x - 6} y={(tops[index] ?? 0) + 18} text-anchor={early ? "start" : "end"}>
            {saidAt(lane, at)}
          </text>
        );
      })}
    </g>
  );
}

const LETTER = 8.4;

/** The room that a lane's last value takes beside its line: "under 0.1 %" is wider than "22 \u00b0C". */
function wordWidth(lane: Lane): number {
  const ending = last(lane.points);
  return ending ? 10 + LETTER * lane.write(ending[1]).length : 0;
}

/** words: of the bands that the label stands for, whole; the tooltip. */
function BandLabel({ label, words }: { label: Label; words: readonly string[] }) {
  return (
    <text class="axis text-warning" x={label.at} y={12}>
      <title>{words.join("\n")}</title>
      {label.text}
    </text>
  );
}

interface RowProps {
  lane: Lane;
  top: number;
  x: (at: number) => number;
  start: number;
  end: number;
  narrow: boolean;
}

/** px that the rows of spans take above a lane's line. */
const spanRoom = (lane: Lane | undefined): number => (lane?.spans?.length ?? 0) * SPAN_ROW;

function LaneRow({ lane, top: above, x, start, end, narrow }: RowProps) {
  const top = above + spanRoom(lane);
  const height = (lane.height ?? LANE) - spanRoom(lane) - 14;
  const values = lane.points.flatMap((point) => (point[1] === null ? [] : [point[1]]));
  const low = lane.from ?? 0;
  const high = Math.max(lane.to ?? roundUp(Math.max(0, ...values)), ...values, ...(lane.limits ?? []).map((limit) => limit.at));
  const y = linear(low, high, top + height, top + 8);
  const ending = last(lane.points);
  const mid = top + height / 2 + 4;
  const tick = lane.tick ?? lane.write;
  const parts = runs(lane.points, !lane.changesOnly);
  return (
    <g class={`lane ${lane.tone ? `tone-${lane.tone}` : ""}`}>
      {narrow ? (
        <text class="lane-title" x={0} y={above - 6}>
          {lane.title} <tspan class="axis">{[lane.under, ...(lane.spans ?? []).map((row) => row.title)].join(", ")}</tspan>
        </text>
      ) : (
        <>
          <text class="lane-title" x={0} y={mid - 6}>
            {lane.title}
          </text>
          <text class="axis" x={0} y={mid + 9}>
            {lane.under}
          </text>
        </>
      )}
      {(lane.spans ?? []).map((row, place) => (
        <Spans key={row.title} row={row} top={above + place * SPAN_ROW} x={x} start={start} end={end} narrow={narrow} />
      ))}
      <line class="base" x1={start} x2={end} y1={top + height} y2={top + height} />
      <line class="dots" x1={start} x2={end} y1={y(high)} y2={y(high)} />
      {(lane.limits ?? []).every((limit) => Math.abs(y(limit.at) - y(high)) > 11) && (
        <text class="axis" x={start - 6} y={y(high) + 4} text-anchor="end">
          {tick(high)}
        </text>
      )}
      {low !== 0 && (
        <text class="axis" x={start - 6} y={y(low) + 4} text-anchor="end">
          {tick(low)}
        </text>
      )}
      {(lane.limits ?? []).map((limit) => (
        <g key={limit.at}>
          <line class={`limit ${limit.tone}`} x1={start} x2={end} y1={y(limit.at)} y2={y(limit.at)} />
          <text class="axis" x={end} y={y(limit.at) - 4} text-anchor="end">
            {limit.word}
          </text>
          <text class="axis" x={start - 6} y={y(limit.at) + 4} text-anchor="end">
            {tick(limit.at)}
          </text>
        </g>
      ))}
      {lane.filled && parts.map((run) => <path key={run[0]?.[0]} class="area" d={`${trace(run, lane.draw, x, y)}V${y(low)}H${x(run[0]?.[0] ?? 0)}Z`} />)}
      {parts.map((run) =>
        run.length === 1 ? (
          <circle key={run[0]?.[0]} class="dot-point" cx={x(run[0]?.[0] ?? 0)} cy={y(run[0]?.[1] ?? 0)} r={1.6} />
        ) : (
          <path key={run[0]?.[0]} class="line" d={trace(run, lane.draw, x, y)} />
        ),
      )}
      {ending && lane.ahead && (
        <>
          <path
            class="ahead-range"
            d={`M${x(ending[0])} ${y(ending[1])}L${x(lane.ahead.early)} ${y(lane.ahead.value)}H${x(lane.ahead.late)}Z`}
          />
          <line class="ahead" x1={x(ending[0])} y1={y(ending[1])} x2={x(lane.ahead.at)} y2={y(lane.ahead.value)} />
          <text class="axis strong" x={end} y={top + 10} text-anchor="end">
            {lane.ahead.word}
          </text>
          <text class="axis" x={end} y={top + 24} text-anchor="end">
            {lane.ahead.under}
          </text>
        </>
      )}
      {(lane.marks ?? []).map((mark, place) => (
        <g key={mark.number} class="mark">
          <circle cx={x(mark.at) - 13 - place * 18} cy={Math.min(top + height - 8, Math.max(top + 10, y(low) - 8))} r={8} />
          <text x={x(mark.at) - 13 - place * 18} y={Math.min(top + height - 8, Math.max(top + 10, y(low) - 8)) + 4} text-anchor="middle">
            {mark.number}
          </text>
        </g>
      ))}
      {ending ? (
        <text class="value" x={Math.min(x(ending[0]), end) + 8} y={Math.min(top + height, y(ending[1]) + (lane.ahead ? -8 : 4))}>
          {lane.write(ending[1])}
        </text>
      ) : (
        <text class="axis" x={start + 8} y={mid}>
          not reported
        </text>
      )}
    </g>
  );
}

interface SpansProps {
  row: SpanRow;
  top: number;
  x: (at: number) => number;
  start: number;
  end: number;
  narrow: boolean;
}

/** px of an 11 px letter, rounded up. */
const SMALL_LETTER = 6.2;

/** A bar for each span, with its text where it has room for it. */
function Spans({ row, top, x, start, end, narrow }: SpansProps) {
  return (
    <g class="spans">
      {!narrow && (
        <text class="axis" x={start - 6} y={top + 11} text-anchor="end">
          {row.title}
        </text>
      )}
      <line class="dots" x1={start} x2={end} y1={top + 7} y2={top + 7} />
      {row.spans.map((span) => {
        const a = Math.max(start, x(span.from));
        const width = Math.max(3, Math.min(end, x(span.to)) - a);
        return (
          <g key={`${span.from}${span.word}`}>
            <title>{span.word}</title>
            <rect class={`span ${span.tone}`} x={Math.min(a, end - 3)} y={top + 1} width={width} height={SPAN_ROW - 3} rx={2} />
            {span.short.length * SMALL_LETTER + 8 < width && (
              <text class={`span-word ${span.tone}`} x={a + 4} y={top + 11}>
                {span.short}
              </text>
            )}
          </g>
        );
      })}
    </g>
  );
}

function trace(run: readonly [number, number][], draw: "step" | "line", x: (at: number) => number, y: (value: number) => number): string {
  return run
    .map(([at, value], index) => {
      const px = x(at).toFixed(1);
      const py = y(value).toFixed(1);
      if (index === 0) return `M${px} ${py}`;
      return draw === "step" ? `H${px}V${py}` : `L${px} ${py}`;
    })
    .join("");
}

/** The same numbers behind a link; at most the last 60 instants of each lane. */
function AsTable({ lanes, sentence }: { lanes: readonly Lane[]; sentence: string }) {
  return (
    <details class="as-table">
      <summary>As a table</summary>
      <div class="table-frame">
        {lanes.flatMap((lane) => (lane.spans ?? []).map((row) => <SpanTable key={lane.key + row.title} title={`${lane.title}, ${row.title}`} spans={row.spans} />))}
        {lanes.map((lane) => (
          <table class="table" key={lane.key}>
            <caption>
              {lane.title}, {lane.under}
            </caption>
            <tbody>
              {changes(lane.points).map(([at, value]) => (
                <tr key={at}>
                  <th scope="row">{moment(at, null)}</th>
                  <td class="number">{value === null ? "not reported" : lane.write(value)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        ))}
      </div>
      <p class="muted">{sentence}</p>
    </details>
  );
}

function SpanTable({ title, spans }: { title: string; spans: readonly Span[] }) {
  return (
    <table class="table">
      <caption>{title}</caption>
      <tbody>
        {spans.slice(-60).map((span) => (
          <tr key={`${span.from}${span.word}`}>
            <th scope="row">
              {moment(span.from, null)} to {moment(span.to, null)}
            </th>
            <td>{span.word}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function changes(points: readonly Point[]): Point[] {
  return points.filter((point, index) => index === 0 || index === points.length - 1 || point[1] !== points[index - 1]?.[1]).slice(-60);
}
