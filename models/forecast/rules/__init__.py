"""Rules for drives without a trained model: vendor verdicts, NVMe, SSD, and drives that cannot be read.

Rules are also a floor below the forecast of hard disks. In: a drive's state. Out: a verdict with a status,
sentences, advice, and a score in [0, 1]. The score is a rule's and no probability. Each sign has a degree, by a
membership function with stated breakpoints (`ramps`), and one rule combines the signs (`evidence`).
docs/reference/rules.md lists all of them; `make bench-rules` measures them.
"""

from predrain.models.forecast.rules.verdict import (
    CODES,
    UNREADABLE_PROBES,
    DriveJudgement,
    RuleVerdict,
    is_ssd,
    judge_by_rules,
    judge_drive,
    judge_symptoms,
)

__all__ = [
    "CODES",
    "UNREADABLE_PROBES",
    "DriveJudgement",
    "RuleVerdict",
    "is_ssd",
    "judge_by_rules",
    "judge_drive",
    "judge_symptoms",
]
