import assert from "node:assert/strict";
import { test } from "node:test";
import type { ClusterStatus, Drain, Osd } from "../api/contract.ts";
import { headline, needsOf, type Needs } from "./needs.ts";
import { NOW, fleet, osd } from "./sample.ts";

const inMode = (mode: ClusterStatus["mode"], halted: string | null = null): ClusterStatus => ({ mode, halted }) as ClusterStatus;

function seen(osds: Osd[], status: ClusterStatus = inMode("propose"), drains: Drain[] = []): Needs {
  return needsOf(osds, { status, drains: new Map(drains.map((drain) => [drain.id, drain])), now: NOW });
}

const bad: Partial<Osd> = { status: "bad", p_fail_30d: 0.68, p_fail_30d_week_ago: 0.002, life_p10_days: 2, life_p50_days: 12, life_p90_days: 110 };
const drain = (state: NonNullable<Osd["drain"]>["state"]): NonNullable<Osd["drain"]> => ({ id: "D-1", state, state_text: state, state_names_intent: false, intent: "replace", moved_bytes: 0, planned_bytes: 1e12, held_by: [] });

test("a healthy fleet needs nobody", () => {
  const { needs, inHand } = seen(fleet(40));
  assert.deepEqual([needs, inHand], [[], []]);
  assert.equal(headline(needs), "No disk needs you");
});

test("a proposed drain comes first and leads to its plan", () => {
  const { needs } = seen([osd(1, { up: false }), osd(2, { ...bad, drain: drain("proposed") })]);
  assert.equal(needs[0]?.name, "osd.2");
  assert.equal(needs[0]?.buttonHref, "/drains/D-1");
  assert.equal(needs[0]?.sure, "68 % within 30 days");
  assert.equal(needs[0]?.before, ", was 0.2 % a week ago");
  assert.equal(needs[0]?.likely, "likely 2 to 110 days, even odds by day 12");
  assert.equal(headline(needs), "2 disks need you");
});

test("in mode act a drain starts by itself and needs nobody, unless all is halted", () => {
  const disks = [osd(2, { ...bad, drain: drain("proposed") })];
  assert.equal(seen(disks, inMode("act")).needs.length, 0);
  assert.equal(seen(disks, inMode("act")).inHand.length, 1);
  assert.equal(seen(disks, inMode("act", "maintenance")).needs.length, 1);
});

test("a drain that a person asked for waits for a person in every mode, however well the disk is", () => {
  const asked = { id: "D-1", requested_by: "ada", held_by: [], plan: null } as unknown as Drain;
  for (const mode of ["propose", "act"] as const) {
    const { needs, inHand } = seen([...fleet(20), osd(42, { drain: drain("proposed") })], inMode(mode), [asked]);
    assert.deepEqual([needs.map((need) => need.name), inHand], [["osd.42"], []]);
    assert.equal(headline(needs), "1 disk needs you");
  }
  const { needs } = seen([osd(42, { drain: drain("failed") })], inMode("act"), [asked]);
  assert.match(needs[0]?.next ?? "", /^The drain stopped and needs a person/);
});

test("the time that is left of a drain is the service's, and none where it knows none", () => {
  const told = (remaining_hours: number | null) => {
    const planned = { id: "D-1", requested_by: "predrain", held_by: [], plan: { eta_hours: 10 }, remaining_hours } as unknown as Drain;
    return seen([osd(2, { ...bad, drain: drain("draining") })], inMode("act"), [planned]).inHand[0]?.text;
  };
  assert.match(told(0.5) ?? "", /, about 30 min left$/);
  assert.doesNotMatch(told(null) ?? "", /left/);
});

test("a disk that was filled is not to be swapped, and one in quarantine is not called draining", () => {
  const besides = (intent: "fill" | "quarantine", state: NonNullable<Osd["drain"]>["state"], changed: Partial<Osd> = {}) => seen([osd(2, { ...changed, drain: { ...drain(state), intent } })], inMode("act"));
  const filled = besides("fill", "verified");
  assert.deepEqual([filled.needs.length, filled.inHand[0]?.text], [0, "fill verified"]);
  const slow = besides("quarantine", "draining", { source: "rule:slow", latency_ratio: 1.4 });
  assert.equal(slow.inHand[0]?.shape, "slow");
  assert.match(slow.inHand[0]?.text ?? "", /quarantine/);
  const asked = seen([osd(2, { drain: { ...drain("proposed"), intent: "quarantine" } })]);
  assert.match(asked.needs[0]?.next ?? "", /stops being the primary of PGs/);
});

test("a drain that holds for more than a day needs a person", () => {
  const long = { id: "D-1", updated_at: "2026-11-19T03:12:00Z", held_by: ["osd.4 is full"], plan: null } as unknown as Drain;
  const short = { ...long, updated_at: "2026-11-21T03:00:00Z" };
  const disks = [osd(2, { ...bad, drain: drain("holding") })];
  assert.match(seen(disks, inMode("act"), [long]).needs[0]?.next ?? "", /held since 19 Nov 03:12: osd\.4 is full\./);
  assert.equal(seen(disks, inMode("act"), [short]).needs.length, 0);
});

test("a disk that cannot be read needs a person, and no probability is claimed for it", () => {
  const { needs } = seen([...fleet(20), osd(88, { status: "unknown", p_fail_30d: null, unreadable: { since: "2026-11-21T02:14:00Z", cause: "open_failed", blames_host: false, reason: "6 probes failed" } })]);
  assert.equal(needs[0]?.sure, "Unknown");
  assert.match(needs[0]?.why ?? "", /No reading since 02:14: 6 probes failed\./);
});

test("a host without readings is one thing, not ten", () => {
  const dark = fleet(40).map((one) => (one.host === "stor-02" ? { ...one, status: "unknown" as const, as_of: "2026-11-21T00:02:00Z" } : one));
  const { needs } = seen(dark);
  assert.equal(needs.length, 1);
  assert.equal(needs[0]?.name, "stor-02");
  assert.equal(headline(needs), "1 thing needs you");
});

test("hosts that all fell silent are one thing, and each disk of a fleet that was never read is none", () => {
  const silent = fleet(40).map((one) => ({ ...one, as_of: "2026-11-19T08:00:00Z" }));
  const { needs } = seen(silent);
  assert.deepEqual([needs.map((need) => need.name), headline(needs)], [["All 4 hosts"], "1 thing needs you"]);
  assert.match(needs[0]?.why ?? "", /No readings since 19 Nov 08:00/);
  assert.equal(seen(fleet(40).map((one) => ({ ...one, status: "unknown", source: null, as_of: null }))).needs.length, 0);
});

test("a disk that fell silent says since when, and does not ask for nothing", () => {
  const { needs } = seen([...fleet(20), osd(88, { as_of: "2026-11-19T08:00:00Z" })]);
  assert.equal(needs[0]?.why, "No reading since 19 Nov 08:00, 43 h 12 min. Before: No symptom.");
  assert.doesNotMatch(needs[0]?.next ?? "", /Nothing to do/);
});

test("a host whose disks are read but cannot be judged is not called away", () => {
  const unjudged = fleet(40).map((one) => (one.host === "stor-02" ? { ...one, status: "unknown" as const, p_fail_30d: null } : one));
  assert.equal(seen(unjudged).needs.length, 0);
});

test("a rule's outlook shows the rule and no probability", () => {
  const { needs } = seen([osd(5, { status: "bad", source: "rule:spare", p_fail_30d: null })]);
  assert.equal(needs[0]?.sure, "By rule spare");
  assert.equal(needs[0]?.likely, "a rule, no probability");
  const scored = seen([osd(5, { status: "bad", source: "rule:spare", p_fail_30d: null, rule_score: 0.9 })]);
  assert.equal(scored.needs[0]?.likely, "evidence 0.90 of 1, a rule, no probability");
});

test("what a warning asks for is told as what can wait, never as nothing to do", () => {
  const warned = osd(48, { status: "warning", p_fail_30d: 0.19, advice: "replace-soon", prescription: "Plan to replace it soon, and run a long self-test." });
  const { needs, inHand } = seen([...fleet(20), warned, osd(60, { status: "warning", p_fail_30d: 0.04, advice: "watch" })]);
  assert.equal(needs.length, 0);
  assert.deepEqual(inHand.map((item) => [item.name, item.waits, item.text]), [
    ["osd.48", true, "19 %, plan to replace it soon"],
    ["osd.60", false, "4 %, watched"],
  ]);
});

test("an OSD that is down is told as the other view tells it, and is not to be drained", () => {
  const dead = osd(416, { ...bad, up: false, in: false, prescription: "Drain it now and replace the disk." });
  assert.equal(seen([dead]).needs[0]?.next, "Ceph rebuilds its data from the other copies. Replace the disk.");
  assert.match(seen([{ ...dead, in: true }]).needs[0]?.next ?? "", /once it is out/);
});

test("a disk that was drained is handed over before it is pulled, and its OSD keeps its id only where it is replaced", () => {
  const emptied = (intent: "replace" | "remove") => seen([osd(2, { drain: { ...drain("verified"), intent } })]).needs[0]?.next ?? "";
  assert.match(emptied("replace"), /Hand it over, then swap the disk; the OSD keeps its id/);
  assert.match(emptied("remove"), /Hand it over, then pull the disk; its OSD goes with it/);
});

test("a cell never tells to drain at once and that nothing is proposed yet", () => {
  const { needs } = seen([osd(3, { ...bad, prescription: "Drain it now and replace the disk." })]);
  assert.equal(needs[0]?.next, "A drain is proposed once further readings confirm it.");
});

test("a disk that failed is not forecast and asks for no drain", () => {
  const ended = osd(2, { state: "failed", status: "unknown", p_fail_30d: null, unreadable: { since: NOW, cause: "open_failed", blames_host: false, reason: "it does not answer" } });
  const { needs, inHand } = seen([...fleet(20), ended]);
  assert.deepEqual([needs.length, inHand.map((item) => item.text)], [0, ["failed"]]);
});
