/** Numbers and times as the page writes them: a unit always, a horizon with every probability, "not reported" for what is missing. */

export const NOT_REPORTED = "not reported";
const DAY_SECONDS = 86_400;
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const WEEKDAYS = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];

type Maybe<T> = T | null | undefined;

/** p in [0, 1] as whole percent, one decimal below 1, bounded where the model cannot tell. */
export function percent(p: Maybe<number>): string {
  if (p === null || p === undefined || Number.isNaN(p)) return NOT_REPORTED;
  if (p < 0.001) return "under 0.1 %";
  if (p > 0.95) return "over 95 %";
  const scaled = p * 100;
  if (scaled < 0.95) return `${scaled.toFixed(1)} %`;
  return `${Math.max(1, Math.round(scaled))} %`;
}

/** A probability never stands without its horizon. */
export function within30(p: Maybe<number>): string {
  return p === null || p === undefined ? NOT_REPORTED : `${percent(p)} within 30 days`;
}

/** A plain share (fullness, progress), whole percent. */
export function share(part: Maybe<number>, digits = 0): string {
  if (part === null || part === undefined || Number.isNaN(part)) return NOT_REPORTED;
  return `${(part * 100).toFixed(digits)} %`;
}

/** One end of a life: whole days, "over a year" beyond 365. */
export function lifeEnd(days: number | null): string {
  if (days === null || days > 365) return "over a year";
  const whole = Math.max(0, Math.round(days));
  return `${whole} ${whole === 1 ? "day" : "days"}`;
}

/** Life expectancy p10 to p90, "2 to 110 days". Null ends lie beyond the grid of ten years. */
export function life(p10: number | null, p90: number | null): string {
  const short = lifeEnd(p10);
  const long = lifeEnd(p90);
  if (short === long) return short;
  if (p10 !== null && p90 !== null && p90 <= 365) return `${Math.round(p10)} to ${long}`;
  return `${short} to ${long}`;
}

/** How strongly a rule's signs speak: a score of its own kind, never shown as a chance. */
export function byRule(score: Maybe<number>): string {
  if (score === null || score === undefined) return "A rule says so; it knows no probability.";
  return `Evidence ${score.toFixed(2)} of 1 by rules (warning from 0.40, bad from 0.80). That is no chance to fail: rules know none.`;
}

/** When a flash drive's rated life ends by the slope of its own wear counter: no failure. */
export function wearing(ends: { p10: number | null; p50: number | null; p90: number | null }): string {
  const half = ends.p50 === null ? "over ten years" : lifeEnd(ends.p50);
  return `At the pace of its wear counter its rated life lasts ${half} (${life(ends.p10, ends.p90)}). Drives often outlive it.`;
}

/** When half of such disks have failed: "even odds by day 12". */
export function evenOdds(p50: Maybe<number>): string {
  return p50 === null || p50 === undefined || p50 > 365 ? "" : `even odds by day ${Math.round(p50)}`;
}

/** Bytes as TiB with one decimal; below 0.1 TiB as whole GiB. */
export function tib(bytes: Maybe<number>): string {
  if (bytes === null || bytes === undefined) return NOT_REPORTED;
  const inTib = bytes / 2 ** 40;
  if (inTib >= 0.095 || bytes === 0) return `${inTib.toFixed(1)} TiB`;
  const inGib = bytes / 2 ** 30;
  return inGib >= 1 ? `${Math.round(inGib)} GiB` : `${Math.max(1, Math.round(bytes / 2 ** 20))} MiB`;
}

/** A ratio to a reference, "1.18x". */
export function ratio(value: Maybe<number>): string {
  return value === null || value === undefined ? NOT_REPORTED : `${value.toFixed(2)}x`;
}

/** A duration to come: "about 20 min", "about 11 h", "about 3 days". */
export function about(hours: Maybe<number>): string {
  if (hours === null || hours === undefined || !Number.isFinite(hours)) return NOT_REPORTED;
  if (hours < 1) return `about ${Math.max(1, Math.round(hours * 60))} min`;
  if (hours < 48) return `about ${Math.round(hours)} h`;
  return `about ${Math.round(hours / 24)} days`;
}

/** A duration gone by: "3 s", "4 min", "3 h 10 min", "5 days". */
export function span(seconds: Maybe<number>): string {
  if (seconds === null || seconds === undefined || Number.isNaN(seconds)) return NOT_REPORTED;
  const whole = Math.max(0, Math.round(seconds));
  if (whole < 60) return `${whole} s`;
  if (whole < 3_600) return `${Math.floor(whole / 60)} min`;
  if (whole < 2 * DAY_SECONDS) {
    const minutes = Math.floor((whole % 3_600) / 60);
    return minutes ? `${Math.floor(whole / 3_600)} h ${minutes} min` : `${Math.floor(whole / 3_600)} h`;
  }
  return `${Math.floor(whole / DAY_SECONDS)} days`;
}

/** How long something has been in service: "4.6 years", "8 months", "12 days". */
export function age(days: Maybe<number>): string {
  if (days === null || days === undefined) return NOT_REPORTED;
  if (days >= 365) return `${(days / 365.25).toFixed(1)} years`;
  if (days >= 60) return `${Math.round(days / 30.4)} months`;
  return plural(Math.round(days), "day");
}

/** 5903 as "5,903"; fractions keep the digits asked for. */
export function count(value: Maybe<number>, digits = 0): string {
  if (value === null || value === undefined || Number.isNaN(value)) return NOT_REPORTED;
  const [whole = "", fraction] = Math.abs(value).toFixed(digits).split(".");
  const grouped = whole.replace(/\B(?=(\d{3})+$)/g, ",");
  return `${value < 0 ? "-" : ""}${grouped}${fraction ? `.${fraction}` : ""}`;
}

/** Expected numbers: one decimal below ten, whole above. */
export function expected(value: Maybe<number>): string {
  return value === null || value === undefined ? NOT_REPORTED : count(value, value < 10 ? 1 : 0);
}

export function plural(many: number, one: string, more = `${one}s`): string {
  return `${count(many)} ${many === 1 ? one : more}`;
}

/** "200 of " where a list shows only so many of what it counts. */
export function cut(all: number, shown: number): string {
  return all > shown ? `${count(shown)} of ` : "";
}

const two = (value: number): string => String(value).padStart(2, "0");

/** "03:12" of that instant in UTC. */
export function clockOf(time: Maybe<string | number>): string {
  const at = instant(time);
  return at === null ? NOT_REPORTED : `${two(at.getUTCHours())}:${two(at.getUTCMinutes())}`;
}

/** "19 Nov" in UTC. */
export function dayOf(time: Maybe<string | number>): string {
  const at = instant(time);
  return at === null ? NOT_REPORTED : `${at.getUTCDate()} ${MONTHS[at.getUTCMonth()]}`;
}

/** Today's as "03:08", this year's as "20 Nov 14:10", older as "2022-04-12". `now` decides what today is. */
export function moment(time: Maybe<string | number>, now: Maybe<string | number>): string {
  const at = instant(time);
  if (at === null) return NOT_REPORTED;
  const today = instant(now);
  if (today !== null && at.toISOString().slice(0, 10) === today.toISOString().slice(0, 10)) return clockOf(time);
  if (today !== null && Math.abs(today.getTime() - at.getTime()) > 300 * DAY_SECONDS * 1_000) {
    return at.toISOString().slice(0, 10);
  }
  return `${dayOf(time)} ${clockOf(time)}`;
}

/** "2026-11-21 03:12": for lists that go back for years. */
export function stamp(time: Maybe<string | number>): string {
  const at = instant(time);
  return at === null ? NOT_REPORTED : `${at.toISOString().slice(0, 10)} ${clockOf(time)}`;
}

/** "Sat 21 Nov 2026, 03:12 UTC". */
export function longMoment(time: Maybe<string | number>): string {
  const at = instant(time);
  if (at === null) return NOT_REPORTED;
  return `${WEEKDAYS[at.getUTCDay()]} ${dayOf(time)} ${at.getUTCFullYear()}, ${clockOf(time)} UTC`;
}

/** For hover and focus: "22:43 UTC, 23:43 Berlin". The zone is the reader's own. */
export function bothClocks(time: Maybe<string | number>, zone?: string): string {
  const at = instant(time);
  if (at === null) return NOT_REPORTED;
  const timeZone = zone ?? Intl.DateTimeFormat().resolvedOptions().timeZone;
  const stamp = `${dayOf(time)} ${clockOf(time)} UTC`;
  if (!timeZone || timeZone === "UTC") return stamp;
  const local = new Intl.DateTimeFormat("en-GB", { timeZone, hour: "2-digit", minute: "2-digit" }).format(at);
  return `${stamp}, ${local} ${timeZone.split("/").at(-1)?.replaceAll("_", " ")}`;
}

export function seconds(from: Maybe<string | number>, to: Maybe<string | number>): number | null {
  const start = instant(from);
  const end = instant(to);
  return start === null || end === null ? null : (end.getTime() - start.getTime()) / 1_000;
}

function instant(time: Maybe<string | number>): Date | null {
  if (time === null || time === undefined) return null;
  const at = new Date(time);
  return Number.isNaN(at.getTime()) ? null : at;
}

/** A fragment as a sentence: a capital first unless it begins with a name such as osd.4, a full stop last. */
export function statement(text: string): string {
  const trimmed = sentence(text);
  return /^[a-z]+[ ,.]/.test(trimmed) && !/^osd[.]/.test(trimmed) ? trimmed.charAt(0).toUpperCase() + trimmed.slice(1) : trimmed;
}

/** A sentence ends with a full stop, whoever wrote it. */
export function sentence(text: string): string {
  const trimmed = text.trim();
  return /[.!?]$/.test(trimmed) ? trimmed : `${trimmed}.`;
}
