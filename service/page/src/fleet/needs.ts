/** What needs a person now, most probable loss first, and what is in hand without one. Pure: lists in, rows out. */
import type { Advice, ClusterStatus, Drain, Osd } from "../api/contract.ts";
import { brief, condition, empties, hasEnded, isOld, movedText, remaining, whenDown, whenVerified, type Condition } from "../condition.ts";
import { about, evenOdds, life, moment, percent, sentence, span, seconds, tib, within30 } from "../format.ts";
import { CALLED, tellState } from "../drains/naming.ts";
import { drainLink, hostLink, osdLink } from "../links.ts";
import { ruleOf } from "../source.ts";

export interface Need {
  key: string;
  shape: Condition;
  href: string;
  name: string;
  where: string;
  device: string;
  why: string;
  /** The strong half of "how sure"; `before` stands beside it, `likely` below. */
  sure: string;
  before: string;
  likely: string;
  next: string;
  button: string;
  buttonHref: string;
  primary: boolean;
  /** Probability, or what ranks like it where there is none. */
  rank: number;
}

/** What a disk asks for that can wait, as its prescription says it at length. */
const CAN_WAIT: Partial<Record<Advice, string>> = {
  "replace-soon": "plan to replace it soon",
  "swap-worn": "worn, plan its swap",
  "check-cable": "check cable or backplane",
  "self-test": "run a long self-test",
  cool: "look to its cooling",
  look: "look whether it is there",
};

export interface InHand {
  key: string;
  shape: Condition;
  href: string;
  name: string;
  text: string;
  /** A person has something to do about it, though not now; else nothing at all. */
  waits: boolean;
  rank: number;
}

export interface Needs {
  needs: Need[];
  inHand: InHand[];
}

interface Known {
  status: ClusterStatus | null;
  drains: ReadonlyMap<string, Drain>;
  now: string | null;
}

const WHOLE_HOST_AT_LEAST = 3;
/** A hold that lasted so long does not end by itself: a person should look. */
const LONG_HOLD_SECONDS = 86_400;
/** Two intervals of collectors that read every hour. */
const SILENT_SECONDS = 7_200;

export function needsOf(osds: readonly Osd[], known: Known): Needs {
  const needs: Need[] = [];
  const inHand: InHand[] = [];
  const away = hostsAway(osds, known.now);
  needs.push(...awayNeeds(away, osds, known.now));
  for (const osd of osds) {
    const shape = condition(osd, known.now);
    if (away.has(osd.host) && (shape === "unknown" || shape === "old")) continue;
    const drain = osd.drain ? (known.drains.get(osd.drain.id) ?? null) : null;
    const need = needOf(osd, shape, drain, known);
    if (need) needs.push(need);
    else if (shape !== "good" || osd.drain) inHand.push(handOf(osd, shape, drain));
  }
  needs.sort((a, b) => b.rank - a.rank || a.key.localeCompare(b.key));
  inHand.sort((a, b) => b.rank - a.rank || a.key.localeCompare(b.key));
  return { needs, inHand };
}

/** Whether nothing was heard of a disk lately; one that is read and that nobody can judge is heard. */
function silent(osd: Osd, now: string | null): boolean {
  const shape = condition(osd, now);
  if (shape !== "unknown" && shape !== "old") return false;
  return osd.unreadable !== null || osd.as_of === null || (seconds(osd.as_of, now) ?? 0) > SILENT_SECONDS;
}

/** Hosts of which every disk is without a reading: one cause, one row. None in a fleet of new disks, of which none is old. */
function hostsAway(osds: readonly Osd[], now: string | null): Map<string, Osd[]> {
  const byHost = new Map<string, Osd[]>();
  for (const osd of osds) {
    const disks = byHost.get(osd.host);
    if (disks) disks.push(osd);
    else byHost.set(osd.host, [osd]);
  }
  for (const [host, disks] of byHost) {
    if (disks.length < WHOLE_HOST_AT_LEAST || !disks.every((osd) => silent(osd, now))) byHost.delete(host);
  }
  return osds.some((osd) => isOld(osd, now) || !byHost.has(osd.host)) ? byHost : new Map();
}

/** Hosts that fell silent, each with its row; when all did, that is one cause, and it lies with none of them. */
function awayNeeds(away: ReadonlyMap<string, Osd[]>, osds: readonly Osd[], now: string | null): Need[] {
  const hosts = [...away].map(([host, disks]) => hostAway(host, disks, now));
  const [first] = hosts;
  if (!first || hosts.length === 1 || osds.some((osd) => !away.has(osd.host))) return hosts;
  return [
    {
      ...first,
      ...lastHeard(osds, now),
      key: "host *",
      href: "/alerts",
      name: `All ${hosts.length} hosts`,
      where: "",
      device: `silent, ${osds.length} disks`,
      next: "No drain starts meanwhile. All fell silent: check the service and the network before the hosts.",
      buttonHref: "/alerts",
    },
  ];
}

function lastHeard(disks: readonly Osd[], now: string | null): Pick<Need, "why" | "sure"> {
  const last = disks.map((osd) => osd.as_of).reduce((a, b) => (a !== null && b !== null && a > b ? a : (b ?? a)), null);
  return {
    why: last ? `No readings since ${moment(last, now)}, ${span(seconds(last, now))}.` : "No reading has come from this host.",
    sure: last ? `Old, as of ${moment(last, now)}` : "Unknown",
  };
}

function hostAway(host: string, disks: readonly Osd[], now: string | null): Need {
  return {
    key: `host ${host}`,
    shape: "unknown",
    href: hostLink(host),
    name: host,
    where: disks[0]?.rack ? `rack ${disks[0].rack}` : "",
    device: `collector away, ${disks.length} disks`,
    ...lastHeard(disks, now),
    before: "",
    likely: "silence is no sign of health",
    next: "No drain starts on this host meanwhile. Check its collector and its network.",
    button: "What to check",
    buttonHref: hostLink(host),
    primary: false,
    rank: 0.5,
  };
}

function needOf(osd: Osd, shape: Condition, drain: Drain | null, known: Known): Need | null {
  const own = askedOf(osd, shape, drain, known);
  if (own === null) return null;
  return {
    key: `osd ${osd.osd}`,
    shape,
    href: osdLink(osd),
    name: `osd.${osd.osd}`,
    where: `${osd.host}, slot ${osd.slot}`,
    device: osd.device ?? "no device id reported",
    why: osd.reasons.length ? osd.reasons.slice(0, 2).map(sentence).join(" ") : "No reason is reported.",
    ...howSure(osd),
    next: "",
    button: "Look at it",
    buttonHref: osdLink(osd),
    primary: false,
    rank: osd.p_fail_30d ?? 0.6,
    ...own,
  };
}

/** What a disk asks of a person besides what every row says; null where it asks nothing, as nearly all do. */
function askedOf(osd: Osd, shape: Condition, drain: Drain | null, known: Known): Partial<Need> | null {
  const state = osd.drain?.state;
  if (state === "failed") {
    const why = drain?.end_reason || drain?.held_by[0] || "";
    return { shape: "bad", next: `The drain stopped and needs a person. ${why}`, button: "See why", buttonHref: drainLink(osd.drain?.id ?? ""), rank: 2 };
  }
  if (state === "holding" && drain && (seconds(drain.updated_at, known.now) ?? 0) > LONG_HOLD_SECONDS) {
    const why = drain.held_by.at(-1) ?? "a guard refuses";
    const next = `Its drain is held since ${moment(drain.updated_at, known.now)}: ${sentence(why)}`;
    return { next, button: "See why", buttonHref: drainLink(drain.id), rank: 1 + (osd.p_fail_30d ?? 0.6) };
  }
  if (state === "proposed") return startsByItself(drain, known.status) ? null : proposed(osd, drain);
  if (state === "verified" && osd.drain && empties(osd.drain)) {
    const next = `All copies are counted elsewhere. ${whenVerified(osd.drain)}`;
    return { next, button: "Hand over", buttonHref: drainLink(osd.drain?.id ?? ""), rank: 0.05 };
  }
  if (shape === "bad") return startsByItself(null, known.status) ? null : { next: nothingProposed(osd, known.status) };
  if (shape === "down") {
    return { sure: "The OSD is down", before: "", likely: osd.in ? "still in: recovery has not begun" : "out: its data is being rebuilt", next: whenDown(osd), rank: 0.9 };
  }
  if (hasEnded(osd.state)) return null;
  return shape === "old" || (shape === "unknown" && osd.unreadable) ? notRead(osd, shape, known.now) : null;
}

function notRead(osd: Osd, shape: Condition, now: string | null): Partial<Need> {
  const told = {
    before: osd.p_fail_30d_week_ago === null ? "" : `, was ${percent(osd.p_fail_30d_week_ago)} a week ago`,
    button: "What to check",
    rank: 0.4,
  };
  if (!osd.unreadable) {
    const heard = `No reading since ${moment(osd.as_of, now)}, ${span(seconds(osd.as_of, now))}.`;
    return {
      ...told,
      why: osd.reasons[0] ? `${heard} Before: ${sentence(osd.reasons[0])}` : heard,
      sure: `Old, as of ${moment(osd.as_of, now)}`,
      likely: "silence is no sign of health",
      next: "An unknown disk is never drained. Check whether it is there, and its host's collector.",
    };
  }
  const since = `No reading since ${moment(osd.unreadable.since, now)}: ${osd.unreadable.reason}`;
  return {
    ...told,
    why: `${sentence(since)} OSD ${osd.up ? "up" : "down"}.`,
    sure: shape === "old" ? `Old, as of ${moment(osd.as_of, now)}` : "Unknown",
    likely: "a failed probe is evidence, not a gap",
    next: `${osd.prescription ? sentence(osd.prescription) : ""} An unknown disk is never drained.`.trim(),
  };
}

/** Who asks for the drains that no person asked for. */
const ITSELF = "predrain";

/** In mode act a drain that no person asked for begins without one, unless it is held or something stands against it. */
function startsByItself(drain: Drain | null, status: ClusterStatus | null): boolean {
  const asked = drain !== null && drain.requested_by !== ITSELF;
  return status?.mode === "act" && status.halted === null && !asked && !drain?.plan?.refusals.length && !drain?.held_by.length;
}

function proposed(osd: Osd, drain: Drain | null): Partial<Need> {
  const plan = drain?.plan ?? null;
  const button = { button: "Review drain", buttonHref: drainLink(osd.drain?.id ?? ""), rank: 1 + (osd.p_fail_30d ?? 0.6) };
  const refusal = plan?.refusals[0] ?? drain?.held_by[0];
  if (refusal) return { ...button, next: `A drain is proposed and cannot start now: ${sentence(refusal)}` };
  if (osd.drain?.intent === "quarantine") return { ...button, next: "Proposed: it stops being the primary of PGs while it is slow. No data moves.", button: "Review", primary: true };
  const { noun } = CALLED[osd.drain?.intent ?? "replace"];
  const size = plan ? `${noun} ${tib(plan.bytes)} in ${about(plan.eta_hours)}` : `a ${noun}`;
  return { ...button, next: `Proposed: ${size}. Nothing moves until you approve.`, button: `Review ${noun}`, primary: true };
}

function nothingProposed(osd: Osd, status: ClusterStatus | null): string {
  const what = osd.prescription ? sentence(osd.prescription) : "";
  if (status?.halted) return `${what} All drains are halted, nothing is proposed.`.trim();
  if (status?.mode === "observe") return `${what} In mode observe nothing is proposed.`.trim();
  // "Drain it now" beside this would say the opposite: what is prescribed is what will be proposed.
  return "A drain is proposed once further readings confirm it.";
}

type Judged = Pick<Osd, "p_fail_30d" | "p_fail_30d_week_ago" | "source" | "rule_score" | "life_p10_days" | "life_p50_days" | "life_p90_days">;

export function howSure(osd: Judged): Pick<Need, "sure" | "before" | "likely"> {
  if (osd.p_fail_30d === null) {
    const rule = ruleOf(osd.source) !== null ? `By rule ${ruleOf(osd.source)}` : "Unknown";
    const evidence = osd.rule_score === null ? "" : `evidence ${osd.rule_score.toFixed(2)} of 1, `;
    return { sure: rule, before: "", likely: rule === "Unknown" ? "" : `${evidence}a rule, no probability` };
  }
  const before = osd.p_fail_30d_week_ago;
  const odds = evenOdds(osd.life_p50_days);
  return {
    sure: within30(osd.p_fail_30d),
    before: before === null ? "" : `, was ${percent(before)} a week ago`,
    likely: `likely ${life(osd.life_p10_days, osd.life_p90_days)}${odds ? `, ${odds}` : ""}`,
  };
}

function handOf(osd: Osd, shape: Condition, drain: Drain | null): InHand {
  const item = { key: `osd ${osd.osd}`, shape, href: osdLink(osd), name: `osd.${osd.osd}`, waits: false, rank: osd.p_fail_30d ?? 0 };
  if (osd.drain && !empties(osd.drain)) {
    const { noun } = CALLED[osd.drain.intent];
    const text = osd.drain.state === "draining" ? `${noun} ${movedText(osd.drain)}`.trim() + remaining(drain) : tellState(osd.drain);
    return { ...item, href: drainLink(osd.drain.id), text: [brief(osd, shape), text].filter(Boolean).join(", "), rank: 2.5 };
  }
  if (shape === "draining" && osd.drain) {
    const word = osd.drain.state === "draining" ? "drain" : osd.drain.state;
    return { ...item, href: drainLink(osd.drain.id), text: `${word} ${movedText(osd.drain)}${remaining(drain)}`.trim(), rank: 3 };
  }
  if (shape === "drained" && osd.drain) {
    return { ...item, href: drainLink(osd.drain.id), text: osd.drain.state === "drained" ? "drained, being verified" : "handed over", rank: 2 };
  }
  if (osd.drain?.state === "proposed") return { ...item, href: drainLink(osd.drain.id), text: `${brief(osd, shape)}, its drain starts by itself`, rank: 2.5 };
  if (shape === "bad") return { ...item, text: `${brief(osd, shape)}, drained once confirmed`, rank: 2.5 };
  const todo = (osd.advice && CAN_WAIT[osd.advice]) ?? null;
  const what = shape === "slow" ? `${brief(osd, shape)} its host's other disks` : brief(osd, shape);
  const then = todo ?? (shape === "warning" && osd.p_fail_30d !== null ? "watched" : null);
  const rank = shape === "unknown" ? -1 : shape === "slow" ? 1.5 : item.rank;
  return { ...item, waits: todo !== null, text: [what, then].filter(Boolean).join(", "), rank };
}

/** "3 disks need you", or that none does. */
export function headline(needs: readonly Need[]): string {
  if (needs.length === 0) return "No disk needs you";
  const hosts = needs.some((need) => need.key.startsWith("host "));
  const noun = hosts ? (needs.length === 1 ? "thing needs" : "things need") : needs.length === 1 ? "disk needs" : "disks need";
  return `${needs.length} ${noun} you`;
}

