/** Everything that happened, newest first: outlooks that changed and every line of the drains' journals, equals folded. */
import { useEffect, useState } from "preact/hooks";
import { get } from "../api/client.ts";
import type { JournalLine } from "../api/contract.ts";
import type { Condition } from "../condition.ts";
import { STATE_SHAPE, targetOf } from "../drains/naming.ts";
import { fold } from "../drains/fold.ts";
import { moment, plural, sentence, statement } from "../format.ts";
import { At, Loading, Refused } from "../pieces.tsx";
import { deviceLink, drainLink } from "../links.ts";
import { route, withQuery } from "../route.ts";
import { Shape } from "../shape.tsx";
import { alerts, drains, round } from "../state.ts";

interface Happening {
  at: string;
  shape: Condition;
  who: string;
  href: string | null;
  text: string;
  more: string;
  device: string | null;
}

const JOURNALS = 20;
const FIRST = 100;
const SOONEST_MS = 2_000;

export function Events() {
  const device = route.value.query.get("device");
  const { journals, missing } = useJournals(device);
  const all = happenings(journals ?? new Map()).filter((one) => !device || one.device === device);
  const [most, setMost] = useState(FIRST);
  const loading = drains.value === null || alerts.value === null || journals === null;
  let day = "";
  return (
    <section class="view events" aria-labelledby="events-head">
      <div class="headline">
        <h1 id="events-head">Events</h1>
        <p class="lead">
          {device ? (
            <>
              Only {device}. <a href={withQuery({ device: null })}>All disks</a>
            </>
          ) : (
            `Changes of outlook, and what the ${Math.min(JOURNALS, drains.value?.length ?? 0)} newest drains saw and did. Times are UTC.`
          )}
        </p>
      </div>
      {missing > 0 && <Refused sentence={`What ${plural(missing, "drain")} did could not be read: it is missing below, or old.`} />}
      {loading ? (
        <Loading lines={8} />
      ) : all.length === 0 ? (
        <p class="muted">{device ? "Nothing is known to have happened to it: no change of its outlook, no drain." : "Nothing has happened yet."}</p>
      ) : (
        <>
        <ol class="card happenings">
          {all.slice(0, most).map((one) => {
            const today = moment(one.at, null).split(" ").slice(0, 2).join(" ");
            const first = today !== day;
            day = today;
            return (
              <li key={one.at + one.who + one.text} class={first ? "first" : ""}>
                <At time={one.at} wide />
                <Shape of={one.shape} />
                <b>{one.href ? <a href={one.href}>{one.who}</a> : one.who}</b>
                <span>
                  {one.text} <span class="muted">{one.more}</span>
                </span>
              </li>
            );
          })}
        </ol>
        {all.length > most && (
          <p>
            <button type="button" class="button plain" onClick={() => setMost(most + 4 * FIRST)}>
              Show {Math.min(4 * FIRST, all.length - most)} more of {all.length - most}
            </button>
          </p>
        )}
        </>
      )}
    </section>
  );
}

function happenings(journals: ReadonlyMap<string, JournalLine[]>): Happening[] {
  const found: Happening[] = [];
  for (const alert of alerts.value ?? []) {
    found.push({
      at: alert.at,
      shape: alert.status,
      who: alert.osd === null ? (alert.device ?? "a disk") : `osd.${alert.osd}`,
      href: alert.device ? deviceLink(alert.device) : null,
      text: `Outlook ${alert.status}. ${sentence(alert.why)}`,
      more: alert.sure ?? "",
      device: alert.device,
    });
  }
  for (const drain of drains.value ?? []) {
    for (const line of fold(journals.get(drain.id) ?? [])) {
      found.push({
        at: line.until,
        shape: STATE_SHAPE[drain.state] === "bad" ? "bad" : "draining",
        who: targetOf(drain),
        href: drainLink(drain.id),
        text: statement(line.decided || line.seen),
        more: [line.decided ? line.seen : "", line.answered, line.looks > 1 ? plural(line.looks, "look") : ""].filter(Boolean).join("; "),
        device: drain.device,
      });
    }
  }
  return found.sort((a, b) => b.at.localeCompare(a.at));
}

interface Journals {
  /** By drain; null until they were asked for once. */
  journals: ReadonlyMap<string, JournalLine[]> | null;
  /** How many could not be read when last asked for; what was read of them before stays. */
  missing: number;
}

/** The journals of the newest drains, or of the newest of one device, fetched anew when something changed; unchanged ones cost a 304. */
function useJournals(device: string | null): Journals {
  const [held, setHeld] = useState<Journals>({ journals: null, missing: 0 });
  const [askedAt, setAskedAt] = useState(0);
  const changed = round.value;
  const known = drains.value;
  const newest = (known ?? []).filter((drain) => !device || drain.device === device).sort((a, b) => b.updated_at.localeCompare(a.updated_at)).slice(0, JOURNALS);
  const ids = newest.map((drain) => drain.id).join(" ");
  useEffect(() => {
    if (known === null) return undefined;
    const timer = setTimeout(
      () => {
        setAskedAt(Date.now());
        void Promise.all(ids.split(" ").filter(Boolean).map(journalOf)).then((all) =>
          setHeld((old) => ({
            journals: new Map(all.map(([id, lines]) => [id, lines ?? old.journals?.get(id) ?? []])),
            missing: all.filter(([, lines]) => lines === null).length,
          })),
        );
      },
      Math.max(0, askedAt + SOONEST_MS - Date.now()),
    );
    return () => clearTimeout(timer);
  }, [ids, changed, known === null]);
  return held;
}

/** Null where it could not be read. */
async function journalOf(id: string): Promise<[string, JournalLine[] | null]> {
  const lines = get<{ items: JournalLine[] }>(`drains/${encodeURIComponent(id)}/journal`);
  return lines.then((body): [string, JournalLine[] | null] => [id, body.items], () => [id, null]);
}
