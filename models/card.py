"""The model card: what a bundle was made of and what it is good for, in words."""

from __future__ import annotations

from models.bundle import Facts


def card_of(facts: Facts) -> str:
    """CARD.md of a bundle."""
    counts = facts.counts
    until = "everything in the files" if facts.until is None else f"what was known on {facts.until}"
    return f"""# Bundle {facts.name}

Forecasts the failure of SATA hard drives from SMART counters: chances within 7, 14 and 30 days, and a
survival curve.

- Made by `predrain train` (seed {facts.seed}) from {until}: {counts["drives"]:,} drives of {counts["models"]}
models,
  {counts["deaths"]:,} of which died, observed from {facts.window[0]} to {facts.window[1]};
  {counts["landmarks"]:,} landmarks.
- Model: a discrete-time hazard (LightGBM, binary, intervals to 7, 14, 30 and 90 days), calibrated on drives
left out
  of fitting (slope {facts.calibration.slope:.3f}, shift {facts.calibration.shift:+.3f}); beyond 90 days the
  family's
  rate by age times the relative risk seen for such forecasts.
- Status: warning from p(30 d) = {facts.thresholds.warning:.4f}, bad from {facts.thresholds.bad:.4f}: reached
by 1 % and 0.1 % of healthy
  windows (a drive's 30 days) of drives left out of fitting.
- Data: Backblaze Hard Drive Test Data, as republished by the repositories named in
docs/explanation/forecast.md.
- Not for SSDs, NVMe and SAS drives (rules serve these), nor for makers it has not seen (status unknown).
- About 4 in 10 failures show no symptom in these counters first; no threshold will catch them.
"""
