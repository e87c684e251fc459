import assert from "node:assert/strict";
import { test } from "node:test";
import { toCsv } from "./csv.ts";
import { nextSort, sortRows } from "./sorting.ts";

const COLUMNS = [
  { name: "host", unit: "", value: (row: Row) => row.host },
  { name: "temperature", unit: "\u00b0C", value: (row: Row) => row.heat },
];
interface Row {
  host: string;
  heat: number | null;
}
const ROWS: Row[] = [{ host: "stor-2", heat: 31 }, { host: "Stor-1", heat: null }, { host: "stor-3", heat: 9 }];
const sorted = (sort: string | null): string[] => sortRows(ROWS, COLUMNS, sort).map((row) => row.host);

test("numbers sort as numbers, texts without their case, and unknown values stand last either way", () => {
  assert.deepEqual(sorted("temperature"), ["stor-3", "stor-2", "Stor-1"]);
  assert.deepEqual(sorted("-temperature"), ["stor-2", "stor-3", "Stor-1"]);
  assert.deepEqual(sorted("host"), ["Stor-1", "stor-2", "stor-3"]);
});

test("without an order, or by a column that is not there, rows stand as they came", () => {
  assert.deepEqual(sorted(null), ["stor-2", "Stor-1", "stor-3"]);
  assert.deepEqual(sorted("size"), ["stor-2", "Stor-1", "stor-3"]);
});

test("a head that is pressed three times leads back to the order before", () => {
  assert.equal(nextSort("age", null, true), "-age");
  assert.equal(nextSort("age", "-age", true), "age");
  assert.equal(nextSort("age", "age", true), null);
});

test("CSV has units in its head, nothing for what is unknown, and no text that a spreadsheet would run", () => {
  const rows = [{ host: '=cmd("x"),1', heat: null }, { host: "a\u001bb", heat: 31.5 }];
  assert.equal(toCsv(rows, COLUMNS), 'host,temperature (\u00b0C)\n"\'=cmd(""x""),1",\na\\x1bb,31.5\n');
});
