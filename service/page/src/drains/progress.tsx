/** A drain under way: data left, PGs in flight and the latency of clients, on one time axis, with its holds shaded. */
import type { DrainWhole, Intent, Timeline } from "../api/contract.ts";
import { Lanes, type Band, type Lane } from "../charts/lanes.tsx";
import type { Point } from "../charts/scale.ts";
import { empties, movedText, remaining } from "../condition.ts";
import { clockOf, count, moment, plural, ratio, span, statement, tib } from "../format.ts";
import { deviceLink } from "../links.ts";
import { Shape } from "../shape.tsx";
import { now, osdByNumber } from "../state.ts";
import { CALLED, STATE_SHAPE, targetOf, tellState } from "./naming.ts";
import { Guards } from "./guards.tsx";
import { Verbs } from "./verbs.tsx";
import { Insist, Insisting } from "./insist.tsx";
import { WaysOut } from "./ways.tsx";

/** Where pacing holds and backs off, as a ratio of clients' latency before (design 6.6). */
const HOLD_RATIO = 1.2;
const BACK_OFF_RATIO = 1.5;
const TIB = 2 ** 40;

export function Progress({ drain, Title }: { drain: DrainWhole; Title: "h1" | "h2" }) {
  const { progress } = drain;
  const osd = osdByNumber.value.get(drain.osds[0] ?? -1);
  const refusing = drain.guards.filter((guard) => !guard.ok && !guard.overruled);
  return (
    <div class="drain-main">
      <header class="panel-head with-buttons">
        <div>
          <Title>
            <Shape of={STATE_SHAPE[drain.state]} size={16} /> {headline(drain)}
          </Title>
          <p class="muted">
            {drain.id}
            {osd ? `, ${osd.host}, slot ${osd.slot}` : ""}. {count(progress.moved_pgs)} of {plural(progress.planned_pgs, "PG")}
            {progress.lost_pgs ? `, ${plural(progress.lost_pgs, "PG")} lost a copy on the old disk before it was moved` : ""}
            {drain.device && (
              <>
                {" \u00b7 "}
                <a href={deviceLink(drain.device)}>{drain.device}</a>
              </>
            )}
          </p>
        </div>
        <Verbs drain={drain} />
      </header>
      <Insisting drain={drain} />
      {(drain.state === "holding" || drain.state === "draining" || refusing.length > 0 || drain.ways_out.length > 0) && drain.held_by.length > 0 && (
        <ul class="refusals">
          {drain.held_by.map((why) => (
            <li key={why}>{statement(why)}</li>
          ))}
        </ul>
      )}
      <WaysOut drain={drain} />
      {drain.read_errors.map((said) => <p key={said}>{statement(said)}</p>)}
      {drain.end_reason && <p>{statement(drain.end_reason)}</p>}
      {drain.state === "verified" && <HandOver drain={drain} />}
      {drain.timeline && drain.timeline.t.length > 1 ? <Chart drain={drain} timeline={drain.timeline} /> : <p class="muted">No step was taken, so there is nothing to draw.</p>}
      {refusing.length > 0 && (
        <details class="as-table">
          <summary>
            {refusing.length} of {drain.guards.length} guards refuse
          </summary>
          <Guards guards={drain.guards} />
        </details>
      )}
      <Insist drain={drain} />
    </div>
  );
}

/** The unit of an axis whose largest value is `bytes`; that of `tib`. */
function sizeUnit(bytes: number): { bytes: number; word: string } {
  const word = tib(bytes).split(" ")[1] ?? "TiB";
  return { word, bytes: word === "MiB" ? 2 ** 20 : word === "GiB" ? 2 ** 30 : TIB };
}

/** What has become of the part that is told. */
const MOVED: Record<Intent, string> = { replace: "moved", remove: "moved", fill: "filled", quarantine: "led by others" };

function headline(drain: DrainWhole): string {
  const target = targetOf(drain);
  const part = drain.intent === "quarantine" ? `${count(drain.progress.moved_pgs)} of ${plural(drain.progress.planned_pgs, "PG")}` : movedText(drain.progress);
  const { done } = CALLED[drain.intent];
  const took = drain.duration_hours === null ? "" : ` in ${span(drain.duration_hours * 3_600)}`;
  switch (drain.state) {
    case "draining":
      return `${target}: ${part || "0 %"} ${MOVED[drain.intent]}${remaining(drain)}`;
    case "holding":
      return `${target}: holding at ${part || "0 %"}`;
    case "paused":
      return `${target}: paused at ${part || "0 %"}`;
    case "drained":
      return `${target}: ${done}, being verified`;
    case "verified":
      return `${target}: ${done} and verified${took}`;
    case "handed_over":
      return `${target}: ${done}${took}, handed over`;
    default:
      return `${target}: ${tellState(drain)}`;
  }
}

function HandOver({ drain }: { drain: DrainWhole }) {
  if (!empties(drain)) return <p>The disk has its share and stays. Nothing is to be handed over; <code>predrain drain hand-over {drain.id}</code> takes it off the list.</p>;
  return (
    <div class="hand-over">
      <p>No PG is left on it and every copy is counted elsewhere. To hand it over:</p>
      <ol>
        <li>
          <code>predrain drain hand-over {drain.id}</code> asks once more whether it may go, and lists what is left to do here: by cephadm, by Rook or by hand.
        </li>
        <li>Then {drain.intent === "replace" ? "swap the disk: the OSD keeps its id, its weight and its slot." : "pull the disk: its OSD goes for good, and the slot stays empty."}</li>
        <li>Record the outcome on the disk's page; the forecast learns from it.</li>
      </ol>
    </div>
  );
}

function Chart({ drain, timeline }: { drain: DrainWhole; timeline: Timeline }) {
  const { t } = timeline;
  const first = t[0] ?? 0;
  const sampled = t.at(-1) ?? first;
  const running = ["draining", "holding", "preparing"].includes(drain.state);
  const end = running && now.value ? Math.max(sampled, Date.parse(now.value)) : sampled;
  // Samples are taken where something changed; until now the last one holds.
  const pair = (values: readonly (number | null)[]): Point[] => [
    ...t.map((at, index): Point => [at, values[index] ?? null]),
    ...(end > sampled ? [[end, values.at(-1) ?? null] as const] : []),
  ];
  const left = (drain.remaining_hours ?? 0) * 3_600_000;
  const done = end + left;
  const to = left > 0 ? end + left * 1.15 : end;
  const most = Math.max(...timeline.bytes_left.map((value) => value ?? 0), drain.progress.planned_bytes, 1);
  const unit = sizeUnit(most);
  const lanes: Lane[] = [
    {
      key: "left",
      title: drain.intent === "fill" ? "Data to come" : "Data left",
      under: unit.word,
      points: pair(timeline.bytes_left),
      draw: "step",
      changesOnly: true,
      filled: true,
      tone: "acting",
      from: 0,
      write: (value) => tib(value),
      tick: (value) => (value / unit.bytes).toFixed(unit.bytes === TIB ? 1 : 0),
      to: most,
      height: 104,
      ahead: left > 0 ? { at: done, early: end + left * 0.8, late: end + left * 1.15, value: 0, word: `done about ${stamp(done)}`, under: "if nothing holds it" } : null,
    },
    {
      key: "flight",
      title: "PGs in flight",
      under: drain.progress.budget === null ? "budget not reported" : `at most ${drain.progress.budget} now`,
      points: pair(timeline.in_flight),
      draw: "step",
      changesOnly: true,
      filled: true,
      from: 0,
      write: (value) => String(value),
    },
    {
      key: "latency",
      title: "Client latency",
      under: "to the hour before",
      points: pair(timeline.latency_ratio),
      draw: "step",
      changesOnly: true,
      from: 0.9,
      to: 1.6,
      write: ratio,
      tick: (value) => `${value.toFixed(1)}x`,
      limits: [
        { at: HOLD_RATIO, word: "hold", tone: "warning" },
        { at: BACK_OFF_RATIO, word: "back off", tone: "bad" },
      ],
      height: 104,
    },
  ];
  const bands = timeline.holds.map((hold): Band => {
    const from = new Date(hold.from).getTime();
    const until = hold.to === null ? end : new Date(hold.to).getTime();
    const held = `held ${span((until - from) / 1_000)}`;
    const word = `${held}, ${hold.reason}`;
    return { from, to: until, word, labels: [shorten(word), held], kind: "hold" };
  });
  return (
    <>
      <Lanes
        lanes={lanes}
        from={first}
        to={Math.max(to, first + 60_000)}
        now={left > 0 ? end : null}
        bands={bands}
        sentence={`${headline(drain)}. Latency ${ratio(timeline.latency_ratio.findLast((one) => one !== null) ?? null)} of the hour before; ${bands.length ? `held ${plural(bands.length, "time")}` : "never held"}.`}
      />
      {bands.length > 0 && (
        <details class="as-table">
          <summary>Held {plural(bands.length, "time")}</summary>
          <ul class="log">
            {bands.map((band) => (
              <li key={band.from}>
                <span>{moment(band.from, now.value)}</span> <span>{band.word}</span>
              </li>
            ))}
          </ul>
        </details>
      )}
    </>
  );
}

const shorten = (text: string): string => (text.length > 44 ? `${text.slice(0, 43)}\u2026` : text);

function stamp(at: number): string {
  const today = now.value?.slice(0, 10) === new Date(at).toISOString().slice(0, 10);
  return today ? clockOf(at) : moment(at, now.value);
}
