/** The fleet: what needs a person now, then every disk at a glance, then what all of it rests on. */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Osd, OutlookPage } from "../api/contract.ts";
import { bothClocks, count, expected, longMoment, moment, plural, span } from "../format.ts";
import { Loading } from "../pieces.tsx";
import { useResource } from "../resource.ts";
import { COLOURINGS, route, withQuery, type Colouring } from "../route.ts";
import { alerts, clock, drainById, heardAt, now, osds, status, stream } from "../state.ts";
import { answersTo, sortBy } from "./colouring.ts";
import { Devices } from "./devices.tsx";
import { Legend } from "./legend.tsx";
import { NeedsList } from "./list.tsx";
import { FleetMap } from "./map.tsx";
import { headline, needsOf, type Need } from "./needs.ts";
import { FleetTable } from "./table.tsx";

export function Fleet() {
  const list = osds.value;
  const known = status.value;
  const at = now.value;
  const { needs, inHand } = useMemo(
    () => (list ? needsOf(list, { status: known, drains: drainById.value, now: at }) : { needs: [], inHand: [] }),
    [list, known, drainById.value, at],
  );
  return (
    <section class="view fleet" aria-labelledby="fleet-head">
      <div class="headline">
        <h1 id="fleet-head">{list ? (list.length ? headline(needs) : known?.halt_passes ? "The cluster has not answered yet" : "No cluster is known") : "Fleet"}</h1>
        <p class="lead">
          <Lead calm={needs.length === 0} />
        </p>
        {at && (
          <time class="now" dateTime={at} title={bothClocks(at)}>
            {longMoment(at)}
          </time>
        )}
      </div>
      <Announcer needs={needs} />
      {list === null ? <Loading lines={5} /> : list.length === 0 ? <NoDisks /> : <Known list={list} needs={needs} inHand={inHand} />}
      <Trust />
    </section>
  );
}

function Known({ list, needs, inHand }: { list: Osd[] } & ReturnType<typeof needsOf>) {
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
  const asTable = query.get("table") === "1";
  return (
    <>
      <NeedsList needs={needs} inHand={inHand} />
      <Legend by={by} buckets={sorted.buckets} chosen={chosen} asTable={asTable} />
      {!list.some((_, index) => shown(index)) && (
        <p role="status">
          No disk is {[chosen && (sorted.buckets.find((one) => one.key === chosen)?.word ?? `"${chosen}"`), text && `called "${text}"`].filter(Boolean).join(" and ")}.{" "}
          <a href={withQuery({ status: null, q: null })}>Show all disks</a>
        </p>
      )}
      {asTable ? (
        <FleetTable osds={list.filter((_, index) => shown(index))} now={at} />
      ) : (
        <FleetMap osds={list} sorted={sorted} shown={shown} now={at} />
      )}
    </>
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
      {plural(known.osds, "OSD")} on {plural(known.hosts, "host")}.{" "}
      {all === null
        ? "How many failures to expect is not reported."
        : `Expect ${expected(all)} failures in 30 days${silent === null ? "" : `, ${expected(silent)} of them without any sign beforehand`}.`}
    </>
  );
}

/** Without a cluster there is no map; what was read is still judged. */
function NoDisks() {
  const { data } = useResource<OutlookPage>("outlooks?limit=1000");
  if (data && data.items.length > 0) return <Devices outlooks={data.items} />;
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
function Trust() {
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
      <span class="keys-hint">
        <kbd>{"\u2190\u2191\u2193\u2192"}</kbd> move <kbd>Enter</kbd> open <kbd>n</kbd> next in trouble
      </span>
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
