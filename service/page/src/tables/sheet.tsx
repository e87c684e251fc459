/** A table that a person sorts by its heads and takes away as CSV; the address keeps the order. On a phone, a card a row. */
import type { ComponentChildren } from "preact";
import { useMemo, useState } from "preact/hooks";
import { count } from "../format.ts";
import { go, route, withQuery } from "../route.ts";
import { saveFile, toCsv, type CsvColumn } from "./csv.ts";
import { isKnown, nextSort, sortRows } from "./sorting.ts";

const PAGE = 100;

export interface SheetColumn<Row> extends CsvColumn<Row> {
  /** The head; empty: the column stands in CSV alone. One of which nothing is known stands there alone, too. */
  head: string;
  number: boolean;
  cell?: (row: Row) => ComponentChildren;
  /** Of the cell: `nowrap`, `said`. */
  class?: string;
  /** What a first press on the head puts first; the largest of numbers, the first of texts, unless it says otherwise. */
  largestFirst?: boolean;
}

interface Props<Row> {
  /** In the order that counts without a choice. */
  rows: readonly Row[];
  columns: readonly SheetColumn<Row>[];
  keyOf: (row: Row) => string;
  caption: (order: string | null) => ComponentChildren;
  /** Name of the file. */
  file: string;
  /** Which rows are chosen, and how to choose others; no boxes where it is not given. */
  choice?: Choice;
}

export interface Choice {
  chosen: ReadonlySet<string>;
  choose: (chosen: ReadonlySet<string>) => void;
  /** Of a row: what its box says. */
  nameOf: (key: string) => string;
}

export function Sheet<Row>({ rows, columns, keyOf, caption, file, choice }: Props<Row>) {
  const [most, setMost] = useState(PAGE);
  const sort = route.value.query.get("sort");
  const sorted = useMemo(() => sortRows(rows, columns, sort), [rows, columns, sort]);
  const shown = useMemo(() => columns.filter((column) => column.head !== "" && (rows.length === 0 || rows.some((row) => isKnown(column.value(row))))), [rows, columns]);
  const order = shown.find((column) => column.name === sort?.replace(/^-/, "")) ?? null;
  const rest = sorted.length - most;
  return (
    <div class="sheet">
      <div class="sheet-head">
        <p class="muted">{caption(order ? `by ${order.head.toLowerCase()}, ${sort?.startsWith("-") ? "largest" : "smallest"} first` : null)}</p>
        <SortChoice columns={shown} sort={sort} />
        <button type="button" class="button link" onClick={() => saveFile(file, toCsv(sorted, columns))}>
          Save {count(sorted.length)} as CSV
        </button>
      </div>
      <div class="table-frame" tabIndex={0} role="region" aria-label="Table">
        <table class="table sheet-table">
          <thead>
            <tr>
              {choice && <ChooseAll keys={sorted.map(keyOf)} choice={choice} />}
              {shown.map((column) => (
                <Head key={column.name} column={column} sort={sort} />
              ))}
            </tr>
          </thead>
          <tbody>
            {sorted.slice(0, most).map((row) => {
              const key = keyOf(row);
              return (
                <tr key={key} aria-selected={choice?.chosen.has(key) || undefined}>
                  {choice && <ChooseOne key_={key} choice={choice} />}
                  {shown.map((column, place) => cellOf(column, row, place === 0))}
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
      {rest > 0 && (
        <button type="button" class="button plain" onClick={() => setMost(most + 4 * PAGE)}>
          Show {count(Math.min(4 * PAGE, rest))} more of {count(rest)}
        </button>
      )}
    </div>
  );
}

function cellOf<Row>(column: SheetColumn<Row>, row: Row, first: boolean) {
  const content = column.cell ? column.cell(row) : (column.value(row) ?? "not reported");
  const look = [column.class, column.number && "number", `col-${column.name}`].filter(Boolean).join(" ");
  return first ? (
    <th key={column.name} scope="row" class={look}>
      {content}
    </th>
  ) : (
    <td key={column.name} class={look} data-head={column.head}>
      {content}
    </td>
  );
}

function Head<Row>({ column, sort }: { column: SheetColumn<Row>; sort: string | null }) {
  const way = sort === column.name ? "ascending" : sort === `-${column.name}` ? "descending" : undefined;
  return (
    <th scope="col" class={column.number ? "number" : ""} aria-sort={way}>
      <button type="button" class="sort" onClick={() => go(withQuery({ sort: nextSort(column.name, sort, column.largestFirst ?? column.number) }), true)}>
        {column.head}
        <span aria-hidden="true" class="way">
          {way === "ascending" ? "\u25b2" : way === "descending" ? "\u25bc" : ""}
        </span>
      </button>
    </th>
  );
}

/** The heads of the table where there are none: on a phone. */
function SortChoice<Row>({ columns, sort }: { columns: readonly SheetColumn<Row>[]; sort: string | null }) {
  return (
    <label class="sort-choice narrow">
      Sort by{" "}
      <select value={sort ?? ""} onChange={(event) => go(withQuery({ sort: event.currentTarget.value || null }), true)}>
        <option value="">what counts most</option>
        {columns.map((column) => {
          const name = nextSort(column.name, null, column.largestFirst ?? column.number) ?? "";
          return (
            <option key={column.name} value={name}>
              {column.head}
            </option>
          );
        })}
        {sort !== null && !columns.some((column) => nextSort(column.name, null, column.largestFirst ?? column.number) === sort) && <option value={sort}>{sort}</option>}
      </select>
    </label>
  );
}

function ChooseAll({ keys, choice }: { keys: readonly string[]; choice: Choice }) {
  const many = keys.filter((key) => choice.chosen.has(key)).length;
  return (
    <th scope="col" class="choose">
      <input
        type="checkbox"
        aria-label={`Choose all ${count(keys.length)}`}
        checked={keys.length > 0 && many === keys.length}
        ref={(box) => {
          if (box) box.indeterminate = many > 0 && many < keys.length;
        }}
        onChange={(event) => choice.choose(event.currentTarget.checked ? new Set(keys) : new Set())}
      />
    </th>
  );
}

function ChooseOne({ key_, choice }: { key_: string; choice: Choice }) {
  return (
    <td class="choose">
      <input
        type="checkbox"
        aria-label={`Choose ${choice.nameOf(key_)}`}
        checked={choice.chosen.has(key_)}
        onChange={(event) => {
          const chosen = new Set(choice.chosen);
          if (event.currentTarget.checked) chosen.add(key_);
          else chosen.delete(key_);
          choice.choose(chosen);
        }}
      />
    </td>
  );
}
