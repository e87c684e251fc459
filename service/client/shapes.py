"""What the service answers, as values. None is "not known"; times are in UTC; what a newer service adds is ignored."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Generic, TypeVar

Row = TypeVar("Row")


@dataclass(frozen=True, slots=True, kw_only=True)
class Page(Generic[Row]):
    """A part of a list, and where the next one begins."""

    items: list[Row]
    next: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """Failures expected within 30 days; `expected_silent_30d`: of disks without a symptom."""

    bundle: str | None
    expected_30d: float | None
    expected_silent_30d: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Freshness:
    """Disks read within two intervals, of all that are there."""

    fresh: int
    total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """The whole service in one screenful."""

    cluster: str
    now: datetime
    as_of: datetime | None
    epoch: int | None
    health: str | None
    mode: str
    halted: str | None
    osds: int
    hosts: int
    forecast: Expected
    readings: Freshness
    view_age_seconds: float | None
    controller: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """One fact behind an outlook."""

    code: str
    sentence: str
    counter: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """Days until 10, 50 and 90 of 100 such disks have come to their end."""

    p10: float | None
    p50: float | None
    p90: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """Probability to be alive after `day` days."""

    day: int
    p: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """A device's newest forecast; a rule's has no probability but a `rule_score`."""

    device: str
    as_of: datetime
    status: str
    source: str
    p_fail_7d: float | None
    p_fail_14d: float | None
    p_fail_30d: float | None
    life: Life | None
    reasons: list[Reason]
    prescription: str
    advice: str | None
    clears: str
    rule_score: float | None
    endurance: Life | None
    survival: list[Point] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """A disk in a list. `state`: where it is in its life. `severity`: None for a disk that failed or is retired."""

    device: str
    host: str | None
    osds: list[int]
    model: str | None
    serial: str | None
    protocol: str | None
    capacity_bytes: int | None
    state: str
    severity: str | None
    status: str
    taken_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Unreadable:
    """Since when and why a disk cannot be read: a program decides by `cause`, `why` is for people."""

    since: datetime
    cause: str
    blames_host: bool
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceDrain:
    """A drain that a device had."""

    id: str
    state: str
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """A statement about a device's end."""

    at: datetime
    fate: str
    source: str
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceLife:
    """How a disk came to stand as it does. `why`: of a retired disk. `successor`: the disk that stands in its slot."""

    at: datetime
    state: str
    why: str | None
    source: str
    evidence: str
    subject: str
    sentence: str
    successor: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeDevice(Device):
    """A disk with its life, its newest outlook, its drains and what became of it."""

    life: DeviceLife
    power_on_hours: int | None
    passed: bool | None
    unreadable: Unreadable | None
    outlook: Outlook | None
    drains: list[DeviceDrain]
    outcomes: list[Outcome]


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far the data is."""

    planned_pgs: int
    moved_pgs: int
    planned_bytes: int
    moved_bytes: int
    in_flight: int
    budget: int
    lost_pgs: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a drain does, and what stands against it (`refusals`, sentences)."""

    mechanic: str
    why: str
    bytes: int
    pgs: int
    fullest_osd: int | None
    fullest_after: float | None
    cluster_after: float | None
    eta_hours: float | None
    bottleneck: str
    refusals: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class WayOut:
    """A way out of a drain that cannot go on by itself (`make_room`, `stay_drained`), and what it means."""

    way: str
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Insistence:
    """Guards that a person overruled for a drain, until then at most or until its step ends."""

    guards: list[str]
    by: str
    reason: str
    until: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Drain:
    """One drain. `etag` is of the plan that an approval approves. `left_hours`: of the plan, while it runs and nothing
    holds it; `took_hours`: of one that is over.
    """

    id: str
    device: str | None
    osds: list[int]
    state: str
    intent: str
    asked_by: str
    reason: str
    created_at: datetime
    updated_at: datetime
    held_by: list[str]
    ended_why: str
    etag: str
    progress: Progress
    plan: Plan | None
    left_hours: float | None
    took_hours: float | None
    state_text: str = ""
    ways_out: list[WayOut] = field(default_factory=list)
    insistence: Insistence | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Guard:
    """A guard's answer about a drain. `insistable`: a person may insist past it; `overruled`: a person does."""

    code: str
    ok: bool
    sentence: str
    insistable: bool = False
    overruled: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeDrain(Drain):
    """A drain with the answer of every guard."""

    guards: list[Guard]


@dataclass(frozen=True, slots=True, kw_only=True)
class Halt:
    """Why everything is halted; None when it is not. `unreached`: what the last halt, or its lifting, did not reach, as
    a sentence; None for nothing. `kept`: `memory` (of the service's process alone), `store`, `cluster`.
    """

    halted: str | None
    by: str | None
    since: datetime | None
    unreached: str | None
    kept: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """A reading that was not accepted, by its place in what was sent."""

    index: int
    reason: str
    retry_after: float | None
    """Seconds after which the same bytes may be taken; None: never."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ingested:
    """How many readings were accepted; the others each with a reason."""

    accepted: int
    refused: list[Refused]
