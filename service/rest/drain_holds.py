"""What holds a drain, its ways out, and what a person insists on; as REST answers it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from datetime import datetime

from predrain.data.drain import Drain
from predrain.data.way_out import OpenWayOut, WayOut
from predrain.service.drains.drain_requests import GuardAnswer
from predrain.service.rest.bodies import ResponseBody


class GuardBody(ResponseBody):
    """One guard's answer now."""

    code: str
    ok: bool
    sentence: str
    insistable: bool
    """Whether a person may insist past this answer."""
    overruled: bool
    """A person insists: it refuses, and holds nothing."""


class WayOutBody(ResponseBody):
    """A way out of a drain that cannot end, and what it means. `make_room` is done by hand, all others have a route."""

    way: WayOut
    sentence: str


class InsistenceBody(ResponseBody):
    """Guards that a person overruled for this drain, until then at most or until its step ends."""

    guards: list[str]
    by: str
    reason: str
    until: datetime


def guard_bodies(judged: Iterable[GuardAnswer]) -> list[GuardBody]:
    """Guards' answers as they are answered."""
    return [GuardBody(**asdict(one)) for one in judged]


def way_out_bodies(ways: Iterable[OpenWayOut]) -> list[WayOutBody]:
    """Ways out as they are answered."""
    return [WayOutBody(way=one.way, sentence=one.sentence) for one in ways]


def insistence_body(drain: Drain, now: datetime) -> InsistenceBody | None:
    """What a person insists on now; None where nobody does, or its time is over."""
    said = drain.insistence
    if said is None or now >= said.until:
        return None
    return InsistenceBody(guards=list(said.guards), by=said.by, reason=said.reason, until=said.until)
