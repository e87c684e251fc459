/** What the disk reported: forecast, the counters that moved, latency and temperature, on one time axis. */
import type { Device, History, HistoryEvent, Osd } from "../api/contract.ts";
import { Lanes, type Band, type Lane } from "../charts/lanes.tsx";
import { gapsIn } from "../charts/scale.ts";
import { plural } from "../format.ts";
import { Loading, Refused } from "../pieces.tsx";
import { useResource } from "../resource.ts";
import { route, withQuery } from "../route.ts";
import { drainSpans, osdSeries, slowSpans, waitSpans } from "./osd_series.ts";
import { lanesOf, type OsdFacts } from "./series.ts";

const HOUR_MS = 3_600_000;

const RANGES = [
  { days: 7, word: "7 d" },
  { days: 60, word: "60 d" },
  { days: 365, word: "1 y" },
];

interface Props {
  history: History | null;
  refused: string | null;
  facts: Device;
  /** The OSD on the disk, where there is one alone. */
  osd: Osd | null;
  days: number;
  now: string | null;
}

export function HistoryCard({ history, refused, facts, osd, days, now }: Props) {
  const all = route.value.query.get("counters") === "all";
  const from = history && osd ? Date.parse(history.from) : null;
  const events = useResource<{ items: HistoryEvent[] }>(from === null ? null : eventsPath(facts.device, from, ["osd_down", "osd_up"]));
  const drains = useResource<{ items: HistoryEvent[] }>(from === null ? null : eventsPath(facts.device, from, ["drain"]));
  const series = history ? [...history.series, ...(osd && events.data ? [osdSeries(events.data.items, Date.parse(history.from), Date.parse(history.to), osd.up)] : [])] : [];
  const under = history ? factsOf(history, drains.data?.items ?? [], osd) : undefined;
  const heat = { limit: facts.temperature_limit_c, critical: facts.temperature_critical_c };
  const drawn = history ? lanesOf(series, facts.outlook, all, heat, under) : null;
  return (
    <section class="card history">
      <header class="card-head">
        <h2>What it reported, {days === 365 ? "1 year" : plural(days, "day")}</h2>
        <p class="muted">
          all times UTC{" "}
          {RANGES.map((range) => (
            <a key={range.days} href={withQuery({ days: String(range.days) })} aria-current={range.days === days ? "true" : undefined}>
              {range.word}
            </a>
          ))}{" "}
          {drawn && (drawn.more || all) && (
            <a href={withQuery({ counters: all ? null : "all" })}>{all ? "only what moved" : `all ${series.length} series`}</a>
          )}
        </p>
      </header>
      {refused && <Refused sentence={refused} />}
      {!history || !drawn ? (
        !refused && <Loading lines={6} />
      ) : drawn.lanes.length === 0 ? (
        <p class="muted">Nothing was reported in these days.</p>
      ) : (
        <>
          <Lanes
            lanes={drawn.lanes}
            from={Date.parse(history.from)}
            to={Date.parse(history.to)}
            now={now ? Date.parse(now) : null}
            bands={silences(history)}
            sentence={inWords(drawn.lanes)}
          />
          {drawn.still.length > 0 && <p class="muted still">Did not move: {drawn.still.join(", ")}.</p>}
        </>
      )}
    </section>
  );
}

/** What its OSD went through, beside the series. */
function factsOf(history: History, events: readonly HistoryEvent[], osd: Osd | null): OsdFacts {
  const [from, to] = [Date.parse(history.from), Date.parse(history.to)];
  const named = (name: string) => history.series.find((one) => one.name === name);
  return {
    slowRatio: history.slow_ratio,
    rows: [
      { title: "drains", spans: drainSpans(events, from, to, osd?.drain ?? null) },
      { title: "slow minutes", spans: slowSpans(named("slow_minutes")) },
      { title: "slow ops", spans: waitSpans(named("slow_ops")) },
    ].filter((row) => row.spans.length > 0),
  };
}

/** By the hour, so that the answer is known until the next one. A drain that holds often has a list of its own: it must not crowd out others. */
function eventsPath(device: string, from: number, kinds: readonly string[]): string {
  const since = new Date(Math.floor(from / HOUR_MS) * HOUR_MS).toISOString();
  const asked = kinds.map((kind) => ["kind", kind]);
  return `history?${new URLSearchParams([["disk", device], ...asked, ["limit", "1000"], ["since", since]]).toString()}`;
}

/** Where no series has a point, nothing was read: shaded over all lanes. */
function silences(history: History): Band[] {
  const times = [...new Set(history.series.flatMap((one) => one.points.filter((p) => p[1] !== null).map((p) => p[0])))].sort((a, b) => a - b);
  const gaps = gapsIn(times);
  return times.flatMap((at, index): Band[] => {
    const before = times[index - 1];
    return gaps[index] && before !== undefined ? [{ from: before, to: at, word: "no reading", kind: "gap" }] : [];
  });
}

function inWords(lanes: readonly Lane[]): string {
  const said = lanes.map((lane) => {
    const values = lane.points.flatMap((point) => (point[1] === null ? [] : [point[1]]));
    const first = values[0];
    const end = values.at(-1);
    if (first === undefined || end === undefined) return `${lane.title} is not reported`;
    const beside = (lane.spans ?? []).map((row) => `; ${row.title}: ${row.spans.length}`).join("");
    return `${first === end ? `${lane.title} stayed at ${lane.write(end)}` : `${lane.title} went from ${lane.write(first)} to ${lane.write(end)}`}${beside}`;
  });
  return `${said.join("; ")}.`;
}
