/** The fleet: what needs a person now, then every disk at a glance, then what all of it rests on. */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Osd } from "../api/contract.ts";
import { bothClocks, count, expected, longMoment, moment, plural, span } from "../format.ts";
import { Loading } from "../pieces.tsx";
import { readDisks } from "../live.ts";
import { COLOURINGS, route, withQuery, type Colouring } from "../route.ts";
import { alerts, clock, disks, drainById, heardAt, now, osds, status, stream } from "../state.ts";
import { answersTo, bucketsOfRows, sortBy } from "./colouring.ts";
import { DISK_COLUMNS, OSD_COLUMNS } from "./columns.tsx";
import { diskLead, needsOfDisks } from "./disk_needs.ts";
import { Legend } from "./legend.tsx";
import { NeedsList } from "./list.tsx";
import { FleetMap } from "./map.tsx";
import { headline, needsOf, type Need } from "./needs.ts";
import { Models } from "./models.tsx";
import { rowAnswersTo, rowsOfDisks, rowsOfOsds, type DiskRow } from "./rows.ts";
import { DiskTable } from "./table.tsx";

export function Fleet() {
  const list = osds.value;
  const known = status.value;
  const at = now.value;
  const form = formOf(route.value.query.get("table"), list);
  useEffect(() => (form === "map" ? undefined : readDisks()), [form === "map"]);
  const loose = useMemo(() => (list?.length === 0 && disks.value ? rowsOfDisks(disks.value) : null), [list, disks.value]);
  const { needs, inHand } = useMemo(() => {
    if (loose) return needsOfDisks(loose, at);
    return list ? needsOf(list, { status: known, drains: drainById.value, now: at }) : { needs: [], inHand: [] };
  }, [list, loose, known, drainById.value, at]);
  return (
    <section class="view fleet" aria-labelledby="fleet-head">
      <div class="headline">
        <h1 id="fleet-head">{headOf(list, loose, needs)}</h1>
        <p class="lead">{loose?.length ? diskLead(loose, known) : <Lead calm={needs.length === 0} />}</p>
        {at && (
          <time class="now" dateTime={at} title={bothClocks(at)}>
            {longMoment(at)}
          </time>
        )}
      </div>
      <Announcer needs={needs} />
      {list === null || (list.length === 0 && loose === null) ? (
        <Loading lines={5} />
      ) : loose ? (
        loose.length === 0 ? <NoDisks /> : <Unplaced rows={loose} needs={needs} inHand={inHand} form={form} />
      ) : (
        <Known list={list} needs={needs} inHand={inHand} form={form} />
      )}
      <Trust map={form === "map" && (list?.length ?? 0) > 0} />
    </section>
  );
}

/** How the disks are shown: without a cluster there is no map. */
type Form = "map" | "table" | "models";

function formOf(asked: string | null, list: readonly Osd[] | null): Form {
  if (asked === "models") return "models";
  return asked === "1" || list?.length === 0 ? "table" : "map";
}

function headOf(list: readonly Osd[] | null, loose: readonly DiskRow[] | null, needs: readonly Need[]): string {
  if (list === null) return "Fleet";
  // A cluster that is silent may hide what needs a person, so nothing is called calm.
  const silent = list.length === 0 && needs.length === 0 && status.value?.halt_passes;
  if (!silent && (list.length > 0 || (loose !== null && loose.length > 0))) return headline(needs);
  return silent ? "The cluster has not answered yet" : "No disk is known yet";
}

/** The other ways to look at the same disks. */
function Forms({ form, map }: { form: Form; map: boolean }) {
  const forms: readonly [Form, string, string | null][] = [
    ["map", "As a map", null],
    ["table", "As a table", "1"],
    ["models", "By model", "models"],
  ];
  return (
    <nav class="forms" aria-label="Show the disks">
      {forms
        .filter(([one]) => map || one !== "map")
        .map(([one, word, asked]) => (
          <a key={one} href={withQuery({ table: asked, sort: null })} aria-current={one === form ? "true" : undefined}>
            {word}
          </a>
        ))}
    </nav>
  );
}

function Known({ list, needs, inHand, form }: { list: Osd[]; form: Form } & ReturnType<typeof needsOf>) {
  const { query } = route.value;
  const asked = query.get("by");
  const by: Colouring = COLOURINGS.find((one) => one === asked) ?? "outlook";
  const chosen = query.get("status");
  const text = query.get("q") ?? "";
  const at = now.value;
  const sorted = useMemo(() => sortBy(by, list, at), [by, list, at]);
  const shown = useMemo(() => {
    if (!chosen && !text.trim()) return () => true;
    const kept = list.map((osd, index) => (!chosen || sorted.buckets[sorted.of[index] ?? 0]?.key === chosen) && answersTo(osd, text));
    return (index: number): boolean => kept[index] ?? false;
  }, [list, sorted, chosen, text]);
  // Not before the disks are known: a file that is saved from half a table would lack temperatures, and not say so.
  const rows = useMemo(() => (form === "table" && disks.value ? rowsOfOsds(list.filter((_, index) => shown(index)), disks.value, at) : null), [form, list, shown, disks.value, at]);
  return (
    <>
      <NeedsList needs={needs} inHand={inHand} />
      {form === "models" ? (
        <Models forms={<Forms form={form} map />} />
      ) : (
        <>
          <Legend by={by} buckets={sorted.buckets} chosen={chosen} forms={<Forms form={form} map />} />
          {!list.some((_, index) => shown(index)) && <NoneShown word={chosen && (sorted.buckets.find((one) => one.key === chosen)?.word ?? `"${chosen}"`)} text={text} />}
          {form === "map" ? <FleetMap osds={list} sorted={sorted} shown={shown} now={at} /> : rows ? <DiskTable rows={rows} columns={OSD_COLUMNS} /> : <Loading lines={5} />}
        </>
      )}
    </>
  );
}

/** Disks that no cluster places: what was read is judged, sorted and searched all the same. */
function Unplaced({ rows, needs, inHand, form }: { rows: DiskRow[]; form: Form } & ReturnType<typeof needsOf>) {
  const { query } = route.value;
  const chosen = query.get("status");
  const text = query.get("q") ?? "";
  const buckets = useMemo(() => bucketsOfRows(rows), [rows]);
  const shown = useMemo(() => rows.filter((row) => (!chosen || row.shown === chosen) && rowAnswersTo(row, text)), [rows, chosen, text]);
  const forms = <Forms form={form} map={false} />;
  return (
    <>
      <NeedsList needs={needs} inHand={inHand} />
      {form === "models" ? (
        <Models forms={forms} />
      ) : (
        <>
          <Legend by={null} buckets={buckets} chosen={chosen} forms={forms} />
          {shown.length === 0 && <NoneShown word={chosen && (buckets.find((one) => one.key === chosen)?.word ?? `"${chosen}"`)} text={text} />}
          <DiskTable rows={shown} columns={DISK_COLUMNS} />
        </>
      )}
    </>
  );
}

function NoneShown({ word, text }: { word: string | null; text: string }) {
  return (
    <p role="status">
      No disk is {[word, text && `called "${text}"`].filter(Boolean).join(" and ")}. <a href={withQuery({ status: null, q: null })}>Show all disks</a>
    </p>
  );
}

function Lead({ calm }: { calm: boolean }) {
  const known = status.value;
  if (!known) return null;
  const { expected_30d: all, expected_silent_30d: silent } = known.forecast;
  const last = alerts.value?.[0]?.at;
  return (
    <>
      {calm && last && known.osds > 0 ? `Last change ${moment(last, known.now)}. ` : ""}
      {known.osds > 0 && `${plural(known.osds, "OSD")} on ${plural(known.hosts, "host")}. `}
      {all === null
        ? "How many failures to expect is not reported."
        : `Expect ${expected(all)} failures in 30 days${silent === null ? "" : `, ${expected(silent)} of them without any sign beforehand`}.`}
    </>
  );
}

/** Nothing was read yet: how a host is enrolled. */
function NoDisks() {
  return (
    <div class="card empty">
      <p>No collector has sent a reading. Make a one-time token for each OSD host, here:</p>
      <pre>predrain token enrol HOST</pre>
      <p>
        There, name this service in <code>/etc/predrain/collector.toml</code> (<code>url</code>), exchange the token, and collect:
      </p>
      <pre>{"predrain collect --enrol TOKEN\npredrain collect"}</pre>
      <p class="muted">
        Disks appear here with their first reading{status.value?.halt_passes ? "" : "; OSDs, and drains, with a cluster: [ceph] in the settings"}.
      </p>
    </div>
  );
}

/** What all of the above rests on: how fresh the readings are, whose forecast it is, how old the cluster's view. */
/** `map`: whether the map is shown, whose keys are named. */
function Trust({ map }: { map: boolean }) {
  const known = status.value;
  if (!known) return null;
  const { fresh, total } = known.readings;
  const lost = stream.value.kind === "lost" && heardAt.value !== null ? Math.max(0, (clock.value - heardAt.value) / 1_000) : 0;
  return (
    <footer class="trust">
      <span>
        Readings: {count(fresh)} of {count(total)} fresh
      </span>
      <span>Forecast: {known.forecast.bundle ? `bundle ${known.forecast.bundle}` : "no bundle is loaded"}</span>
      <span>
        Cluster view: {known.view_age_seconds === null ? "none, no drain can start" : `${span(known.view_age_seconds + lost)} old`}
        {known.epoch === null ? "" : `, epoch ${known.epoch}`}
      </span>
      <span>
        Mode {known.mode}
        {known.controller ? `, controller ${known.controller}` : ""}
      </span>
      {map && (
        <span class="keys-hint">
          <kbd>{"\u2190\u2191\u2193\u2192"}</kbd> move <kbd>Enter</kbd> open <kbd>n</kbd> next in trouble
        </span>
      )}
    </footer>
  );
}

const QUIET_MS = 30_000;

/** For screen readers: says only what newly needs a person, and at most every 30 seconds. */
function Announcer({ needs }: { needs: readonly Need[] }) {
  const [text, setText] = useState("");
  const before = useRef<Set<string> | null>(null);
  const spokeAt = useRef(0);
  useEffect(() => {
    const keys = new Set(needs.map((need) => need.key));
    if (before.current === null) {
      if (needs.length > 0 || osds.value !== null) before.current = keys;
      return;
    }
    const fresh = needs.filter((need) => !before.current?.has(need.key));
    if (fresh.length === 0 || Date.now() - spokeAt.current < QUIET_MS) return;
    before.current = keys;
    spokeAt.current = Date.now();
    const first = fresh[0];
    if (first) setText(`${first.name} is now ${first.shape}, ${first.sure}. ${headline(needs)}.`);
  }, [needs]);
  return (
    <p class="unseen" aria-live="polite">
      {text}
    </p>
  );
}
