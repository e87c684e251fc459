/** Rows in the order that a person asked for: `temperature` the smallest first, `-temperature` the largest. */

/** A value in the unit of its column; null is not known. */
export type Cell = string | number | null;

export interface Sortable<Row> {
  name: string;
  value: (row: Row) => Cell;
}

export const isKnown = (value: Cell): value is string | number => value !== null && value !== "";

/** Sorted by the column that `sort` names, unknown values last; as they stand where it names none. */
export function sortRows<Row>(rows: readonly Row[], columns: readonly Sortable<Row>[], sort: string | null): Row[] {
  const falling = sort?.startsWith("-") ?? false;
  const column = columns.find((one) => one.name === (falling ? sort?.slice(1) : sort));
  if (!column) return [...rows];
  const known: { row: Row; value: string | number }[] = [];
  const unknown: Row[] = [];
  for (const row of rows) {
    const value = column.value(row);
    if (!isKnown(value)) unknown.push(row);
    else known.push({ row, value: typeof value === "string" ? value.toLowerCase() : value });
  }
  const sign = falling ? -1 : 1;
  known.sort((a, b) => (a.value < b.value ? -sign : a.value > b.value ? sign : 0));
  return [...known.map((one) => one.row), ...unknown];
}

/** What a press on the head of a column asks for: first its own order, then the other way round, then as before. */
export function nextSort(name: string, sort: string | null, largestFirst: boolean): string | null {
  const first = largestFirst ? `-${name}` : name;
  const second = largestFirst ? name : `-${name}`;
  if (sort === first) return second;
  return sort === second ? null : first;
}
