/** Where the cursor of a chart goes by a key, and what is known at it. Pure. */
import { nearest, valueAt, type Point } from "./scale.ts";

/** A stretch of time within a lane: a drain in one state, or an hour with slow minutes. */
export interface Span {
  from: number;
  to: number;
  /** The whole text; its tooltip and its line in the table. */
  word: string;
  /** Said at the cursor. */
  short: string;
  tone: "acting" | "warning" | "bad" | "plain";
  /** Whether it goes on at the end of the axis. */
  open?: boolean;
}

/** px of a row of spans. */
export const SPAN_ROW = 16;

/** Spans of one kind, drawn in a row of their own above the lane's line. */
export interface SpanRow {
  title: string;
  spans: readonly Span[];
}

interface Known {
  title: string;
  points: readonly Point[];
  write: (value: number) => string;
  spans?: readonly SpanRow[];
}

/** Instants that Page Up and Page Down leave out. */
const PAGE = 10;

/** The instant after this key; undefined for keys that move no cursor, null for none. `times`: in order. */
export function afterKey(times: readonly number[], at: number | null, key: string): number | null | undefined {
  if (key === "Escape") return null;
  const end = times.length - 1;
  const here = at === null ? end : times.indexOf(nearest(times, at) ?? NaN);
  const to: Record<string, number> = { ArrowLeft: here - 1, ArrowRight: here + 1, PageUp: here - PAGE, PageDown: here + PAGE, Home: 0, End: end };
  const place = to[key];
  if (place === undefined) return undefined;
  return times[Math.max(0, Math.min(end, place))] ?? null;
}

/** What a lane says at an instant: its value, and the spans that cover the instant. */
export function saidAt(lane: Known, at: number): string {
  const value = valueAt(lane.points, at);
  const spans = (lane.spans ?? []).flatMap((row) => row.spans.filter((span) => span.from <= at && (span.open || at < Math.max(span.to, span.from + 1))).map((span) => span.short));
  return [value === null ? "not reported" : lane.write(value), ...spans].join(", ");
}

/** All lanes at an instant, in a sentence for those who do not see the chart. */
export function sayAll(lanes: readonly Known[], at: number, time: string): string {
  return `${time}: ${lanes.map((lane) => `${lane.title} ${saidAt(lane, at)}`).join("; ")}.`;
}
