/** Disks for the tests of this room: healthy unless told otherwise. */
import type { Osd } from "../api/contract.ts";

export const NOW = "2026-11-21T03:12:00Z";

export function osd(number: number, told: Partial<Osd> = {}): Osd {
  return {
    osd: number,
    cluster: "00000000-0000-4000-8000-000000000000",
    host: `stor-${String(Math.floor(number / 10) + 1).padStart(2, "0")}`,
    rack: `r${Math.floor(number / 150) + 1}`,
    slot: number % 10,
    device: `ST12000NM0008_${number}`,
    model: "ST12000NM0008",
    up: true,
    in: true,
    reweight: 1,
    size_bytes: 12e12,
    used_bytes: 6e12,
    state: "in_service",
    severity: "good",
    status: "good",
    source: "model:default",
    p_fail_30d: 0.002,
    p_fail_30d_week_ago: 0.002,
    life_p10_days: 900,
    life_p50_days: 2_400,
    life_p90_days: null,
    reasons: ["No symptom."],
    prescription: "Nothing to do.",
    advice: "nothing",
    rule_score: null,
    as_of: "2026-11-21T03:08:00Z",
    age_days: 900,
    latency_ratio: 1,
    slow: false,
    unreadable: null,
    drain: null,
    blocking_drain: null,
    ...told,
  };
}

export const fleet = (many: number): Osd[] => Array.from({ length: many }, (_, number) => osd(number));
