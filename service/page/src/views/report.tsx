/** One month in numbers, each counted from the list below it; the list can be saved as CSV. */
import type { Report as Answer, ReportEntry } from "../api/contract.ts";
import { plural, tib } from "../format.ts";
import { At, DiskLink, Loading, Refused } from "../pieces.tsx";
import { useResource } from "../resource.ts";
import { go, route, withQuery } from "../route.ts";
import { now } from "../state.ts";
import { type CsvColumn, saveFile, toCsv } from "../tables/csv.ts";

const MONTH_NAMES = ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"];
const MONTHS_BACK = 13;

/** The columns of `predrain report --csv`. */
const COLUMNS: readonly CsvColumn<ReportEntry>[] = [
  { name: "at", unit: "UTC", value: (row) => row.at },
  { name: "kind", unit: "", value: (row) => row.kind },
  { name: "host", unit: "", value: (row) => row.host },
  { name: "osd", unit: "", value: (row) => row.osd },
  { name: "id", unit: "", value: (row) => row.device },
  { name: "drain", unit: "", value: (row) => row.drain },
  { name: "intent", unit: "", value: (row) => row.intent },
  { name: "moved", unit: "bytes", value: (row) => row.moved_bytes },
  { name: "called", unit: "days", value: (row) => row.called_days },
  { name: "above_limit", unit: "hours", value: (row) => row.hours_above },
  { name: "measured", unit: "hours", value: (row) => row.hours_measured },
  { name: "sentence", unit: "", value: (row) => row.sentence },
];

/** The months that can be chosen, the present one first, as "2026-10". */
export function lastMonths(at: number, many = MONTHS_BACK): string[] {
  const today = new Date(at);
  return Array.from({ length: many }, (_, back) => new Date(Date.UTC(today.getUTCFullYear(), today.getUTCMonth() - back)).toISOString().slice(0, 7));
}

/** "2026-10" as "October 2026". */
export function monthName(month: string): string {
  return `${MONTH_NAMES[Number(month.slice(5, 7)) - 1] ?? month} ${month.slice(0, 4)}`;
}

/** The hours in which clients were slower than the limit, of those that were measured. */
export function slowHours(report: Pick<Answer, "hours_above" | "hours_measured">): string {
  if (report.hours_above === null || report.hours_measured === null) return "not measured";
  return `${report.hours_above.toFixed(1)} h of ${report.hours_measured.toFixed(1)} h`;
}

export function Report() {
  return now.value === null ? <Loading lines={6} /> : <Chosen at={Date.parse(now.value)} />;
}

function Chosen({ at }: { at: number }) {
  const months = lastMonths(at);
  const chosen = route.value.query.get("month") ?? months[1] ?? "";
  const { data, refused } = useResource<Answer>(`report?month=${encodeURIComponent(chosen)}`);
  return (
    <section class="view" aria-labelledby="report-head">
      <div class="headline">
        <h1 id="report-head">Report of {monthName(chosen)}</h1>
        <p class="lead">What predrain did, and what it missed. Each number is counted from the list below it.</p>
        <label class="chosen-month">
          Month{" "}
          <select value={chosen} onChange={(event) => go(withQuery({ month: event.currentTarget.value }), true)}>
            {months.map((month) => (
              <option key={month} value={month}>
                {monthName(month)}
              </option>
            ))}
          </select>
        </label>
      </div>
      {refused && <Refused sentence={refused} />}
      {data === null ? !refused && <Loading lines={6} /> : <Month report={data} month={chosen} />}
    </section>
  );
}

function Month({ report, month }: { report: Answer; month: string }) {
  return (
    <>
      {!report.whole && <p class="muted">The month is not over, or predrain has no history of its begin. The numbers are of the time that it knows.</p>}
      <Numbers report={report} />
      <h2>Disks and drains behind the numbers</h2>
      {report.entries.length === 0 ? (
        <p class="muted">No disk failed or was swapped, and no drain ended.</p>
      ) : (
        <>
          <Entries entries={report.entries} />
          <button
            type="button"
            class="button plain save"
            onClick={() => saveFile(`predrain-${month}.csv`, toCsv(report.entries, COLUMNS))}
          >
            Save as CSV
          </button>
        </>
      )}
    </>
  );
}

function Numbers({ report }: { report: Answer }) {
  return (
    <div class="card">
      <dl class="facts numbers">
        <dt>Drives swapped empty, before they failed</dt>
        <dd>{report.swapped_empty}</dd>
        <dt>Drives that failed</dt>
        <dd>
          {report.failures}
          {report.failures > 0 && (
            <span class="muted">
              {" "}
              ({report.failed_empty} empty already, {report.failed_while_draining} while drained, {report.failed_called} after a warning,{" "}
              {report.missed} missed)
            </span>
          )}
        </dd>
        <dt>False alarms: called bad, then withdrawn</dt>
        <dd>{report.false_alarms}</dd>
        <dt>Drains and fills that ended</dt>
        <dd>
          {report.drains}, {report.moved_bytes === 0 ? "no data" : tib(report.moved_bytes)} moved
        </dd>
        <dt>Drains with latency above {report.latency_limit} times the hour before</dt>
        <dd>{slowHours(report)}</dd>
      </dl>
    </div>
  );
}

function Entries({ entries }: { entries: readonly ReportEntry[] }) {
  return (
    <div class="card table-frame" tabIndex={0}>
      <table class="table">
        <caption>{plural(entries.length, "entry", "entries")}, oldest first. Times are UTC.</caption>
        <thead>
          <tr>
            <th scope="col">Time</th>
            <th scope="col">Disk</th>
            <th scope="col">Host</th>
            <th scope="col">What happened</th>
            <th scope="col" class="number">
              Moved
            </th>
            <th scope="col">Drain</th>
          </tr>
        </thead>
        <tbody>
          {entries.map((one) => (
            <tr key={`${one.at} ${one.kind} ${one.device ?? one.drain ?? ""}`}>
              <td class="nowrap">
                <At time={one.at} wide />
              </td>
              <td>
                <DiskLink osd={one.osd} device={one.device} />
              </td>
              <td>{one.host ?? <span class="muted">not known</span>}</td>
              <td>{one.sentence}</td>
              <td class="number nowrap">{one.moved_bytes === null ? "" : tib(one.moved_bytes)}</td>
              <td>{one.drain && <a href={`/drains/${encodeURIComponent(one.drain)}`}>{one.drain}</a>}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
