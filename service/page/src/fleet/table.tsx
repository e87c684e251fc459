/** The disks as a table: sorted by any head, saved as CSV, and many of them chosen for one act. */
import { useState } from "preact/hooks";
import { plural } from "../format.ts";
import { Sheet, type SheetColumn } from "../tables/sheet.tsx";
import { ManyDisks } from "./many.tsx";
import type { DiskRow } from "./rows.ts";

const keyOf = (row: DiskRow): string => row.key;

export function DiskTable({ rows, columns }: { rows: readonly DiskRow[]; columns: readonly SheetColumn<DiskRow>[] }) {
  const [chosen, choose] = useState<ReadonlySet<string>>(new Set());
  const named = new Map(rows.map((row) => [row.key, row.name]));
  return (
    <>
      <ManyDisks rows={rows.filter((row) => chosen.has(row.key))} clear={() => choose(new Set())} />
      <Sheet
        rows={rows}
        columns={columns}
        keyOf={keyOf}
        caption={(order) => `${plural(rows.length, "disk")}, ${order ?? "most urgent first"}`}
        file="disks.csv"
        choice={{ chosen, choose, nameOf: (key) => named.get(key) ?? key }}
      />
    </>
  );
}
