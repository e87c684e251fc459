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

const AROUND = 5;

/**
 * Where an instant lies too far behind the one before it: over three times what is usual on both sides of it, so that
 * days before hours are no gaps.
 */
export function gapsIn(times: readonly number[]): boolean[] {
  const apart = times.map((at, index) => (index === 0 ? 0 : at - (times[index - 1] ?? at)));
  return apart.map((own, index) => {
    if (index === 0 || times.length < 4) return false;
    const usual = Math.max(middle(apart.slice(Math.max(1, index - AROUND), index)), middle(apart.slice(index + 1, index + 1 + AROUND)));
    return own > 3 * usual;
  });
}

function middle(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
}

/** Runs without a gap: broken by null and, where points come at an interval, by an instant too far behind. */
export function runs(points: readonly Point[], atIntervals = true): [number, number][][] {
  const gaps = atIntervals ? gapsIn(points.map((point) => point[0])) : [];
  const all: [number, number][][] = [];
  let run: [number, number][] = [];
  points.forEach(([at, value], index) => {
    if (value === null || gaps[index]) {
      if (run.length) all.push(run);
      run = [];
    }
    if (value !== null) run.push([at, value]);
  });
  if (run.length) all.push(run);
  return all;
}

/** The value that is known at an instant: the last one before it, or of it. Null where none is, or a gap lies between. */
export function valueAt(points: readonly Point[], at: number): number | null {
  let known: number | null = null;
  for (const [time, value] of points) {
    if (time > at) break;
    known = value;
  }
  return known;
}

/** The instant of `times`, which are in order, that lies nearest to `at`; null of none. */
export function nearest(times: readonly number[], at: number): number | null {
  let low = 0;
  let high = times.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((times[middle] ?? 0) < at) low = middle + 1;
    else high = middle;
  }
  const [before, after] = [times[low - 1], times[low]];
  if (before === undefined || after === undefined) return after ?? before ?? null;
  return at - before <= after - at ? before : after;
}

export function last(points: readonly Point[]): [number, number] | null {
  for (let index = points.length - 1; index >= 0; index -= 1) {
    const point = points[index];
    if (point && point[1] !== null) return [point[0], point[1]];
  }
  return null;
}
