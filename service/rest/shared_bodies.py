"""Bodies that several routes share (outlooks, reasons, points of a curve), and the functions that build them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from pydantic import AfterValidator, BaseModel, ConfigDict

from predrain.data.life_cycle import LifeChange, LifeEvidence, LifeSource, LifeState, RetiredWhy
from predrain.data.outlook import GRID_DAYS, Advice, Life, Outlook, Status
from predrain.data.outside_text import TextField, clean_text
from predrain.data.reading import Reading, Smart, Unreadable
from predrain.data.unreadable import UnreadableCause
from predrain.service.fleet.fleet_counts import BACKGROUND
from predrain.service.fleet.life_sentences import describe_life


def clean_field(field: TextField, *, must_remain: bool = False) -> AfterValidator:
    """Return a validator that cleans a text field of a request. The field's own `max_length` limits the length.

    must_remain: refuse a text of which nothing remains. An empty pattern, say, would match everything.
    """

    def clean(text: str) -> str:
        line = clean_text(text, field.limit)
        if must_remain and text and not line:
            raise ValueError("it holds control characters and nothing that can be read")
        return line

    return AfterValidator(clean)


class ResponseBody(BaseModel):
    """The base of all answers; null is "not reported"."""

    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True)


class ReasonBody(ResponseBody):
    """One fact behind an outlook."""

    code: str
    sentence: str
    counter: str | None


class LifeBody(ResponseBody):
    """Days until 10, 50 and 90 of 100 such disks have failed; null: beyond ten years."""

    p10: float | None
    p50: float | None
    p90: float | None


class PointBody(ResponseBody):
    """Probability to be alive after `day` days."""

    day: int
    p: float


class OutlookBody(ResponseBody):
    """A device's newest forecast. A forecast by a rule has no probability, but a `rule_score`: evidence in [0, 1].

    `advice` is the prescription for programs. `endurance`: days until a flash drive's rated life is used up, by the
    slope of its own wear counter; this end is not a failure.
    """

    device: str
    as_of: datetime
    status: Status
    source: str
    p_fail_7d: float | None
    p_fail_14d: float | None
    p_fail_30d: float | None
    life: LifeBody | None
    reasons: list[ReasonBody]
    prescription: str
    advice: Advice | None
    clear_condition: str
    rule_score: float | None
    endurance: LifeBody | None
    survival: list[PointBody] | None


class LifeChangeBody(ResponseBody):
    """A change in the life of a disk. `retired_reason`: of a retired disk. `subject`: what the evidence is about (a
    drain's id, a host, a person, another disk, an OSD). `successor`: the disk that stands in its slot now.
    """

    device: str
    at: datetime
    state: LifeState
    retired_reason: RetiredWhy | None
    source: LifeSource
    evidence: LifeEvidence
    subject: str
    sentence: str
    host: str | None
    osds: list[int]
    successor: str | None


class UnreadableBody(ResponseBody):
    """The time since which a disk cannot be read, and why. A program decides by `cause`; `reason` is for people."""

    since: datetime
    cause: UnreadableCause
    blames_host: bool
    """True if the host is at fault, so that the failed probe says nothing against the disk."""
    reason: str


class OutlookPage(ResponseBody):
    """A page of outlooks in order of device id."""

    items: list[OutlookBody]
    next: str | None


def outlook_body(outlook: Outlook, *, curve: bool = False) -> OutlookBody:
    """Return the body of an outlook; with the curve only in the answer about one device."""
    survival = outlook.survival if curve else None
    return OutlookBody(
        device=outlook.device,
        as_of=outlook.as_of,
        status=outlook.severity,
        source=outlook.source,
        p_fail_7d=outlook.p_fail_7d,
        p_fail_14d=outlook.p_fail_14d,
        p_fail_30d=outlook.p_fail_30d,
        life=_build_life_body(outlook.life),
        reasons=[ReasonBody(code=r.code, sentence=r.sentence, counter=r.counter) for r in outlook.reasons],
        prescription=outlook.prescription,
        advice=outlook.advice,
        clear_condition=outlook.clears,
        rule_score=outlook.rule_score,
        endurance=_build_life_body(outlook.endurance),
        survival=curve_body(survival) if survival is not None else None,
    )


def list_own_reasons(outlook: Outlook | None) -> list[str]:
    """Return the reasons of an outlook that are about the disk itself.

    Nearly all disks are quiet; the reason that their model has a failure rate is on the disk's own page.
    """
    if outlook is None:
        return []
    return [reason.sentence for reason in outlook.reasons if reason.code not in BACKGROUND]


def life_change_body(change: LifeChange) -> LifeChangeBody:
    """Return the body of a change in the life of a disk."""
    return LifeChangeBody(
        device=change.device,
        at=change.at,
        state=change.state,
        retired_reason=change.why,
        source=change.source,
        evidence=change.evidence,
        subject=change.subject,
        sentence=describe_life(change),
        host=change.host,
        osds=list(change.osds),
        successor=change.successor,
    )


def _build_life_body(life: Life | None) -> LifeBody | None:
    return LifeBody(p10=life.p10_days, p50=life.p50_days, p90=life.p90_days) if life else None


def curve_body(survival: Sequence[float]) -> list[PointBody]:
    """Return the points of a survival curve on the fixed grid."""
    return [PointBody(day=day, p=p) for day, p in zip(GRID_DAYS, survival, strict=True)]


def unreadable_body(reading: Reading | None) -> UnreadableBody | None:
    """Return since when and why the disk is unreadable, or None unless the newest probe failed."""
    if reading is None or not isinstance(reading.seen, Unreadable):
        return None
    seen = reading.seen
    return UnreadableBody(
        since=seen.since, cause=seen.cause, blames_host=seen.cause.blames_host, reason=seen.why
    )


def smart_of(reading: Reading | None) -> Smart | None:
    """Return the drive's SMART data of a reading, or None."""
    return reading.seen if reading is not None and isinstance(reading.seen, Smart) else None
