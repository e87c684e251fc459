"""The self-tests of a drive, as its own log and status report them.

Every protocol has its own numbers for kinds and results. They are translated once, in `data.smart.self_test_log`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class SelfTestKind(StrEnum):
    """The kinds of self-test that predrain starts, and one word for all others."""

    SHORT = "short"
    """Minutes: electronics, and a part of the surface."""
    LONG = "long"
    """Hours: the whole surface."""
    OTHER = "other"
    """A conveyance, selective or vendor test, or one whose kind the drive does not report."""


class SelfTestResult(StrEnum):
    """The end of a self-test, or that it still runs."""

    RUNNING = "running"
    PASSED = "passed"
    ABORTED = "aborted"
    """A command of the host ended the test."""
    INTERRUPTED = "interrupted"
    """A reset, a format or a sanitize operation ended the test."""
    NOT_COMPLETED = "not-completed"
    """An error kept the test from its end: neither passed nor failed."""
    FAILED = "failed"
    """A part of the drive failed, and the drive does not say which."""
    FAILED_ELECTRICAL = "failed-electrical"
    FAILED_SERVO = "failed-servo"
    FAILED_READ = "failed-read"
    FAILED_HANDLING = "failed-handling"
    """The drive suspects damage from handling."""
    UNKNOWN = "unknown"
    """The drive reports a number that no standard defines."""

    @property
    def is_failure(self) -> bool:
        """Return whether the test found the drive broken."""
        return self in _FAILURES


_FAILURES = frozenset(
    {
        SelfTestResult.FAILED,
        SelfTestResult.FAILED_ELECTRICAL,
        SelfTestResult.FAILED_SERVO,
        SelfTestResult.FAILED_READ,
        SelfTestResult.FAILED_HANDLING,
    }
)


@dataclass(frozen=True, slots=True)
class SelfTest:
    """One entry of a drive's self-test log."""

    kind: SelfTestKind
    result: SelfTestResult
    power_on_hours: int | None = None
    """The drive's age at the end of the test, in hours."""
    first_error_lba: int | None = None
    """The first logical block that could not be read."""


@dataclass(frozen=True, slots=True)
class RunningSelfTest:
    """A test that runs now."""

    kind: SelfTestKind | None
    """None: the drive reports that a test runs, and not which."""
    done_percent: int | None
    """None: the drive does not report how far the test is."""


@dataclass(frozen=True, slots=True)
class SelfTestState:
    """All that a drive reports of its self-tests."""

    running: RunningSelfTest | None
    log: tuple[SelfTest, ...]
    """Tests that ended, newest first."""
    short_minutes: int | None = None
    """The drive's own estimate for a short test."""
    long_minutes: int | None = None
