/** The drive models of the fleet, one row each: how many, how many failed, how many are at risk, how old, how often they fail. */
import type { ComponentChildren } from "preact";
import { useMemo } from "preact/hooks";
import type { DriveModel, DriveModelPage } from "../api/contract.ts";
import { age, count, plural } from "../format.ts";
import { Loading, Refused } from "../pieces.tsx";
import { useResource } from "../resource.ts";
import { route, withQuery } from "../route.ts";
import { SearchBox } from "../searchbox.tsx";
import { Shape } from "../shape.tsx";
import { Sheet, type SheetColumn } from "../tables/sheet.tsx";
import { FEW_YEARS, atRisk, byRisk, rateText } from "./model_rates.ts";

const keyOf = (one: DriveModel): string => one.model ?? "";
const nameOf = (one: DriveModel): string => one.model ?? "no model reported";

const COLUMNS: readonly SheetColumn<DriveModel>[] = [
  { name: "model", head: "Model", unit: "", number: false, class: "nowrap", value: (one) => one.model, cell: (one) => <ModelLink one={one} /> },
  { name: "disks", head: "Disks", unit: "", number: true, value: (one) => one.disks, cell: (one) => count(one.disks) },
  {
    name: "at_risk",
    head: "At risk",
    unit: "",
    number: true,
    class: "nowrap first-fact",
    value: atRisk,
    cell: (one) => (
      <>
        {one.bad > 0 && (
          <>
            <Shape of="bad" /> {count(one.bad)} bad{one.warning > 0 ? ", " : ""}
          </>
        )}
        {one.warning > 0 && (
          <>
            <Shape of="warning" /> {count(one.warning)} warning
          </>
        )}
        {atRisk(one) === 0 && <span class="muted">none</span>}
      </>
    ),
  },
  { name: "bad", head: "", unit: "", number: true, value: (one) => one.bad },
  { name: "warning", head: "", unit: "", number: true, value: (one) => one.warning },
  { name: "failed", head: "Failed here", unit: "", number: true, value: (one) => one.failed, cell: (one) => count(one.failed) },
  {
    name: "failure_rate",
    head: "Fail in a year",
    unit: "% of drive-years",
    number: true,
    class: "nowrap",
    value: (one) => percentOf(one.failures_per_year),
    cell: (one) => <Rate one={one} />,
  },
  { name: "failure_rate_low", head: "", unit: "% of drive-years", number: true, value: (one) => percentOf(one.failures_per_year_low) },
  { name: "failure_rate_high", head: "", unit: "% of drive-years", number: true, value: (one) => percentOf(one.failures_per_year_high) },
  { name: "drive_years", head: "Watched", unit: "drive-years", number: true, class: "nowrap", value: (one) => one.drive_years, cell: (one) => `${count(one.drive_years, one.drive_years < 10 ? 1 : 0)} drive-years` },
  { name: "age", head: "Age", unit: "years", number: true, class: "nowrap", value: (one) => (one.age_days_p50 === null ? null : one.age_days_p50 / 365.25), cell: (one) => age(one.age_days_p50) },
  { name: "size", head: "Size", unit: "TB", number: true, class: "nowrap", value: (one) => (one.capacity_bytes === null ? null : one.capacity_bytes / 1e12), cell: (one) => (one.capacity_bytes === null ? "not reported" : `${(one.capacity_bytes / 1e12).toFixed(1)} TB`) },
];

const percentOf = (rate: number | null): number | null => (rate === null ? null : rate * 100);

export function Models({ forms }: { forms: ComponentChildren }) {
  const { data, refused } = useResource<DriveModelPage>("models");
  const text = (route.value.query.get("q") ?? "").trim().toLowerCase();
  const rows = useMemo(() => [...(data?.items ?? [])].filter((one) => nameOf(one).toLowerCase().includes(text)).sort(byRisk), [data, text]);
  return (
    <>
      <div class="legend">
        <p class="muted explained">
          "Fail in a year" counts the failures seen here for each year that a drive was watched, with the range in which the true rate lies with 95 % certainty.
        </p>
        <div class="filter">
          {forms}
          <SearchBox label="Model" placeholder="model" />
        </div>
      </div>
      {refused && <Refused sentence={refused} />}
      {data === null ? (
        !refused && <Loading lines={5} />
      ) : rows.length === 0 ? (
        <p role="status">
          No model is called "{text}". <a href={withQuery({ q: null })}>Show all models</a>
        </p>
      ) : (
        <Sheet rows={rows} columns={COLUMNS} keyOf={keyOf} caption={(order) => `${plural(rows.length, "model")}, ${order ?? "most at risk first"}`} file="models.csv" />
      )}
    </>
  );
}

/** The disks of the model, in the table. */
function ModelLink({ one }: { one: DriveModel }) {
  if (one.model === null) return <>no model reported</>;
  return <a href={withQuery({ table: "1", q: one.model, sort: null, status: null })}>{one.model}</a>;
}

const WIDE = 120;
/** The right end of every bar, in failures for each drive-year: the same for all models, so that bars compare. */
const MOST = 0.1;

/** The rate in words, and its interval as a bar on a scale that all models share. */
function Rate({ one }: { one: DriveModel }) {
  const x = (rate: number): number => Math.min(1, rate / MOST) * WIDE;
  const { failures_per_year: rate, failures_per_year_low: low, failures_per_year_high: high } = one;
  return (
    <span class="rate">
      {rateText(one)}
      {rate !== null && low !== null && high !== null && (one.failed > 0 || one.drive_years >= FEW_YEARS) && (
        <svg class="interval" width={WIDE} height={8} aria-hidden="true">
          <line class="base" x1={0} x2={WIDE} y1={4} y2={4} />
          <line class="whisker" x1={x(low)} x2={Math.max(x(low) + 2, x(high))} y1={4} y2={4} />
          {one.failed > 0 && <circle cx={x(rate)} cy={4} r={3} />}
        </svg>
      )}
    </span>
  );
}
