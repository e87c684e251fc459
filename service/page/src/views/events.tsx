/** What happened, newest first: OSDs, disks, outlooks, drains, halts. The service tells and filters; the address says what is asked. */
import { useMemo } from "preact/hooks";
import type { HistoryEvent, HistoryGroup, HistoryPage } from "../api/contract.ts";
import type { Condition } from "../condition.ts";
import { bothClocks, stamp } from "../format.ts";
import { Loading, Refused } from "../pieces.tsx";
import { useResource } from "../resource.ts";
import { go, route, withQuery } from "../route.ts";
import { SearchBox } from "../searchbox.tsx";
import { Shape } from "../shape.tsx";
import { now, osds } from "../state.ts";

const A_PAGE = 100;
const HOUR_MS = 3_600_000;

const GROUPS: readonly { group: HistoryGroup; word: string }[] = [
  { group: "osd", word: "OSDs" },
  { group: "disk", word: "Disks" },
  { group: "outlook", word: "Outlooks" },
  { group: "drain", word: "Drains" },
  { group: "halt", word: "Halts" },
  { group: "controller", word: "Controllers" },
];

const SPANS: readonly { days: string; word: string }[] = [
  { days: "", word: "at any time" },
  { days: "1", word: "in the last day" },
  { days: "7", word: "in the last week" },
  { days: "30", word: "in the last 30 days" },
  { days: "365", word: "in the last year" },
];

/** What is not named here is told by its group. */
const KIND_SHAPES: Record<string, Condition> = {
  osd_down: "down",
  osd_up: "good",
  disk_failed: "bad",
  disk_silent: "old",
  disk_lost: "old",
  disk_replaced: "drained",
  disk_removed: "drained",
  outlook_better: "good",
  drain_failed: "bad",
  drain_drained: "drained",
  drain_verified: "drained",
  drain_handed_over: "drained",
};

const GROUP_SHAPES: Record<HistoryGroup, Condition> = {
  osd: "unknown",
  disk: "unknown",
  outlook: "warning",
  drain: "draining",
  halt: "warning",
  controller: "unknown",
};

/** Another question begins at its newest page. */
const ANEW = { cursor: null } as const;

export function Events() {
  const { query } = route.value;
  const path = pathOf(query, now.value);
  const { data, refused } = useResource<HistoryPage>(path);
  const narrowed = ["q", "kind", "host", "disk", "days"].some((name) => query.has(name));
  return (
    <section class="view events" aria-labelledby="events-head">
      <div class="headline">
        <h1 id="events-head">Events</h1>
        <p class="lead">
          What happened to OSDs, disks and drains, newest first. Times are UTC. <a href="/report">Report of a month</a>{" "}
          {narrowed && <a href="/events">Show all events</a>}
        </p>
      </div>
      <Filter />
      {refused && <Refused sentence={refused} />}
      {data === null ? (
        !refused && <Loading lines={8} />
      ) : (
        <>
          {data.items.length === 0 ? (
            <p role="status">{data.next ? "Nothing of that is among these events; older ones may have it." : narrowed ? "Nothing of that is known to have happened." : "Nothing has happened yet."}</p>
          ) : (
            <ol class="card happenings">
              {data.items.map((event) => (
                <Line event={event} key={event.at + event.kind + event.href + event.sentence} />
              ))}
            </ol>
          )}
          <p class="paging">
            {query.has("cursor") && <a href={withQuery(ANEW)}>Newest events</a>}
            {data.next && <a href={withQuery({ cursor: data.next })}>Older events</a>}
          </p>
        </>
      )}
    </section>
  );
}

function Line({ event }: { event: HistoryEvent }) {
  const disk = event.osd === null ? event.device : `osd.${event.osd}`;
  return (
    <li>
      <time dateTime={event.at} title={bothClocks(event.at)}>
        {stamp(event.at)}
      </time>
      <Shape of={KIND_SHAPES[event.kind] ?? GROUP_SHAPES[event.group]} />
      <a href={event.href}>{event.sentence}</a>
      <span class="narrowed">
        {event.host && (
          <a class="quiet" href={withQuery({ ...ANEW, host: event.host })} title={`Only events of ${event.host}`}>
            {event.host}
          </a>
        )}
        {disk && (
          <a class="quiet" href={withQuery({ ...ANEW, disk })} title={`Only events of ${disk}`}>
            {disk}
          </a>
        )}
      </span>
    </li>
  );
}

function Filter() {
  const { query } = route.value;
  const chosen = new Set(query.get("kind")?.split(",") ?? []);
  const host = query.get("host") ?? "";
  const list = osds.value;
  const hosts = useMemo(() => [...new Set([...(list ?? []).map((osd) => osd.host), host])].filter(Boolean).sort(), [list, host]);
  const toggle = (group: HistoryGroup): void => {
    const kept = GROUPS.map((one) => one.group).filter((one) => chosen.has(one) !== (one === group));
    go(withQuery({ ...ANEW, kind: kept.join(",") || null }), true);
  };
  return (
    <div class="event-filter" role="search">
      <SearchBox label="Words in the event" placeholder="words: failed, halt" also={ANEW} />
      <SearchBox label="Disk or OSD" placeholder="disk id or osd.217" name="disk" also={ANEW} />
      <label>
        <span class="unseen">Host</span>
        <select value={host} onChange={(event) => go(withQuery({ ...ANEW, host: event.currentTarget.value || null }), true)}>
          <option value="">any host</option>
          {hosts.map((one) => (
            <option value={one} key={one}>
              {one}
            </option>
          ))}
        </select>
      </label>
      <label>
        <span class="unseen">When</span>
        <select value={query.get("days") ?? ""} onChange={(event) => go(withQuery({ ...ANEW, days: event.currentTarget.value || null }), true)}>
          {SPANS.map((span) => (
            <option value={span.days} key={span.days}>
              {span.word}
            </option>
          ))}
        </select>
      </label>
      <div class="counts" role="group" aria-label="Show only">
        {GROUPS.map(({ group, word }) => (
          <button key={group} type="button" class="count" aria-pressed={chosen.has(group)} onClick={() => toggle(group)}>
            {word}
          </button>
        ))}
      </div>
    </div>
  );
}

/** What is asked of the service; null while its time is not known, from which a span counts back. */
function pathOf(query: URLSearchParams, at: string | null): string | null {
  const asked = new URLSearchParams({ limit: String(A_PAGE) });
  for (const name of ["q", "host", "disk", "cursor"]) {
    const value = query.get(name);
    if (value) asked.set(name, value);
  }
  for (const kind of query.get("kind")?.split(",") ?? []) if (kind) asked.append("kind", kind);
  const days = Number(query.get("days"));
  if (days > 0) {
    if (at === null) return null;
    // By the hour, so that the same is asked for, and answered by what is known, until the next one.
    const hour = Math.floor(Date.parse(at) / HOUR_MS) * HOUR_MS;
    asked.set("since", new Date(hour - days * 24 * HOUR_MS).toISOString());
  }
  return `history?${asked.toString()}`;
}
