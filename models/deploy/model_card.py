"""The model card: the training data of a bundle and its quality, in words."""

from __future__ import annotations

from predrain.models.forecast.bundle import BundleFacts


def card_of(facts: BundleFacts) -> str:
    """Write the text of a bundle's CARD.md."""
    counts, calibration, limits, base = facts.counts, facts.calibration, facts.thresholds, facts.base
    continued = counts.get("continued_drives", 0)
    also = f" {continued:,} of the drives are those of the training that it continues." if continued else ""
    known = "everything in the files" if facts.until is None else f"what was known on {facts.until}"
    return f"""# Bundle {facts.name}

Forecasts the failure of SATA hard drives from SMART counters: chances within 7, 14 and 30 days, and a survival curve.

- Made by `predrain train` (seed {facts.seed}) from {known}: {counts["drives"]:,} drives of {counts["models"]} models,
  {counts["deaths"]:,} of which died, {facts.window[0]} to {facts.window[1]}; {counts["landmarks"]:,} landmarks.{also}
- Model: a discrete-time hazard of symptoms (LightGBM, binary, monotone, intervals to 7, 14, 30 and 90 days; it reads
  neither maker, model, age nor work), times a power of the model's base rate at its age: {base.quiet:.2f} for a drive
  without a symptom, {base.symptomatic:.2f} for one with a symptom. Calibrated on drives left out of fitting (slope
  {calibration.slope:.3f}, shift {calibration.shift:+.3f}); times the odds at which its model died lately. Beyond 90
  days the model's rate by age, times the relative risk of days 30 to 90, which fades by half-lives.
- Status: warning from p(30 d) = {limits.warning:.4f}, bad from {limits.bad:.4f}, reached by 1 % and 0.1 % of healthy
  windows (a drive's 30 days) of drives left out of fitting.
- The recipe, judged on months that bundles trained without them had not seen (recall per failure at 0.1 % and 1 % of
  healthy windows flagged, PR-AUC): ST4000DM000 May-June 2018 0.24, 0.55, 0.13; whole fleet 2015 Q4 - 2016 Q1 0.25,
  0.41, 0.08. Expected over observed 1.08 and 0.94.
- With a score a day in place of one a week, which is what the service gives, May-June 2018: 0.30, 0.58, 0.13.
- Each maker left out of the training in turn, on the same fleet: 0.24, 0.38, 0.07; the gain over the better of two
  rules that add up counters or their rises is real at 1 % (+0.028 [+.009, +.048]) and not proven at 0.1 %.
- Beside plain LightGBM (150 trees of 8 leaves), May-June 2018: the gain at 1 % is real (+0.087 [+.020, +.137]) beside
  the peer that learns from a sample of the healthy rows, and not proven (+0.067 [+.000, +.107]) beside the one that
  learns from all; no gain is proven at 0.1 %. On the fleet the gain in PR-AUC is real (+0.011 [+.003, +.017]), and none
  in recall is proven (0.1 %: +0.000 [-.021, +.027], 1 %: +0.007 [-.008, +.021]). Beside the recipe before, which also
  read maker, model, age and work, the fleet's PR-AUC is 0.007 lower, and that is real
  (docs/decisions/0029-symptoms-and-base-rates.md).
- Life expectancy, May-June 2018: P(T <= p10) 0.100 (aim 0.10; 33 deaths).
- About 4 in 10 failures show no symptom in these counters first; no threshold will catch them.
- Not for SSDs and NVMe drives (rules serve these). No SAS drive was learned from, and none is public: a SAS hard disk
  gets the chance of a SATA hard disk with the same counts, which nobody has measured, and rules are a floor below it.
- Of a model that nobody counted the chances of quiet drives may be several times too high or too low until the fleet
  has counted its own.
- Data: Backblaze Hard Drive Test Data, from the repositories named in docs/explanation/forecast.md.
"""
