"""Rules, for what no model was trained on: vendor verdicts, NVMe, SSD, and drives that cannot be read.

They are a floor below the forecast of hard disks.
In: a drive's state. Out: a verdict with a status, sentences, a prescription, and a score in [0, 1] that is a rule's
and no probability. Each sign has a degree, by a membership function with stated breakpoints (`ramps`); signs are
combined by one rule (`evidence`). docs/reference/rules.md lists all of it; `make bench-rules` measures it.
"""

from predrain.models.rules.judge import CODES, UNREADABLE_PROBES, RuleVerdict, is_ssd, judge, judge_symptoms

__all__ = ["CODES", "UNREADABLE_PROBES", "RuleVerdict", "is_ssd", "judge", "judge_symptoms"]
