/** What the disk reported: forecast, the counters that moved, latency and temperature, on one time axis. */
import type { History, Outlook } from "../api/contract.ts";
import { Lanes, type Band } from "../charts/lanes.tsx";
import { gapsIn } from "../charts/scale.ts";
import { plural } from "../format.ts";
import { Loading, Refused } from "../pieces.tsx";
import { route, withQuery } from "../route.ts";
import { lanesOf } from "./series.ts";

const RANGES = [
  { days: 7, word: "7 d" },
  { days: 60, word: "60 d" },
  { days: 365, word: "1 y" },
];

interface Props {
  history: History | null;
  refused: string | null;
  outlook: Outlook | null;
  days: number;
  now: string | null;
}

export function HistoryCard({ history, refused, outlook, days, now }: Props) {
  const all = route.value.query.get("counters") === "all";
  const drawn = history ? lanesOf(history.series, outlook, all) : null;
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
            <a href={withQuery({ counters: all ? null : "all" })}>{all ? "only what moved" : `all ${history?.series.length} series`}</a>
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

/** Where no series has a point, nothing was read: shaded over all lanes. */
function silences(history: History): Band[] {
  const times = [...new Set(history.series.flatMap((one) => one.points.filter((p) => p[1] !== null).map((p) => p[0])))].sort((a, b) => a - b);
  const gaps = gapsIn(times);
  return times.flatMap((at, index): Band[] => {
    const before = times[index - 1];
    return gaps[index] && before !== undefined ? [{ from: before, to: at, word: "no reading", kind: "gap" }] : [];
  });
}

function inWords(lanes: ReturnType<typeof lanesOf>["lanes"]): string {
  const said = lanes.map((lane) => {
    const values = lane.points.flatMap((point) => (point[1] === null ? [] : [point[1]]));
    const first = values[0];
    const end = values.at(-1);
    if (first === undefined || end === undefined) return `${lane.title} is not reported`;
    return first === end ? `${lane.title} stayed at ${lane.write(end)}` : `${lane.title} went from ${lane.write(first)} to ${lane.write(end)}`;
  });
  return `${said.join("; ")}.`;
}
