import assert from "node:assert/strict";
import { test } from "node:test";
import { toCsv } from "./csv.ts";

const cellOf = (value: number): string => toCsv([value], [{ name: "chance", unit: "%", value: (one) => one }]).split("\n")[1] ?? "";

// The same numbers as in tests/service/test_cli_disks.py.
for (const [value, text] of [
  [0.00005, "0.00005"],
  [1.25e-9, "0.00000000125"],
  [-0.00001, "-0.00001"],
  [1 / 3, "0.3333333333"],
  [1e10, "10000000000"],
  [2.5e15, "2500000000000000"],
  [12, "12"],
  [0, "0"],
] as const) {
  test(`${value} is written without an exponent`, () => {
    assert.equal(cellOf(value), text);
  });
}
