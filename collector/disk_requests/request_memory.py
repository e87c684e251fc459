"""The collector's memory of requests over a restart: their ids, reports under way, and tests that it started.

The file is small JSON and is replaced as a whole. An id is written before its request is carried out, so that a request
is carried out once at most.
"""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path

import msgspec

from predrain.data.disk_request import DiskRequest, RequestOutcome, RequestReport
from predrain.data.ids import DeviceId
from predrain.data.refusal import Refusal
from predrain.data.self_test import SelfTestKind


class MemoryUnusable(Refusal):
    """The file cannot be read or written, so no request is carried out."""


class StartedTest(msgspec.Struct, frozen=True):
    """A self-test that this collector started."""

    kind: SelfTestKind
    at: datetime


class _MemoryFile(msgspec.Struct):
    done: dict[str, datetime] = {}
    begun: set[str] = set()
    reports: dict[str, RequestReport] = {}
    started: dict[DeviceId, StartedTest] = {}


class RequestMemory:
    """The memory in `file`. One thread uses it. Raises MemoryUnusable."""

    def __init__(self, file: Path, now: datetime) -> None:
        """Read the file. A request that was begun and has no report is reported as cut off."""
        self._file = file
        try:
            self._kept = msgspec.json.decode(file.read_bytes(), type=_MemoryFile)
        except FileNotFoundError:
            self._kept = _MemoryFile()
        except (OSError, msgspec.MsgspecError) as error:
            raise MemoryUnusable(
                f"the ids of requests in {file} cannot be read ({error}): remove the file an hour after the last "
                "request"
            ) from error
        for name in sorted(self._kept.begun):
            self._kept.reports[name] = RequestReport(name, RequestOutcome.CUT_OFF, now)
        self._kept.begun.clear()

    @property
    def done(self) -> frozenset[str]:
        """The ids that are not carried out again."""
        return frozenset(self._kept.done)

    @property
    def reports(self) -> tuple[RequestReport, ...]:
        """The reports that the service has not accepted yet."""
        return tuple(self._kept.reports.values())

    @property
    def started(self) -> dict[DeviceId, StartedTest]:
        """A copy of the tests that this collector started and that are not known to have ended."""
        return dict(self._kept.started)

    def begin(self, request: DiskRequest, now: datetime) -> None:
        """Record the id before the request is carried out. Ids of requests whose end has passed are dropped."""
        self._kept.done = {name: end for name, end in self._kept.done.items() if end > now}
        self._kept.done[request.id] = request.expires_at
        self._kept.begun.add(request.id)
        self._save()

    def end(self, report: RequestReport, started: tuple[DeviceId, StartedTest] | None = None) -> None:
        """Record the report of a request, and the test that it started."""
        self._kept.begun.discard(report.id)
        self._kept.reports[report.id] = report
        if started is not None:
            self._kept.started[started[0]] = started[1]
        self._save()

    def forget_reports(self, accepted: tuple[RequestReport, ...]) -> None:
        """Drop the reports that the service accepted."""
        if accepted:
            for one in accepted:
                self._kept.reports.pop(one.id, None)
            self._save()

    def forget_test(self, device: DeviceId) -> None:
        """Record that a test has ended."""
        if self._kept.started.pop(device, None) is not None:
            self._save()

    def _save(self) -> None:
        new = self._file.with_name(f".{self._file.name}.new")
        try:
            handle = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
            with os.fdopen(handle, "wb") as file:
                file.write(msgspec.json.encode(self._kept))
                file.flush()
                os.fsync(file.fileno())
            new.replace(self._file)
            folder = os.open(self._file.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
        except OSError as error:
            raise MemoryUnusable(f"{self._file} cannot be written: {error.strerror or error}") from error
