"""The outcome of a run: typed counts, and findings, of which there must be none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

_SHOWN = 5


class Finding(StrEnum):
    """A defect that no run may have. Its count is the number of pieces with the defect, not of sentences about it."""

    LOST = "readings lost"
    DOUBLED = "readings kept twice"
    CHANGED = "readings kept as other ones"
    MADE_UP = "readings made up"
    OUTLOOK_MISSING = "outlooks missing"
    OUTLOOK_WRONG = "outlooks that are other ones"
    ANNOUNCED_TWICE = "announcements told twice"
    ANNOUNCEMENT_WRONG = "disks last announced as something else"
    LATENCY_WRONG = "latency summaries lost, doubled or changed"
    LETTER_WRONG = "dead letters missing or of good records"
    DISORDER = "processes that did not end in order"
    NOT_WALKED = "nothing was delivered twice, so that this run shows nothing"


class Measure(StrEnum):
    """A count of a run beside the findings."""

    REPEATED_STARTS = "starts that found no server, and were repeated"
    DOCUMENTS = "documents that drives printed"
    ACCEPTED = "readings accepted"
    WITNESSED = "of these before a witness"
    SAME_TIME = "of these with a time that the drive had used"
    AGAIN = "readings delivered twice and absorbed"
    REFUSED = "readings that a full disk refused"
    KEPT = "readings kept"
    SUMMARIES = "latency summaries accepted"
    BATCHES_AGAIN = "latency batches delivered twice and absorbed"
    SUMMARIES_REFUSED = "latency summaries that a full disk refused"
    SUMMARIES_KEPT = "latency summaries kept"
    OUTLOOKS = "outlooks kept"
    ANNOUNCED = "announcements"
    ANNOUNCED_AGAIN = "announcements written twice and taken once"
    POISON = "poison sent"
    LETTERS = "dead letters"
    LETTERS_AGAIN = "dead letters written twice"


@dataclass
class Verdict:
    """Counts, and how often each finding was made."""

    counts: dict[Measure, int] = field(default_factory=dict)
    findings: Counter[Finding] = field(default_factory=Counter)
    examples: list[str] = field(default_factory=list)
    """The first few of each finding, one sentence each."""
    notes: list[str] = field(default_factory=list)
    """Reported events that are by design: one sentence for each reading with a time that its drive had used before."""

    @property
    def passed(self) -> bool:
        """Return True if there is no finding."""
        return not self.findings

    def blame(self, finding: Finding, sentences: Sequence[str], count: int | None = None) -> None:
        """Note a finding for each sentence, or `count` of them."""
        number = len(sentences) if count is None else count
        if number:
            self.findings[finding] += number
            self.examples += sentences[:_SHOWN]
