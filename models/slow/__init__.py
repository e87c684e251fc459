"""models.slow: finds the disks that answer slower than their peers, and for how long they have done so.

In: latencies of disks on hosts, in bins. Out: a score and a verdict for every disk and period. No clock, no files
but in `history`; no LightGBM.

`ratios` compares one period's disks, `verdicts` follows disks over periods, `history` runs both over files, `live`
over `LatencySummary` rows. docs/explanation/slow.md tells how well it works.
"""
