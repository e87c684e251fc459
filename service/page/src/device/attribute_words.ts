/** What a value of a drive says beside those of its peers, in words. Pure. */
import type { Attribute, Attributes, Rarity } from "../api/contract.ts";
import { count, percent, plural } from "../format.ts";

export interface RarityWords {
  text: string;
  /** Who was compared. */
  among: string;
  /** A value so rare that it is a sign of a fault. */
  rare: boolean;
}

/** From here on a value is rare: of a hundred peers one is as bad. */
const RARE = 0.01;
const MOSTLY = 0.5;

const MORE = { high: "higher", low: "lower", normalised: "lower, normalised," } as const;

export function rarityWords(one: Pick<Attribute, "worse" | "shows_fault" | "rarity">): RarityWords {
  const { rarity } = one;
  if (rarity === null) return { text: "no other drive reports it", among: "", rare: false };
  const { compared, better, equal } = rarity;
  const asBad = compared - better;
  return { text: textOf(MORE[one.worse], compared, better, equal), among: amongOf(rarity), rare: one.shows_fault && better > 0 && asBad <= RARE * compared };
}

function textOf(more: string, compared: number, better: number, equal: number): string {
  const asBad = compared - better;
  if (equal === compared) return "the same on every one";
  if (asBad === 0) return `${more} than on all others`;
  if (equal >= MOSTLY * compared) return `the same on ${percentOf(equal, compared)}`;
  if (asBad <= 0.1 * compared) return `as bad on ${percentOf(asBad, compared)} (${plural(asBad, "drive")})`;
  return `${more} than on ${percentOf(better, compared)}`;
}

/** A share of drives; all but a few are no "over 95 %" here, since they are counted and not forecast. */
function percentOf(part: number, whole: number): string {
  const share = part / whole;
  return share > 0.95 ? `${Math.floor(share * 1_000) / 10} %` : percent(share);
}

function amongOf(rarity: Rarity): string {
  return rarity.same_model ? `${count(rarity.compared)} others of its model` : `all ${plural(rarity.compared, "other drive")} that report it`;
}

/** What needs a look first: what the maker's threshold condemns, then what is rare, then the order of the drive. */
export function byAttention(a: Attribute, b: Attribute): number {
  return attention(b) - attention(a);
}

function attention(one: Attribute): number {
  if (one.below_threshold) return 4;
  if (rarityWords(one).rare) return 3;
  if (one.was_below) return 2;
  return one.shows_fault && one.rarity !== null && one.rarity.better > MOSTLY * one.rarity.compared ? 1 : 0;
}

/** Percent of the compared drives that are better: what a sort by rarity and a spreadsheet take. */
export function betterShare(rarity: Rarity | null): number | null {
  return rarity === null ? null : (100 * rarity.better) / rarity.compared;
}

const UNITS: Record<string, string> = { C: "\u00b0C", hours: "h", "%": "%", bytes: "B" };

export function rawText(one: Pick<Attribute, "raw" | "unit">): string {
  return [count(one.raw), UNITS[one.unit]].filter(Boolean).join(" ");
}

/** The temperature now, the drive's own limit, and its place among the other drives of the fleet. */
export function heatWords(heat: NonNullable<Attributes["temperature"]>): string {
  const limit = heat.limit_c === null ? "The drive states no limit." : `Its own limit is ${heat.limit_c} \u00b0C.`;
  if (heat.compared === 0 || heat.median_c === null) return `${heat.now_c} \u00b0C now. ${limit}`;
  const fleet = `Of ${plural(heat.compared, "other drive")} ${count(heat.hotter)} ${heat.hotter === 1 ? "is" : "are"} hotter; their median is ${heat.median_c} \u00b0C, the hottest has ${heat.hottest_c} \u00b0C.`;
  return `${heat.now_c} \u00b0C now. ${limit} ${fleet}`;
}
