/** Columns of disks and OSDs, with the units of their numbers: the same as of `predrain disks` and `predrain osds`.
 *  Generated from service/cli/disk_rows.py by `make contract`. */
export const COLUMNS = {
  age: { unit: "years", number: true },
  device_name: { unit: "", number: false },
  disk: { unit: "", number: false },
  drain: { unit: "", number: false },
  fails_30d: { unit: "%", number: true },
  fails_30d_week_ago: { unit: "%", number: true },
  full: { unit: "%", number: true },
  host: { unit: "", number: false },
  id: { unit: "", number: false },
  latency: { unit: "x peers", number: true },
  life_p10: { unit: "days", number: true },
  life_p90: { unit: "days", number: true },
  map: { unit: "", number: false },
  model: { unit: "", number: false },
  osd: { unit: "", number: false },
  protocol: { unit: "", number: false },
  rack: { unit: "", number: false },
  read_at: { unit: "UTC", number: false },
  severity: { unit: "", number: false },
  size: { unit: "TB", number: true },
  slot: { unit: "", number: true },
  state: { unit: "", number: false },
  temperature: { unit: "°C", number: true },
  why: { unit: "", number: false },
} as const;

export type ColumnName = keyof typeof COLUMNS;
