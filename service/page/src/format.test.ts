import assert from "node:assert/strict";
import { test } from "node:test";
import {
  about,
  age,
  bothClocks,
  byRule,
  count,
  evenOdds,
  expected,
  life,
  longMoment,
  moment,
  percent,
  plural,
  ratio,
  seconds,
  sentence,
  share,
  span,
  statement,
  tib,
  wearing,
  within30,
} from "./format.ts";

test("a probability is whole percent, one decimal below one, and bounded at both ends", () => {
  assert.equal(percent(0.68), "68 %");
  assert.equal(percent(0.002), "0.2 %");
  assert.equal(percent(0.0096), "1 %");
  assert.equal(percent(0.0004), "under 0.1 %");
  assert.equal(percent(0.0), "under 0.1 %");
  assert.equal(percent(0.96), "over 95 %");
  assert.equal(percent(0.95), "95 %");
});

test("no probability ever reads 0 % or 100 %", () => {
  for (let p = 0; p <= 1; p += 0.000_5) assert.doesNotMatch(percent(p), /^(0|0\.0|100) %$/);
});

test("a probability comes with its horizon", () => {
  assert.equal(within30(0.68), "68 % within 30 days");
});

test("what is missing is not reported, never 0", () => {
  for (const shown of [percent(null), within30(null), share(null), tib(null), ratio(null), about(null), age(null), count(null), span(null), expected(undefined), moment(null, null)]) {
    assert.equal(shown, "not reported");
  }
  assert.equal(percent(Number.NaN), "not reported");
});

test("a life is whole days from p10 to p90, and over a year beyond", () => {
  assert.equal(life(2, 110), "2 to 110 days");
  assert.equal(life(26, null), "26 days to over a year");
  assert.equal(life(400, 900), "over a year");
  assert.equal(life(null, null), "over a year");
  assert.equal(life(1, 1), "1 day");
});

test("even odds are named only when they fall within a year", () => {
  assert.equal(evenOdds(12.4), "even odds by day 12");
  assert.equal(evenOdds(700), "");
  assert.equal(evenOdds(null), "");
});

test("bytes are TiB with one decimal, small ones GiB", () => {
  assert.equal(tib(7.4 * 2 ** 40), "7.4 TiB");
  assert.equal(tib(152 * 2 ** 30), "0.1 TiB");
  assert.equal(tib(50 * 2 ** 30), "50 GiB");
  assert.equal(tib(0), "0.0 TiB");
});

test("durations to come are rounded, durations gone by are not", () => {
  assert.equal(about(11.2), "about 11 h");
  assert.equal(about(0.33), "about 20 min");
  assert.equal(about(80), "about 3 days");
  assert.equal(span(3), "3 s");
  assert.equal(span(250), "4 min");
  assert.equal(span(11_400), "3 h 10 min");
  assert.equal(span(86_400 * 5), "5 days");
});

test("ages, ratios and counts carry their unit and grouping", () => {
  assert.equal(age(1_680), "4.6 years");
  assert.equal(age(12), "12 days");
  assert.equal(ratio(1.178), "1.18x");
  assert.equal(count(5_903), "5,903");
  assert.equal(count(1_234_567), "1,234,567");
  assert.equal(count(-1_500.25, 1), "-1,500.3");
  assert.equal(expected(1.52), "1.5");
  assert.equal(expected(17.2), "17");
  assert.equal(plural(1, "disk"), "1 disk");
  assert.equal(plural(3, "disk"), "3 disks");
});

test("times are UTC: today by the clock, this year by the day, older by the date", () => {
  const now = "2026-11-21T03:12:00Z";
  assert.equal(moment("2026-11-21T03:08:10Z", now), "03:08");
  assert.equal(moment("2026-11-20T14:10:00Z", now), "20 Nov 14:10");
  assert.equal(moment("2022-04-12T01:00:00Z", now), "2022-04-12");
  assert.equal(longMoment(now), "Sat 21 Nov 2026, 03:12 UTC");
});

test("hover adds the reader's own clock", () => {
  assert.equal(bothClocks("2026-11-21T22:43:00Z", "Europe/Berlin"), "21 Nov 22:43 UTC, 23:43 Berlin");
  assert.equal(bothClocks("2026-11-21T22:43:00Z", "UTC"), "21 Nov 22:43 UTC");
});

test("seconds between two times, and none when one is unknown", () => {
  assert.equal(seconds("2026-11-21T03:12:00Z", "2026-11-21T03:12:30Z"), 30);
  assert.equal(seconds(null, "2026-11-21T03:12:30Z"), null);
  assert.equal(seconds("nonsense", "2026-11-21T03:12:30Z"), null);
});

test("a fragment becomes a sentence, a name keeps its small letter", () => {
  assert.equal(statement("the outlook is better"), "The outlook is better.");
  assert.equal(statement("osd.4 would be 86 % full, limit 85 %"), "osd.4 would be 86 % full, limit 85 %.");
});

test("every sentence ends with one full stop", () => {
  assert.equal(sentence("Drain now"), "Drain now.");
  assert.equal(sentence("Drain now. "), "Drain now.");
});

test("a rule's score is called evidence and stands beside the words that it is no chance", () => {
  assert.match(byRule(0.9), /^Evidence 0\.90 of 1 by rules/);
  assert.match(byRule(0.9), /no chance to fail/);
  assert.doesNotMatch(byRule(0.9), /%/);
  assert.equal(byRule(null), "A rule says so; it knows no probability.");
});

test("the end of a rated life is told with its span and is no failure", () => {
  assert.equal(
    wearing({ p10: 60, p50: 120.4, p90: 400 }),
    "At the pace of its wear counter its rated life lasts 120 days (60 days to over a year). Drives often outlive it.",
  );
});
