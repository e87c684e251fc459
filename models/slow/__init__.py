"""models.slow: which disks answer slower than their peers, and for how long. In: latencies, bin by bin, of disks on
hosts. Out: a score and a verdict for every disk and period. No clock, no files but in `history`; no LightGBM.

`ratios` compares one period's disks, `verdicts` watches periods go by, `history` runs both over files, `live` over
`LatencySummary` rows. What it is worth: docs/explanation/slow.md.
"""
