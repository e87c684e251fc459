/** Rows as comma-separated values, as `predrain disks --csv` writes them: units in the head, nothing that a spreadsheet would run. */
import type { Cell, Sortable } from "./sorting.ts";

export interface CsvColumn<Row> extends Sortable<Row> {
  /** Of its numbers; empty for text and plain numbers. */
  unit: string;
}

/** A spreadsheet executes a text that begins like this, and a drive's model is text from outside. */
const FORMULA = /^[=+\-@]/;
/** What is not printed as it stands: control characters, marks of direction, spaces that are none. */
const UNPRINTABLE = /(?! )[\p{C}\p{Z}]/gu;

/** Ten digits without an exponent, which some spreadsheets take for a text: 0.00005 and not 5e-5. */
const PLAIN = new Intl.NumberFormat("en-US", { useGrouping: false, maximumSignificantDigits: 10, signDisplay: "negative" });

export function toCsv<Row>(rows: readonly Row[], columns: readonly CsvColumn<Row>[]): string {
  const heads = columns.map((column) => quoted(column.unit ? `${column.name} (${column.unit})` : column.name));
  const lines = rows.map((row) => columns.map((column) => written(column.value(row))).join(","));
  return `${[heads.join(","), ...lines].join("\n")}\n`;
}

function written(cell: Cell): string {
  if (cell === null) return "";
  if (typeof cell === "number") return PLAIN.format(cell);
  const text = cell.replaceAll(UNPRINTABLE, escaped);
  return quoted(FORMULA.test(text) ? `'${text}` : text);
}

const SHORT: Record<string, string> = { "\t": "\\t", "\n": "\\n", "\r": "\\r" };

/** `\x1b`, `\u202e`: as Python writes what is not printable. */
function escaped(sign: string): string {
  const code = sign.codePointAt(0) ?? 0;
  const [letter, digits] = code < 0x100 ? ["x", 2] : code < 0x10000 ? ["u", 4] : ["U", 8];
  return SHORT[sign] ?? `\\${letter}${code.toString(16).padStart(digits, "0")}`;
}

function quoted(text: string): string {
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** Hand a file to the person's browser, which keeps it under this name. */
export function saveFile(name: string, content: string): void {
  const address = URL.createObjectURL(new Blob([content], { type: "text/csv;charset=utf-8" }));
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}
