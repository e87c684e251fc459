"""What is known of the service now: its last good answer, how old that is, and since when no other came.

A value; `serve()` makes a new one each round, commands read whichever stands, and a new mgr begins with what the last
one kept.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

from .reading import Fields, NotBelieved
from .told import ServiceReport, packed, unpacked

VERSION = 1
KEPT_BYTES = 60_000
"""A config-key holds 65,536."""
KEPT_ROWS = 200


@dataclass(frozen=True)
class LastReport:
    """`at`: when `told` was told (seconds since 1970). `failures`: rounds without an answer since then."""

    told: ServiceReport | None = None
    at: float | None = None
    url: str = ""
    """Of the service that told it: another one's word is worth nothing."""
    trouble: str = ""
    failures: int = 0
    halted: str | None = None
    """The cluster's own word, config-key `predrain/halt`; None: no halt. Halts even with the service away."""
    halt_unread: str = ""
    """Why that key could not be read; a halt that cannot be read holds as one."""
    strangers: int = 0
    """OSDs that the service speaks of and that are not in this cluster."""
    heard_here: bool = False
    """Whether this mgr has heard it of the service; else an earlier mgr kept it."""
    doubt: str = ""
    """Why what an earlier mgr kept is not believed or not verified; "" where it is, or is not used any more."""

    def of(self, url: str) -> LastReport:
        """For a service at `url`: as it is, or empty where it was another's."""
        if url == self.url:
            return self
        return LastReport(url=url, halted=self.halted, halt_unread=self.halt_unread, doubt=self.doubt)

    def heard(self, told: ServiceReport, now: float) -> LastReport:
        """After a whole answer."""
        return replace(
            self, told=told, at=now, trouble="", failures=0, strangers=0, heard_here=True, doubt=""
        )

    def missed(self, why: str) -> LastReport:
        """After a round without one: what was known stays, and grows old."""
        return replace(self, trouble=why, failures=self.failures + 1)

    def age(self, now: float) -> float | None:
        """Seconds since the last good answer; None when there never was one."""
        return None if self.at is None else max(0.0, now - self.at)

    def halt(self) -> str | None:
        """Why everything stands still: the cluster's word before the service's."""
        if self.halted is not None:
            return self.halted
        return self.told.state.halted if self.told else None

    def limited(self, osds: dict[int, str]) -> LastReport:
        """Without OSDs that this cluster's map does not have; they are counted."""
        if self.told is None:
            return self
        here = tuple(osd for osd in self.told.osds if osd.osd in osds)
        strangers = len(self.told.osds) - len(here)
        return replace(self, told=replace(self.told, osds=here), strangers=strangers) if strangers else self


def kept(known: LastReport) -> str:
    """What a later mgr must know, below 64 KiB: the worst rows first, as many as fit."""
    if known.told is None or known.at is None:
        return ""
    rows = KEPT_ROWS
    while True:
        told = packed(known.told.worst(rows))
        text = json.dumps({"version": VERSION, "at": round(known.at, 3), "url": known.url, "told": told})
        if len(text.encode()) <= KEPT_BYTES or rows == 0:
            return text
        rows //= 2


def remembered(text: str | None, now: float) -> LastReport:
    """What the last mgr kept; nothing where that is not to be read."""
    if not text:
        return LastReport()
    try:
        row = Fields(json.loads(text), "what was kept")
        row.whole("version", VERSION, VERSION)
        at = row.number("at", 0, now + 86_400)
        return LastReport(unpacked(json.loads(text)["told"]), at, row.text("url"))
    except (ValueError, KeyError, RecursionError, NotBelieved):
        return LastReport()


def ago(seconds: float | None) -> str:
    """An age in words."""
    if seconds is None:
        return "never"
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit} ago"
    return f"{seconds:.0f} s ago"
