/** The five ways to colour the map. Each sorts disks into buckets; the legend counts them, and a bucket is a filter. */
import type { Osd } from "../api/contract.ts";
import { CONDITIONS, condition, fullness, type Condition } from "../condition.ts";
import type { Colouring } from "../route.ts";
import { WORDS } from "../forms.ts";

export interface Bucket {
  /** In the address, as `status=`. */
  key: string;
  word: string;
  /** A condition's shape, a step of the ramp (0 to 3), a letter, or hollow for what is not reported. */
  mark: { condition: Condition } | { step: number } | { letter: string } | { hollow: true };
  many: number;
}

export interface Sorted {
  buckets: Bucket[];
  /** Index into `buckets` for each OSD, in their order. */
  of: Int16Array;
}

interface Ramp {
  value: (osd: Osd) => number | null;
  limits: readonly [number, number, number];
  words: readonly [string, string, string, string];
}

const RAMPS: Record<"latency" | "age" | "fullness", Ramp> = {
  latency: {
    value: (osd) => osd.latency_ratio,
    limits: [1.1, 1.25, 1.5],
    words: ["under 1.10x", "1.10 to 1.25x", "1.25 to 1.50x", "over 1.50x"],
  },
  age: {
    value: (osd) => osd.age_days,
    limits: [365, 3 * 365, 5 * 365],
    words: ["under 1 year", "1 to 3 years", "3 to 5 years", "over 5 years"],
  },
  fullness: {
    value: fullness,
    limits: [0.5, 0.7, 0.85],
    words: ["under 50 %", "50 to 70 %", "70 to 85 %", "over 85 %"],
  },
};

const MODELS = 6;

export function sortBy(by: Colouring, osds: readonly Osd[], now: string | null): Sorted {
  if (by === "outlook") return byOutlook(osds, now);
  return by === "model" ? byModel(osds) : byRamp(RAMPS[by], osds);
}

function byOutlook(osds: readonly Osd[], now: string | null): Sorted {
  const buckets = CONDITIONS.map((one): Bucket => ({ key: one, word: WORDS[one], mark: { condition: one }, many: 0 }));
  return fill(buckets, osds, (osd) => CONDITIONS.indexOf(condition(osd, now)));
}

/** The conditions of disks that no cluster places, counted. */
export function bucketsOfRows(rows: readonly { shown: Condition }[]): Bucket[] {
  const many = new Map<Condition, number>();
  for (const { shown } of rows) many.set(shown, (many.get(shown) ?? 0) + 1);
  return CONDITIONS.map((one): Bucket => ({ key: one, word: one === "old" ? "silent" : WORDS[one], mark: { condition: one }, many: many.get(one) ?? 0 }));
}

function byRamp(ramp: Ramp, osds: readonly Osd[]): Sorted {
  const buckets = ramp.words.map((word, step): Bucket => ({ key: String(step), word, mark: { step }, many: 0 }));
  buckets.push({ key: "none", word: "not reported", mark: { hollow: true }, many: 0 });
  return fill(buckets, osds, (osd) => {
    const value = ramp.value(osd);
    if (value === null) return 4;
    const step = ramp.limits.findIndex((limit) => value < limit);
    return step < 0 ? 3 : step;
  });
}

function byModel(osds: readonly Osd[]): Sorted {
  const many = new Map<string, number>();
  for (const osd of osds) if (osd.model) many.set(osd.model, (many.get(osd.model) ?? 0) + 1);
  const common = [...many].sort((a, b) => b[1] - a[1] || a[0].localeCompare(b[0])).slice(0, MODELS).map(([model]) => model);
  const buckets = common.map((model, index): Bucket => {
    const letter = String.fromCharCode(65 + index);
    return { key: letter, word: model, mark: { letter }, many: 0 };
  });
  buckets.push({ key: "other", word: "other models", mark: { letter: "\u00b7" }, many: 0 });
  buckets.push({ key: "none", word: "not reported", mark: { hollow: true }, many: 0 });
  const places = new Map(common.map((model, index) => [model, index]));
  return fill(buckets, osds, (osd) => (osd.model ? (places.get(osd.model) ?? common.length) : common.length + 1));
}

function fill(buckets: Bucket[], osds: readonly Osd[], place: (osd: Osd) => number): Sorted {
  const of = new Int16Array(osds.length);
  osds.forEach((osd, index) => {
    const at = place(osd);
    of[index] = at;
    const bucket = buckets[at];
    if (bucket) bucket.many += 1;
  });
  return { buckets, of };
}

/** Whether a disk answers to the text of the filter: its host, rack, model or device. */
export function answersTo(osd: Osd, text: string): boolean {
  const wanted = text.trim().toLowerCase();
  if (!wanted) return true;
  return [osd.host, osd.rack, osd.model, osd.device, `osd.${osd.osd}`].some((name) => name?.toLowerCase().includes(wanted));
}
