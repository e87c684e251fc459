"""The report of the service: its state, every OSD with its outlook, every drain. It comes from REST or from the
store.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from .json_fields import Fields

STATUSES: tuple[str, ...] = ("bad", "warning", "good", "unknown")
STATES = (
    "proposed", "approved", "preparing", "draining", "holding", "drained", "verified", "handed_over", "paused",
    "cancelling", "cancelled", "failed",
)  # fmt: skip
ENDED = frozenset({"handed_over", "cancelled"})
OSDS_MAX, DRAINS_MAX, SENTENCES_MAX = 100_000, 10_000, 100
DAYS_MAX = 100_000.0
ETAG_MAX = 2048


@dataclass(frozen=True)
class State:
    """The state of the service."""

    cluster: str
    mode: str
    controller: str
    halted: str | None
    expected_30d: float | None
    view_age_seconds: float | None


@dataclass(frozen=True)
class ReportedOsd:
    """One OSD and the forecast for its disk. None means unknown."""

    osd: int
    host: str
    device: str | None
    status: str
    p_fail_30d: float | None
    life_p10_days: float | None
    life_p90_days: float | None
    reasons: tuple[str, ...]
    prescription: str | None
    drain: str | None
    """The id of the drain that now concerns the OSD."""


@dataclass(frozen=True)
class ReportedDrain:
    """One drain. An approval sends `etag` to show which state of the drain was seen."""

    id: str
    device: str | None
    osds: tuple[int, ...]
    state: str
    intent: str
    reason: str
    held_by: tuple[str, ...]
    end_reason: str
    etag: str
    planned_pgs: int
    moved_pgs: int
    planned_bytes: int
    moved_bytes: int
    state_text: str = ""
    """The state as people read it; empty if an older release of the service does not send it."""
    ways_out: tuple[str, ...] = ()
    """Sentences that say what a person can do for a drain that cannot go on by itself."""

    @property
    def has_ended(self) -> bool:
        """Return whether the drain has ended and will send no further command."""
        return self.state in ENDED


@dataclass(frozen=True)
class ServiceReport:
    """A whole report. `cut`: number of OSDs that were not stored (a config-key holds 64 KiB)."""

    state: State
    osds: tuple[ReportedOsd, ...]
    drains: tuple[ReportedDrain, ...]
    cut: int = 0

    def count_by_status(self) -> dict[str, int]:
        """Count the OSDs of each status."""
        found: dict[str, int] = dict.fromkeys(STATUSES, 0)
        for osd in self.osds:
            found[osd.status] += 1
        return found

    def select_worst(self, most: int) -> ServiceReport:
        """Return a short report: at most `most` OSDs, bad ones before warnings, and the drains that have not ended."""
        kept = sorted(
            (osd for osd in self.osds if osd.status in ("bad", "warning")),
            key=lambda osd: STATUSES.index(osd.status),
        )
        short = tuple(replace(osd, reasons=osd.reasons[:1], prescription=None) for osd in kept[:most])
        open_ = tuple(
            replace(drain, held_by=drain.held_by[:1], etag="", ways_out=())
            for drain in self.drains
            if not drain.has_ended
        )
        state = replace(self.state, view_age_seconds=None)  # it would differ in every report
        return ServiceReport(state, short, open_[:most], self.cut + len(self.osds) - len(short))


def state_of(body: Any) -> State:
    """Parse the answer of `GET status`. Raises InvalidField."""
    row = Fields(body, "the status")
    forecast = row.maybe_inner("forecast")
    return State(
        cluster=row.text("cluster", 100),
        mode=row.one_of("mode", ("observe", "propose", "act")),
        controller=row.text("controller", 400),
        halted=row.maybe_text("halted", 500),
        expected_30d=forecast.maybe_number("expected_30d", 0, 1e6) if forecast else None,
        view_age_seconds=row.maybe_number("view_age_seconds", -1e9, 1e12),
    )


def osds_of(body: Any) -> tuple[ReportedOsd, ...]:
    """Parse the answer of `GET osds`. Raises InvalidField."""
    return tuple(_parse_reported_osd(row) for row in Fields(body, "the OSDs").rows("items", OSDS_MAX))


def drains_of(body: Any) -> tuple[ReportedDrain, ...]:
    """Parse the answer of `GET drains`. Raises InvalidField."""
    return tuple(_parse_reported_drain(row) for row in Fields(body, "the drains").rows("items", DRAINS_MAX))


def encode_service_report(told: ServiceReport) -> dict[str, Any]:
    """Encode the report as JSON in the service's own shape, so that one parser reads both."""
    state = told.state
    return {
        "status": dict(asdict(state), forecast={"expected_30d": state.expected_30d}),
        "osds": [dict(asdict(osd), drain={"id": osd.drain} if osd.drain else None) for osd in told.osds],
        "drains": [
            dict(
                asdict(drain),
                progress=_encode_progress(drain),
                ways_out=[{"sentence": one} for one in drain.ways_out],
            )
            for drain in told.drains
        ],
        "cut": told.cut,
    }


def decode_service_report(body: Mapping[str, Any]) -> ServiceReport:
    """Decode a report that `encode_service_report` encoded. Raises InvalidField."""
    row = Fields(body, "what was kept")
    return ServiceReport(
        state_of(body.get("status")),
        tuple(_parse_reported_osd(one) for one in row.rows("osds", OSDS_MAX)),
        tuple(_parse_reported_drain(one) for one in row.rows("drains", DRAINS_MAX)),
        row.whole_number("cut", 0, OSDS_MAX),
    )


def _parse_reported_osd(row: Fields) -> ReportedOsd:
    drain = row.maybe_inner("drain")
    return ReportedOsd(
        osd=row.whole_number("osd", 0, (1 << 31) - 1),
        host=row.text("host", 255),
        device=row.maybe_text("device", 256),
        status=row.one_of("status", STATUSES),
        p_fail_30d=row.maybe_number("p_fail_30d", 0, 1),
        life_p10_days=row.maybe_number("life_p10_days", 0, DAYS_MAX),
        life_p90_days=row.maybe_number("life_p90_days", 0, DAYS_MAX),
        reasons=tuple(row.texts("reasons", SENTENCES_MAX)),
        prescription=row.maybe_text("prescription"),
        drain=drain.exact_text("id", 200) if drain else None,
    )


def _parse_reported_drain(row: Fields) -> ReportedDrain:
    progress = row.inner("progress")
    return ReportedDrain(
        id=row.exact_text("id", 200),
        device=row.maybe_text("device", 256),
        osds=tuple(row.whole_numbers("osds", 1000)),
        state=row.one_of("state", STATES),
        intent=row.text("intent", 20),
        reason=row.text("reason", 500),
        held_by=tuple(row.texts("held_by", SENTENCES_MAX, 500)),
        end_reason=row.text("end_reason", 500),
        etag=row.exact_text("etag", ETAG_MAX),
        planned_pgs=progress.whole_number("planned_pgs", 0, 1 << 40),
        moved_pgs=progress.whole_number("moved_pgs", 0, 1 << 40),
        planned_bytes=progress.whole_number("planned_bytes", 0, 1 << 60),
        moved_bytes=progress.whole_number("moved_bytes", 0, 1 << 60),
        state_text=row.maybe_text("state_text", 60) or "",
        ways_out=tuple(one.text("sentence", 500) for one in row.maybe_rows("ways_out", SENTENCES_MAX)),
    )


def _encode_progress(drain: ReportedDrain) -> dict[str, int]:
    return {
        name: getattr(drain, name) for name in ("planned_pgs", "moved_pgs", "planned_bytes", "moved_bytes")
    }
