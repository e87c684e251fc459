import assert from "node:assert/strict";
import { test } from "node:test";
import type { ClusterStatus, Disk } from "../api/contract.ts";
import { diskLead, needsOfDisks } from "./disk_needs.ts";
import { rowAnswersTo, rowsOfDisks } from "./rows.ts";
import { NOW } from "./sample.ts";

const disk = (serial: string, told: Partial<Disk> = {}): Disk =>
  ({ device: `ST4000DM000_${serial}`, serial, model: "ST4000DM000", host: "stor-01", state: "in_service", severity: "good", status: "good", source: "model:default", p_fail_30d: 0.002, reasons: [], prescription: "", advice: "nothing", taken_at: NOW, ...told }) as Disk;
const BAD: Partial<Disk> = { status: "bad", severity: "bad", p_fail_30d: 0.7, reasons: ["40 sectors wait to be reallocated."], advice: "drain-now" };

test("disks that failed or are retired are no rows, and those that need somebody come first", () => {
  const rows = rowsOfDisks([disk("A"), disk("F", { state: "failed" }), disk("R", { state: "retired" }), disk("W", { status: "warning", p_fail_30d: 0.1 }), disk("B", BAD)]);
  assert.deepEqual(
    rows.map((row) => row.name),
    ["B", "W", "A"],
  );
});

test("a disk that a rule calls bad stands above warnings and unknown disks, with a probability or without", () => {
  const rows = rowsOfDisks([
    disk("U", { status: "unknown", p_fail_30d: null }),
    disk("W", { status: "warning", p_fail_30d: null }),
    disk("P", { status: "warning", p_fail_30d: 0.2 }),
    disk("B", BAD),
    disk("R", { status: "bad", p_fail_30d: null }),
  ]);
  assert.deepEqual(
    rows.map((row) => row.name),
    ["R", "B", "P", "W", "U"],
  );
});

test("a bad disk without a cluster is copied and replaced, since nothing can be drained", () => {
  const { needs } = needsOfDisks(rowsOfDisks([disk("B", BAD), disk("A")]), NOW);
  assert.deepEqual(
    needs.map((need) => [need.name, need.why, need.next]),
    [["B", "40 sectors wait to be reallocated.", "Copy what is on it, and replace the disk."]],
  );
});

test("a disk that fell silent needs somebody, and one with a warning waits", () => {
  const { needs, inHand } = needsOfDisks(rowsOfDisks([disk("S", { state: "silent", taken_at: null }), disk("W", { status: "warning" })]), NOW);
  assert.deepEqual(
    needs.map((need) => [need.name, need.shape, need.why]),
    [["S", "old", "No reading has come."]],
  );
  assert.deepEqual(
    inHand.map((one) => [one.name, one.waits]),
    [["W", true]],
  );
});

test("the lead counts disks, hosts and what was found, and says why nothing can be drained", () => {
  const rows = rowsOfDisks([disk("A"), disk("B", BAD), disk("C", { host: "stor-02" })]);
  assert.equal(diskLead(rows, null), "3 disks on 2 hosts: 1 bad. No cluster is set, so nothing can be drained.");
  assert.equal(diskLead(rows, { halt_passes: true } as unknown as ClusterStatus), "3 disks on 2 hosts: 1 bad.");
});

test("a row answers to a part of its host, model, serial number or id, without its case", () => {
  const row = rowsOfDisks([disk("Z1Z0")])[0]!;
  assert.deepEqual(
    ["STOR-0", "st4000", "z1z", " ", "toshiba"].map((text) => rowAnswersTo(row, text)),
    [true, true, true, true, false],
  );
});
