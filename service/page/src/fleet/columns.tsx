/** The columns of the table of disks. Names and units are those of the command line; the values are the same, too. */
import type { ComponentChildren } from "preact";
import { COLUMNS, type ColumnName } from "../api/columns.ts";
import { age, life, percent, ratio, share } from "../format.ts";
import { fullness } from "../condition.ts";
import { WORDS } from "../forms.ts";
import { hostLink } from "../links.ts";
import { Shape } from "../shape.tsx";
import { ruleOf } from "../source.ts";
import type { Cell } from "../tables/sorting.ts";
import type { SheetColumn } from "../tables/sheet.tsx";
import { diskCells } from "./cells.ts";
import { ageDays, bytesOf, chance, sourceOf, type DiskRow } from "./rows.ts";

type Look = Pick<SheetColumn<DiskRow>, "cell" | "class" | "largestFirst">;

function column(name: ColumnName, head = "", look: Look = {}): SheetColumn<DiskRow> {
  return { name, head, ...COLUMNS[name], value: (row): Cell => diskCells[name](row), ...look };
}

const text = (name: ColumnName) => (row: DiskRow): ComponentChildren => diskCells[name](row) || "not reported";

const DISK = column("disk", "Disk", {
  class: "nowrap",
  cell: (row) => (
    <>
      <a href={row.href}>{row.name}</a>
      {row.osd && row.disk?.serial && <span class="device-id">{row.disk.serial}</span>}
    </>
  ),
});
const STATUS = column("severity", "Status", {
  class: "nowrap first-fact",
  cell: (row) => (
    <>
      <Shape of={row.shown} /> {row.shown === "old" && row.osd === null ? "silent" : WORDS[row.shown]}
    </>
  ),
});
const CHANCE = column("fails_30d", "Within 30 days", {
  cell: (row) => (chance(row) === null && ruleOf(sourceOf(row)) !== null ? "rule" : percent(chance(row))),
});
const WEEK_AGO = column("fails_30d_week_ago", "A week ago", { cell: (row) => percent(row.osd?.p_fail_30d_week_ago) });
const HOST = column("host", "Host", { class: "nowrap", cell: (row) => (row.host ? <a href={hostLink(row.host)}>{row.host}</a> : "not reported") });
const SLOT = column("slot", "Slot", { largestFirst: false });
const MODEL = column("model", "Model", { class: "nowrap", cell: text("model") });
const SIZE = column("size", "Size", { class: "nowrap", cell: (row) => inTb(bytesOf(row)) });
const AGE = column("age", "Age", { class: "nowrap", cell: (row) => age(ageDays(row)) });
const HEAT = column("temperature", "Temp.", {
  class: "nowrap",
  cell: (row) => (row.disk?.temperature_c == null ? "not reported" : warmth(row.disk.temperature_c, row.disk.temperature_limit_c ?? row.disk.temperature_critical_c)),
});
const LIKELY = column("life_p10", "Likely life", {
  class: "nowrap",
  largestFirst: false,
  cell: (row) => (chance(row) === null ? "not reported" : life((row.osd ?? row.disk)?.life_p10_days ?? null, (row.osd ?? row.disk)?.life_p90_days ?? null)),
});
const WHY = column("why", "Why", { class: "muted said", cell: (row) => diskCells.why(row) ?? "" });

const CSV_ONLY = (["state", "osd", "life_p90", "device_name", "protocol", "read_at", "id"] as const).map((name) => column(name));

/** Of disks that no cluster places. */
export const DISK_COLUMNS: readonly SheetColumn<DiskRow>[] = [DISK, STATUS, WHY, CHANCE, HOST, SLOT, MODEL, SIZE, AGE, HEAT, LIKELY, ...CSV_ONLY];

/** Of the disks under OSDs, with what the cluster says of them. */
export const OSD_COLUMNS: readonly SheetColumn<DiskRow>[] = [
  DISK,
  STATUS,
  WHY,
  CHANCE,
  WEEK_AGO,
  HOST,
  SLOT,
  MODEL,
  SIZE,
  AGE,
  HEAT,
  column("latency", "Latency", { cell: (row) => ratio(row.osd?.latency_ratio) }),
  column("full", "Full", { cell: (row) => share(row.osd && fullness(row.osd)) }),
  LIKELY,
  column("rack"),
  column("map"),
  column("drain"),
  ...CSV_ONLY,
];

/** "36 of 70 \u00b0C": the drive's own limit beside it, where it states one. */
function warmth(celsius: number, limit: number | null): string {
  return limit === null ? `${celsius} \u00b0C` : `${celsius} of ${limit} \u00b0C`;
}

/** Drives are sold by decimal terabytes, as `predrain disks` says their size. */
function inTb(bytes: number | null): string {
  return bytes === null ? "not reported" : `${(bytes / 1e12).toFixed(1)} TB`;
}
