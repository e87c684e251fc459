/** Scales and ticks: numbers in, positions and round labels out. */
import { clockOf, dayOf } from "../format.ts";

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const STEPS = [HOUR / 4, HOUR, 2 * HOUR, 4 * HOUR, 6 * HOUR, 12 * HOUR, DAY, 2 * DAY, 7 * DAY, 14 * DAY, 30 * DAY, 60 * DAY, 90 * DAY];

export interface Tick {
  at: number;
  word: string;
}

export function linear(from: number, to: number, start: number, end: number): (value: number) => number {
  const wide = to - from || 1;
  return (value) => start + ((value - from) / wide) * (end - start);
}

/** Round UTC instants between `from` and `to` in ms, so many that labels of about 70 px do not touch. */
export function timeTicks(from: number, to: number, width: number): Tick[] {
  const most = Math.max(2, Math.floor(width / 90));
  const step = STEPS.find((one) => (to - from) / one <= most) ?? 180 * DAY;
  const ticks: Tick[] = [];
  for (let at = Math.ceil(from / step) * step; at <= to; at += step) {
    ticks.push({ at, word: step >= DAY || at % DAY === 0 ? dayOf(at) : clockOf(at) });
  }
  return ticks;
}

/** The next number of 1, 2, 2.5, 5 x 10^n at or above; 1 for nothing. */
export function roundUp(value: number): number {
  if (value <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  for (const factor of [1, 2, 2.5, 4, 5, 8, 10]) if (value <= factor * power * 1.000_001) return factor * power;
  return 10 * power;
}

export type Point = readonly [number, number | null];

/** Runs without a gap: broken by null, and where the next point is over `gap` ms away. */
export function runs(points: readonly Point[], gap: number): [number, number][][] {
  const all: [number, number][][] = [];
  let run: [number, number][] = [];
  let before: number | null = null;
  for (const [at, value] of points) {
    if (value === null || (before !== null && at - before > gap)) {
      if (run.length) all.push(run);
      run = [];
    }
    if (value !== null) run.push([at, value]);
    before = at;
  }
  if (run.length) all.push(run);
  return all;
}

/** Three times the usual distance of points, in ms: further apart is a gap. */
export function gapOf(points: readonly Point[]): number {
  if (points.length < 3) return Infinity;
  const apart = points.slice(1).map((point, index) => point[0] - (points[index]?.[0] ?? 0));
  apart.sort((a, b) => a - b);
  return 3 * (apart[Math.floor(apart.length / 2)] ?? Infinity) + 1;
}

export function last(points: readonly Point[]): [number, number] | null {
  for (let index = points.length - 1; index >= 0; index -= 1) {
    const point = points[index];
    if (point && point[1] !== null) return [point[0], point[1]];
  }
  return null;
}
