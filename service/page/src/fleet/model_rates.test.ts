import assert from "node:assert/strict";
import { test } from "node:test";
import type { DriveModel } from "../api/contract.ts";
import { byRisk, rateText } from "./model_rates.ts";

const watched = (failed: number, drive_years: number, rate: number, low: number, high: number): string =>
  rateText({ failed, drive_years, failures_per_year: rate, failures_per_year_low: low, failures_per_year_high: high });

test("a rate is a share of the drives a year with its interval, coarser from ten percent on", () => {
  assert.equal(watched(12, 1_000, 0.012, 0.0062, 0.021), "1.2 % (0.6 to 2.1)");
  assert.equal(watched(3, 20, 0.15, 0.0301, 0.438), "15 % (3.0 to 44)");
});

test("no failure is no rate of nothing: only its upper end is known", () => {
  assert.equal(watched(0, 200, 0, 0, 0.0184), "none; under 1.8 %");
});

test("drives that were hardly watched say nothing by not failing, but a failure among them is told", () => {
  assert.equal(watched(0, 0.5, 0, 0, 7.4), "watched too briefly");
  assert.match(watched(1, 0.5, 2, 0.05, 11), /^200 %/);
  assert.equal(rateText({ failed: 0, drive_years: 0, failures_per_year: null, failures_per_year_low: null, failures_per_year_high: null }), "not watched yet");
});

test("models with bad disks come first, then warnings, failures and the number of disks", () => {
  const model = (name: string, told: Partial<DriveModel>) => ({ model: name, disks: 10, failed: 0, warning: 0, bad: 0, ...told }) as DriveModel;
  const models = [model("many", { disks: 5_000 }), model("failed", { failed: 9 }), model("few", {}), model("warned", { warning: 1 }), model("bad", { bad: 1 })];
  assert.deepEqual(
    models.sort(byRisk).map((one) => one.model),
    ["bad", "warned", "failed", "many", "few"],
  );
});
