/** The value of each column of a disk, in its unit; null is not known. A test holds them against those of the command line. */
import type { ColumnName } from "../api/columns.ts";
import { fullness, moved } from "../condition.ts";
import type { Cell } from "../tables/sorting.ts";
import { ageDays, bytesOf, chance, modelOf, reasonsOf, type DiskRow } from "./rows.ts";

const DAYS_A_YEAR = 365.25;
const TB = 1e12;
const scaled = (value: number | null | undefined, by: number): Cell => (value === null || value === undefined ? null : value * by);

export const diskCells: Record<ColumnName, (row: DiskRow) => Cell> = {
  disk: (row) => row.disk?.serial ?? row.disk?.device ?? row.osd?.device ?? row.name,
  severity: ({ disk, osd }) => disk?.severity ?? osd?.severity ?? disk?.state ?? osd?.state ?? "",
  fails_30d: (row) => scaled(chance(row), 100),
  fails_30d_week_ago: ({ osd }) => scaled(osd?.p_fail_30d_week_ago, 100),
  state: ({ disk, osd }) => {
    const one = disk ?? osd;
    return !one || one.state === "in_service" || one.severity === null ? "" : one.state;
  },
  host: (row) => row.host,
  rack: ({ osd }) => osd?.rack ?? null,
  slot: ({ disk, osd }) => osd?.slot ?? disk?.slot ?? null,
  osd: ({ disk, osd }) => (osd ? String(osd.osd) : (disk?.osds.join(",") ?? "")),
  map: ({ osd }) => (osd ? `${osd.up ? "up" : "down"} ${osd.in ? "in" : "out"}` : null),
  model: modelOf,
  size: (row) => scaled(bytesOf(row), 1 / TB),
  age: (row) => scaled(ageDays(row), 1 / DAYS_A_YEAR),
  temperature: ({ disk }) => disk?.temperature_c ?? null,
  latency: ({ osd }) => osd?.latency_ratio ?? null,
  full: ({ osd }) => scaled(osd && fullness(osd), 100),
  drain: ({ osd }) => {
    if (!osd?.drain) return null;
    const part = osd.drain.moved_bytes ? moved(osd.drain) : null;
    return osd.drain.state_text + (part === null ? "" : ` ${(100 * part).toFixed(0)} %`);
  },
  life_p10: ({ disk, osd }) => (osd ?? disk)?.life_p10_days ?? null,
  life_p90: ({ disk, osd }) => (osd ?? disk)?.life_p90_days ?? null,
  device_name: ({ disk }) => disk?.device_name ?? null,
  protocol: ({ disk }) => disk?.protocol ?? null,
  read_at: ({ disk, osd }) => disk?.taken_at ?? osd?.as_of ?? null,
  id: ({ disk, osd }) => disk?.device ?? osd?.device ?? null,
  why: (row) => reasonsOf(row).join(" ") || null,
};
