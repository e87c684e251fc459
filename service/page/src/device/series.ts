/** What a device's series are called, how their numbers are written, and which chart a reason points at. */
import type { Outlook, Reason, Series } from "../api/contract.ts";
import type { Lane, Limit } from "../charts/lanes.tsx";
import { SPAN_ROW, type SpanRow } from "../charts/cursor.ts";
import { last, type Point } from "../charts/scale.ts";
import { count, percent, ratio } from "../format.ts";

interface Name {
  title: string;
  under: string;
}

const NAMES: Record<string, Name> = {
  p_fail_30d: { title: "Failure forecast", under: "within 30 days, %" },
  pending: { title: "Pending sectors", under: "count (197)" },
  offline_uncorrectable: { title: "Offline uncorr.", under: "sectors, count (198)" },
  reported_uncorrectable: { title: "Reported uncorr.", under: "errors, count (187)" },
  reallocated: { title: "Reallocated", under: "sectors, count (5)" },
  command_timeouts: { title: "Command timeouts", under: "count (188)" },
  crc_errors: { title: "CRC errors", under: "link errors, count (199)" },
  end_to_end_errors: { title: "End-to-end errors", under: "count (184)" },
  media_errors: { title: "Media errors", under: "count" },
  grown_defects: { title: "Grown defects", under: "count" },
  non_medium_errors: { title: "Non-medium errors", under: "count" },
  uncorrected_errors: { title: "Uncorrected errors", under: "count" },
  logged_errors: { title: "Logged errors", under: "commands that failed" },
  failed_self_tests: { title: "Failed self-tests", under: "since the last long one passed" },
  kernel_errors: { title: "Kernel errors", under: "new I/O errors" },
  link_errors: { title: "Link errors", under: "frames refused" },
  osd_down: { title: "OSD", under: "up, or down" },
  link_losses: { title: "Link losses", under: "count" },
  percentage_used: { title: "Rated life used", under: "%" },
  available_spare_pct: { title: "Available spare", under: "%" },
  critical_warning: { title: "Critical warning", under: "bits" },
  unsafe_shutdowns: { title: "Unsafe shutdowns", under: "count" },
  latency_ratio: { title: "OSD latency", under: "to its host's OSDs" },
  read_ms: { title: "Reads took", under: "median, ms" },
  write_ms: { title: "Writes took", under: "median, ms" },
  commit_ms: { title: "Commits took", under: "median, ms" },
  slow_minutes: { title: "Slow minutes", under: "of the OSD" },
  slow_ops: { title: "Slow ops", under: "most at once" },
  temperature_c: { title: "Temperature", under: "\u00b0C" },
  power_on_hours: { title: "Powered on", under: "hours" },
  bytes_written: { title: "Written", under: "bytes" },
  bytes_read: { title: "Read", under: "bytes" },
};

/** Reasons may name an attribute by its number. */
const BY_ATTRIBUTE: Record<string, string> = {
  smart_5: "reallocated",
  smart_184: "end_to_end_errors",
  smart_187: "reported_uncorrectable",
  smart_188: "command_timeouts",
  smart_194: "temperature_c",
  smart_197: "pending",
  smart_198: "offline_uncorrectable",
  smart_199: "crc_errors",
};

/** What clients felt: a line, not a counter. */
const FELT = new Set(["read_ms", "write_ms", "commit_ms"]);
const DULL = new Set(["power_on_hours", "bytes_written", "bytes_read"]);
const FIRST = 6;
/** Drawn below all else on the same axis, whether they moved or not: where did the errors begin, and how warm was it? */
const BESIDE = ["kernel_errors", "osd_down", "latency_ratio", "crc_errors", "link_errors", "temperature_c"];
/** Drawn as bars in the OSD's lane, and as lanes of their own only where all series are asked for. */
const IN_OSD = new Set(["slow_minutes", "slow_ops"]);
/** px of a lane whose counter stands still. */
const STILL_HEIGHT = 44;
/** px of a lane below its bars. */
const MOVED_HEIGHT = 60;
/** px of the temperature with its limits, which may lie near each other. */
const HEAT_HEIGHT = 116;
/** The rank of what never moved. */
const STILL = 6;

export interface Drawn {
  lanes: Lane[];
  /** Counters that never moved, in words: no lane is spent on them. */
  still: string[];
  /** Whether there is more than is drawn. */
  more: boolean;
}

/** The drive's own limits in °C; null where it states none. */
export interface Heat {
  limit: number | null;
  critical: number | null;
}

export const NO_LIMITS: Heat = { limit: null, critical: null };

/** What the OSD on the disk went through, which its lane shows above up and down. */
export interface OsdFacts {
  rows: readonly SpanRow[];
  /** The ratio from which the service counts a minute as slow. */
  slowRatio: number;
}

const NO_FACTS: OsdFacts = { rows: [], slowRatio: Infinity };

export function lanesOf(series: readonly Series[], outlook: Outlook | null, all: boolean, heat: Heat = NO_LIMITS, under: OsdFacts = NO_FACTS): Drawn {
  const reasons = outlook?.reasons ?? [];
  const pointed = new Set(reasons.map(counterOf).filter((name) => name !== null));
  const ranked = [...series].sort((a, b) => rank(a, pointed) - rank(b, pointed));
  const draw = (one: Series): Lane => withFacts(lane(one, outlook, heat), under);
  if (all) return { lanes: ranked.map(draw), still: [], more: false };
  const beside = besideOf(series);
  const others = ranked.filter((one) => !beside.includes(one) && !IN_OSD.has(one.name));
  const shown = [...others.filter((one) => rank(one, pointed) < STILL).slice(0, FIRST), ...beside];
  const still = others.filter((one) => rank(one, pointed) === STILL).map(draw);
  return {
    lanes: shown.map((one) => (BESIDE.includes(one.name) && one.name !== "temperature_c" && !moves(one) ? lower(draw(one)) : draw(one))),
    still: still.map((one) => `${one.title.replace(/^[A-Z](?=[a-z])/, (letter) => letter.toLowerCase())} ${one.write(last(one.points)?.[1] ?? 0)}`),
    more: ranked.length > shown.length,
  };
}

function lower(drawn: Lane): Lane {
  return { ...drawn, height: STILL_HEIGHT + (drawn.spans?.length ?? 0) * SPAN_ROW };
}

/** The OSD's lane with its bars, and its latency with the limit of a slow minute. */
function withFacts(drawn: Lane, { rows, slowRatio }: OsdFacts): Lane {
  if (drawn.key === "latency_ratio" && Number.isFinite(slowRatio)) return { ...drawn, limits: [{ at: slowRatio, word: "slow minute", tone: "plain" }] };
  if (drawn.key !== "osd_down" || rows.length === 0) return drawn;
  return { ...drawn, spans: rows, height: MOVED_HEIGHT + rows.length * SPAN_ROW };
}

/** Of the two counters of a link, the one that moved; one of them is enough. */
function besideOf(series: readonly Series[]): Series[] {
  const found = BESIDE.flatMap((name) => series.filter((one) => one.name === name));
  const links = found.filter((one) => one.name === "crc_errors" || one.name === "link_errors");
  const link = links.find(moves) ?? links[0];
  return found.filter((one) => !links.includes(one) || one === link);
}

/** Forecast first, then what the reasons speak of, then what moved, then latency and temperature. */
function rank(series: Series, pointed: ReadonlySet<string>): number {
  if (series.name === "p_fail_30d") return 0;
  if (series.name === "latency_ratio" || FELT.has(series.name)) return 4;
  if (series.name === "temperature_c") return 5;
  if (DULL.has(series.name)) return STILL + 1;
  if (pointed.has(series.name)) return 1;
  return moves(series) ? 2 : STILL;
}

function moves(series: Series): boolean {
  const values = series.points.flatMap((point) => (point[1] === null ? [] : [point[1]]));
  return values.some((value) => value !== values[0]);
}

function counterOf(reason: Reason): string | null {
  if (reason.counter === null) return null;
  return BY_ATTRIBUTE[reason.counter] ?? reason.counter;
}

function lane(series: Series, outlook: Outlook | null, heat: Heat): Lane {
  const name = NAMES[series.name] ?? { title: series.name.replaceAll("_", " "), under: series.unit ?? "" };
  const marks = (outlook?.reasons ?? [])
    .map((reason, index) => ({ number: index + 1, counter: counterOf(reason) }))
    .filter((reason) => reason.counter === series.name)
    .map(({ number }) => ({ number, at: series.name === "latency_ratio" || series.name === "temperature_c" ? lastAt(series.points) : firstRise(series.points) }))
    .filter((mark): mark is { number: number; at: number } => mark.at !== null);
  const base = { key: series.name, ...name, points: series.points, marks };
  if (series.name === "p_fail_30d") {
    const tone = outlook?.status === "bad" || outlook?.status === "warning" ? outlook.status : undefined;
    return { ...base, draw: "step", filled: true, tone, from: 0, to: 1, write: percent, tick: (value) => String(Math.round(value * 100)) };
  }
  if (series.name === "latency_ratio") {
    return { ...base, draw: "line", from: 0.8, to: 2, write: ratio };
  }
  if (series.name === "osd_down") {
    return { ...base, draw: "step", changesOnly: true, from: 0, to: 1, write: (value) => (value > 0 ? "down" : "up"), tick: (value) => (value > 0 ? "down" : "up") };
  }
  if (FELT.has(series.name)) return { ...base, draw: "line", from: 0, write: (value) => `${value.toFixed(1)} ms`, tick: (value) => short(value) };
  if (series.name === "temperature_c") {
    const none = heat.limit === null && heat.critical === null;
    return {
      ...base,
      under: none ? `${name.under}, no limit reported` : name.under,
      draw: "line",
      from: 20,
      to: 50,
      write: (value) => `${Math.round(value)} \u00b0C`,
      tick: (value) => String(Math.round(value)),
      limits: limitsOf(heat),
      height: none ? undefined : HEAT_HEIGHT,
    };
  }
  const percentage = series.name === "percentage_used" || series.name === "available_spare_pct";
  if (percentage) return { ...base, draw: "step", from: 0, to: 100, write: (value) => `${Math.round(value)} %`, tick: (value) => String(Math.round(value)) };
  return { ...base, draw: "step", from: floorOf(series.points), write: (value) => count(value), tick: (value) => short(value) };
}

/** The last limit alone where both are one. */
function limitsOf({ limit, critical }: Heat): Limit[] {
  const found: Limit[] = [];
  if (critical !== null) found.push({ at: critical, word: limit === critical ? "the drive's limit" : "the drive's last limit", tone: "bad" });
  if (limit !== null && limit !== critical) found.push({ at: limit, word: "the drive's limit", tone: "warning" });
  return found;
}

/** 0, unless the counter stood so high before that its rise would not be seen from there. */
function floorOf(points: readonly Point[]): number {
  const values = points.flatMap((point) => (point[1] === null ? [] : [point[1]]));
  const low = Math.min(...values);
  const high = Math.max(...values);
  return values.length > 0 && high > low && low > high / 2 ? low : 0;
}

/** Large numbers on an axis: "12k", "3.4M". */
function short(value: number): string {
  for (const [size, letter] of [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]] as const) {
    if (value >= 10 * size || (value >= size && size > 1e3)) return `${Number((value / size).toPrecision(3))}${letter}`;
  }
  return count(value);
}

function firstRise(points: readonly Point[]): number | null {
  let before: number | null = null;
  for (const [at, value] of points) {
    if (value === null) continue;
    if (before !== null && value > before) return at;
    before = value;
  }
  return lastAt(points);
}

function lastAt(points: readonly Point[]): number | null {
  return points.findLast((point) => point[1] !== null)?.[0] ?? null;
}
