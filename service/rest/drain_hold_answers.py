"""The guards that hold a drain, its ways out, and guards that a person overruled, as REST bodies."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from datetime import datetime

from predrain.data.drain import Drain
from predrain.data.way_out import OpenWayOut, WayOut
from predrain.service.drains.drain_requests import GuardAnswer
from predrain.service.rest.shared_bodies import ResponseBody


class GuardBody(ResponseBody):
    """One guard's answer now."""

    code: str
    ok: bool
    sentence: str
    insistable: bool
    """True if a person may insist past this answer."""
    overruled: bool
    """True if a person insists past this guard: it refuses, and does not hold the drain."""
    transient: bool
    """True if the refusal ends by itself in time: a drain that is approved meanwhile waits for that end."""


class WayOutBody(ResponseBody):
    """A way out of a drain that cannot end, with its effect. `make_room` is done by hand; all others have a route."""

    way: WayOut
    sentence: str


class InsistenceBody(ResponseBody):
    """Guards that a person overruled for this drain, until its step ends, and at most until the time `until`."""

    guards: list[str]
    by: str
    reason: str
    until: datetime


def guard_bodies(judged: Iterable[GuardAnswer]) -> list[GuardBody]:
    """Return the bodies of guards' answers."""
    return [GuardBody(**asdict(one)) for one in judged]


def way_out_bodies(ways: Iterable[OpenWayOut]) -> list[WayOutBody]:
    """Return the bodies of ways out."""
    return [WayOutBody(way=one.way, sentence=one.sentence) for one in ways]


def insistence_body(drain: Drain, now: datetime) -> InsistenceBody | None:
    """Return the guards that a person overrules now, or None if there are none or the time is over."""
    said = drain.insistence
    if said is None or now >= said.until:
        return None
    return InsistenceBody(guards=list(said.guards), by=said.by, reason=said.reason, until=said.until)
