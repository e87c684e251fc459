"""The tables of docs/reference/rules.md: membership functions, and what every signal does by the kind of the drive.

The second is the outlook of a made drive that shows this signal and no other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

from predrain.data.ids import DeviceId, HostName
from predrain.data.reading import Attribute, Counters, Identity, Logs, Protocol, Reading, Smart, Unreadable
from predrain.features.drive_state import replay_readings
from predrain.models.forecast.bundle import Bundle
from predrain.models.forecast.outlooks import build_outlooks
from predrain.models.forecast.rules.fleet_levels import LEVELS
from predrain.models.forecast.rules.membership_functions import RAMPS

_SAY_NOTHING = {"no-sign", "no-symptom", "base-rate", "not-reported", "as-sata"}
NOON = datetime(2026, 11, 1, 12, tzinfo=UTC)
KINDS = ("SATA hard disk", "SATA SSD", "SAS", "NVMe")
_ROTATION = {"SATA hard disk": 7200, "SATA SSD": 0, "SAS": 7200, "NVMe": 0}
_PROTOCOL = {
    "SATA hard disk": Protocol.ATA,
    "SATA SSD": Protocol.ATA,
    "SAS": Protocol.SCSI,
    "NVMe": Protocol.NVME,
}
_QUIET: dict[str, dict[str, Any]] = {
    "SATA hard disk": {"reallocated": 0, "pending": 0},
    "SATA SSD": {"reallocated": 0, "percentage_used": 1},
    "SAS": {"grown_defects": 0, "uncorrected_errors": 0},
    "NVMe": {"media_errors": 0, "critical_warning": 0, "percentage_used": 1, "available_spare_pct": 100},
}


_ATTRIBUTES = {
    "reallocated": 5,
    "reported_uncorrectable": 187,
    "command_timeouts": 188,
    "pending": 197,
    "offline_uncorrectable": 198,
    "crc_errors": 199,
}


@dataclass(frozen=True)
class Signal:
    """A signal with the readings by which it is shown."""

    name: str
    kinds: Sequence[str]
    shown: Sequence[tuple[str, Sequence[dict[str, Any]]]]
    """Pairs of a description and the daily readings that show it: counters, or fields of Smart, Logs and Reading."""


def _levels(
    counter: str, *levels: int, rises: Sequence[int] = (1,)
) -> Sequence[tuple[str, Sequence[dict[str, Any]]]]:
    return [
        *((f"{level:,} at first sight", [{counter: level}]) for level in levels),
        *((f"{rise:,} new", [{counter: 0}, {counter: rise}]) for rise in rises),
    ]


SIGNALS: Sequence[Signal] = (
    Signal("the drive's own verdict", KINDS, [("FAILED", [{"passed": False}])]),
    Signal(
        "it cannot be read",
        KINDS,
        [("two probes failed", [{}, {"unreadable": True}, {"unreadable": True}])],
    ),
    Signal("pending sectors (197, SAS pending defects)", KINDS[:3], _levels("pending", 1, 60, rises=(1, 16))),
    Signal("offline uncorrectable sectors (198)", KINDS[:2], _levels("offline_uncorrectable", 1, 60)),
    Signal("reported uncorrectable errors (187)", KINDS[:2], _levels("reported_uncorrectable", 1, 60)),
    Signal("reallocated sectors (5)", KINDS[:2], _levels("reallocated", 1, 500, rises=(1, 100))),
    Signal("end-to-end errors (184)", KINDS[:2], _levels("end_to_end_errors", 1)),
    Signal("command timeouts (188)", KINDS[:2], _levels("command_timeouts", 60)),
    Signal("CRC errors (199)", KINDS[:2], _levels("crc_errors", 300)),
    Signal("uncorrected errors", ("SAS",), _levels("uncorrected_errors", 1, 536)),
    Signal("grown defects", ("SAS",), _levels("grown_defects", 260, 500, rises=(1, 16))),
    Signal("non-medium errors", ("SAS",), _levels("non_medium_errors", 84_893)),
    Signal("media errors", ("NVMe",), _levels("media_errors", 1, 500)),
    Signal(
        "critical warning",
        ("NVMe",),
        [
            ("reliability (bit 2)", [{"critical_warning": 4}]),
            ("read-only (bit 3)", [{"critical_warning": 8}]),
            ("temperature (bit 1)", [{"critical_warning": 2, "temperature_c": 84}]),
            ("with 100 % used", [{"critical_warning": 4, "percentage_used": 100}]),
        ],
    ),
    Signal(
        "spare blocks",
        KINDS[1:],
        [
            ("4 %, threshold 10 %", [{"available_spare_pct": 4, "spare_threshold_pct": 10}]),
        ],
    ),
    Signal(
        "rated life used",
        KINDS[1:],
        [("95 %", [{"percentage_used": 95}]), ("100 %", [{"percentage_used": 100}])],
    ),
    Signal("self-test", KINDS, [("1 failed", [{"failed_self_tests": 1}])]),
    Signal(
        "I/O errors in the kernel's log",
        KINDS,
        [
            ("1 in 24 h", [{"kernel_errors": 1}]),
            ("400 in 24 h", [{"kernel_errors": 400}]),
            ("400 of many disks of its host", [{"kernel_errors": 400, "kernel_errors_shared": True}]),
        ],
    ),
    Signal("NVMe error-log entries, ATA error log", KINDS, [("9,000", [{"logged_errors": 9000}])]),
    Signal("broken frames and losses of the link (PHY)", KINDS[:3], [("9,000", [{"link_errors": 9000}])]),
    Signal("unsafe shutdowns", KINDS, [("9,000", [{"unsafe_shutdowns": 9000}])]),
    Signal("temperature", KINDS, [("60 degrees Celsius", [{"temperature_c": 60}])]),
)


def ramps() -> str:
    """Every membership function with its source."""
    lines = ["| number | breakpoints | source |", "| --- | --- | --- |"]
    for ramp in (*RAMPS.values(), *LEVELS.values()):
        points = ", ".join(f"{x:g}: {y:g}" for x, y in ramp.points)
        lines.append(f"| {ramp.measures} | {points}{' (log)' if ramp.logarithmic else ''} | {ramp.source} |")
    return "\n".join(lines)


def signals() -> str:
    """Return the table of the effects of every signal, by the kind of the drive."""
    lines = [f"| signal | shown | {' | '.join(KINDS)} |", f"|{' --- |' * (2 + len(KINDS))}"]
    for signal in SIGNALS:
        for place, (what, days) in enumerate(signal.shown):
            cells = [judge_cell(kind, days) if kind in signal.kinds else "" for kind in KINDS]
            lines.append(f"| {signal.name if place == 0 else ''} | {what} | {' | '.join(cells)} |")
    return "\n".join(lines)


def judge_cell(kind: str, days: Sequence[dict[str, Any]]) -> str:
    """Status, codes of the reasons and advice; a dash where nothing is said. Hard disks are of an unknown maker."""
    state = replay_readings(make_readings(kind, days))
    assert state is not None
    (outlook,) = build_outlooks(_load_bundle(), [state], state.taken_at)
    codes = [one.code for one in outlook.reasons if one.code not in _SAY_NOTHING]
    if not codes:
        return "-"
    told = " ".join(f"`{code}`" for code in codes)
    return f"{outlook.status}, {told}, `{outlook.advice}`"


@cache
def _load_bundle() -> Bundle:
    return Bundle.load(threads=1)


def make_readings(kind: str, days: Sequence[dict[str, Any]]) -> list[Reading]:
    """One reading a day of a drive of this kind that shows this and nothing else."""
    made = []
    for day, said in enumerate(days):
        at = NOON + timedelta(days=day)
        say = dict(said)
        base = Reading(DeviceId("D_1"), HostName("h"), at, at, Unreadable(at, "no answer"))
        reading = replace(
            base,
            kernel_errors=say.pop("kernel_errors", None),
            kernel_errors_shared=say.pop("kernel_errors_shared", False),
        )
        if not say.pop("unreadable", False):
            reading = replace(reading, seen=_make_smart(kind, say))
        made.append(reading)
    return made


def _make_smart(kind: str, say: dict[str, Any]) -> Smart:
    logs = {
        name: say.pop(name) for name in ("failed_self_tests", "logged_errors", "link_errors") if name in say
    }
    own = {name: say.pop(name) for name in ("temperature_c", "spare_threshold_pct") if name in say}
    counters = {**_QUIET[kind], **{name: value for name, value in say.items() if name != "passed"}}
    rows = {
        _ATTRIBUTES[name]: Attribute(name, value) for name, value in counters.items() if name in _ATTRIBUTES
    }
    return Smart(
        _PROTOCOL[kind],
        Identity(model="ACME 9", serial="1", rotation_rpm=_ROTATION[kind]),
        say.pop("passed", True),
        Counters(**counters),
        rows if kind == "SATA hard disk" else {},
        logs=Logs(**logs) if logs else None,
        **own,
    )
