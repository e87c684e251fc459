"""The last report of the service: the last valid answer, its age, and the number of failed polls since then.

A report is an immutable value. `serve()` makes a new one at each poll, commands read the present one, and a new
mgr begins with the one that the last mgr stored.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

from .json_fields import Fields, InvalidField
from .service_report import ServiceReport, decode_service_report, encode_service_report

VERSION = 2
"""Version 2 has the REST names of now. A report of another version is not read, since the service soon sends
the next.
"""
KEPT_BYTES = 60_000
"""A config-key holds 65,536 B."""
KEPT_ROWS = 200


@dataclass(frozen=True)
class LastReport:
    """The last report. `at`: when the service sent it (seconds since 1970). `failures`: polls without an answer
    since then.
    """

    told: ServiceReport | None = None
    at: float | None = None
    url: str = ""
    """The service that sent the report. A report of another service is not used."""
    trouble: str = ""
    failures: int = 0
    halted: str | None = None
    """The reason in the cluster's config-key `predrain/halt`; None: no halt. It halts even if the service does not
    answer.
    """
    halt_unread: str = ""
    """The reason why that key could not be read; "" if it was read. A halt that cannot be read counts as a halt."""
    strangers: int = 0
    """Number of OSDs in the report that are not in this cluster."""
    heard_here: bool = False
    """True if this mgr received the report from the service, false if an earlier mgr stored it."""
    doubt: str = ""
    """The reason why the report of an earlier mgr is not used or not verified; "" if it is verified or no longer in
    use.
    """

    def for_url(self, url: str) -> LastReport:
        """Return the report for a service at `url`: unchanged, or empty if it came from another service."""
        if url == self.url:
            return self
        return LastReport(url=url, halted=self.halted, halt_unread=self.halt_unread, doubt=self.doubt)

    def with_report(self, told: ServiceReport, now: float) -> LastReport:
        """Return the report after a complete answer."""
        return replace(
            self, told=told, at=now, trouble="", failures=0, strangers=0, heard_here=True, doubt=""
        )

    def with_failure(self, why: str) -> LastReport:
        """Return the report after a poll without an answer. The last known content stays and grows older."""
        return replace(self, trouble=why, failures=self.failures + 1)

    def age(self, now: float) -> float | None:
        """Return the seconds since the last valid answer, or None if there never was one."""
        return None if self.at is None else max(0.0, now - self.at)

    def find_halt_reason(self) -> str | None:
        """Return the reason of the halt: the cluster's before the service's; None if there is no halt."""
        if self.halted is not None:
            return self.halted
        return self.told.state.halted if self.told else None

    def limit_to_osds(self, osds: dict[int, str]) -> LastReport:
        """Return the report without OSDs that are not in this cluster's map, and with their number."""
        if self.told is None:
            return self
        here = tuple(osd for osd in self.told.osds if osd.osd in osds)
        strangers = len(self.told.osds) - len(here)
        return replace(self, told=replace(self.told, osds=here), strangers=strangers) if strangers else self


def encode_last_report(known: LastReport) -> str:
    """Encode the report for the next mgr in less than 64 KiB: the worst rows first, as many as fit."""
    if known.told is None or known.at is None:
        return ""
    rows = KEPT_ROWS
    while True:
        told = encode_service_report(known.told.select_worst(rows))
        text = json.dumps({"version": VERSION, "at": round(known.at, 3), "url": known.url, "told": told})
        if len(text.encode()) <= KEPT_BYTES or rows == 0:
            return text
        rows //= 2


def decode_last_report(text: str | None, now: float) -> LastReport:
    """Decode the report that the last mgr stored. Return an empty one if the text cannot be read."""
    if not text:
        return LastReport()
    try:
        row = Fields(json.loads(text), "what was kept")
        row.whole_number("version", VERSION, VERSION)
        at = row.number("at", 0, now + 86_400)
        return LastReport(decode_service_report(json.loads(text)["told"]), at, row.text("url"))
    except (ValueError, KeyError, RecursionError, InvalidField):
        return LastReport()


def format_age(seconds: float | None) -> str:
    """Format an age for people."""
    if seconds is None:
        return "never"
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit} ago"
    return f"{seconds:.0f} s ago"
