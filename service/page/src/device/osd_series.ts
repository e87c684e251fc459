/** What the OSD of a disk went through, beside the series of the drive: down, drains, slow minutes, slow operations. Pure. */
import type { HistoryEvent, Osd, Series } from "../api/contract.ts";
import type { Span } from "../charts/cursor.ts";
import { gapsIn } from "../charts/scale.ts";
import { plural } from "../format.ts";

/** `from`, `to`: of the chart, in ms. `up`: whether the OSD is up now. `events`: of the disk, in any order. */
export function osdSeries(events: readonly HistoryEvent[], from: number, to: number, up: boolean): Series {
  const changes = events
    .filter((one) => one.kind === "osd_down" || one.kind === "osd_up")
    .map((one): [number, number] => [Date.parse(one.at), one.kind === "osd_down" ? 1 : 0])
    .filter(([at]) => at >= from && at <= to)
    .sort((a, b) => a[0] - b[0]);
  const first = changes[0];
  const before = first ? 1 - first[1] : up ? 0 : 1;
  return { name: "osd_down", unit: null, points: [[from, before], ...changes, [to, up ? 0 : 1]] };
}

const DRAIN = /^drain_/;
/** States that a drain does not leave by itself. */
const ENDED = new Set(["handed_over", "cancelled", "failed"]);
const TONES: Record<string, Span["tone"]> = { holding: "warning", paused: "warning", failed: "bad", proposed: "plain", verified: "plain", drained: "plain" };

/** The states of each drain, each from its event to the next one. An end is shown as long as a mark: it lasts no time. */
export function drainSpans(events: readonly HistoryEvent[], from: number, to: number, drain: Osd["drain"]): Span[] {
  const changes = events.filter((one) => DRAIN.test(one.kind) && one.drain !== null && Date.parse(one.at) <= to).sort((a, b) => Date.parse(a.at) - Date.parse(b.at));
  const found = changes.flatMap((event, place): Span[] => {
    const state = event.kind.replace(DRAIN, "");
    const next = changes.slice(place + 1).find((one) => one.drain === event.drain);
    const at = Date.parse(event.at);
    const open = next === undefined && !ENDED.has(state);
    const until = next ? Date.parse(next.at) : open ? to : at;
    return until < from ? [] : [{ open, from: Math.max(from, at), to: until, word: event.sentence, short: shown(state), tone: TONES[state] ?? "acting" }];
  });
  // Without an event in these days the drain has been in its state for longer.
  const told = drain !== null && changes.some((one) => one.drain === drain.id);
  if (drain === null || told || ENDED.has(drain.state)) return found;
  return [{ open: true, from, to, word: `Drain ${drain.id}: ${shown(drain.state)}, since before these days.`, short: shown(drain.state), tone: TONES[drain.state] ?? "acting" }, ...found];
}

const shown = (state: string): string => state.replaceAll("_", " ");

/** Neighbouring points with slow minutes are one span. */
export function slowSpans(series: Series | undefined): Span[] {
  return spansOf(series, (values) => {
    const minutes = Math.round(values.reduce((sum, value) => sum + value, 0));
    return { word: `${plural(minutes, "slow minute")}, beside its host's OSDs`, short: plural(minutes, "slow minute"), tone: "warning" };
  });
}

/** Operations that waited for longer than the OSD's complaint time: the most at once. */
export function waitSpans(series: Series | undefined): Span[] {
  return spansOf(series, (values) => {
    const most = Math.max(...values);
    return { word: `${plural(most, "slow op")} at once at most`, short: plural(most, "slow op"), tone: "bad" };
  });
}

type Said = Pick<Span, "word" | "short" | "tone">;

/** Runs of points above 0. Each point holds until the next one, and the last one as long as the one before it. */
function spansOf(series: Series | undefined, say: (values: number[]) => Said): Span[] {
  const points = series?.points ?? [];
  const gaps = gapsIn(points.map(([at]) => at));
  const found: { from: number; to: number; values: number[] }[] = [];
  points.forEach(([at, value], place) => {
    if (value === null || value <= 0) return;
    const [after, before] = [points[place + 1]?.[0], points[place - 1]?.[0]];
    const usual = before === undefined ? MINUTE_MS : at - before;
    const until = after === undefined || gaps[place + 1] ? at + usual : after;
    const run = found.at(-1);
    if (run && run.to === at) {
      run.to = until;
      run.values.push(value);
    } else found.push({ from: at, to: until, values: [value] });
  });
  return found.map(({ from, to, values }) => ({ from, to, ...say(values) }));
}

const MINUTE_MS = 60_000;
