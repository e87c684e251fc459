"""Carries out the requests that a host fetched, one after the other, and follows the self-tests that it started."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from datetime import datetime, timedelta
from typing import Protocol

import msgspec
import structlog

from predrain.collector.disk_requests.request_memory import RequestMemory, StartedTest
from predrain.collector.disk_requests.slot_light import LONGEST_DETAIL, SlotLight, judge_run
from predrain.collector.disks import FoundDisk, Smartctl
from predrain.collector.disks.process import ProcessResult
from predrain.data.clock import Clock
from predrain.data.disk_request import (
    DiskPermission,
    DiskRequest,
    DiskVerb,
    HostSelfTest,
    RequestNotValid,
    RequestOutcome,
    RequestReport,
    SignedDiskRequest,
    read_request_id,
    verify_disk_request,
)
from predrain.data.ids import DeviceId, HostName
from predrain.data.outside_text import clean_text
from predrain.data.self_test import SelfTestKind, SelfTestState

FOLLOW = timedelta(minutes=5)
"""Time between two readings of a disk whose test runs."""
SETTLING = timedelta(minutes=1)
"""Time after the start of a test in which a drive may not report it yet."""

LONGEST_TEST = timedelta(days=4)
"""Time after which a test of a disk that no longer answers counts as ended."""


class RequestedDisks(Protocol):
    """The disks of the host, as requests need them (collector.disks.DiskWatch)."""

    self_tests: dict[DeviceId, tuple[SelfTestState, datetime]]

    def find_disk(self, device: DeviceId) -> FoundDisk | None:
        """Ask the disk for its name and its self-tests at the place where it was read last."""
        ...

    def run_on_disk(self, device: DeviceId, command: tuple[str, ...]) -> ProcessResult:
        """Run a program on a disk."""
        ...


class RequestRunner:
    """One thread calls it. `key`: returns the host's key for requests, or None if it has none."""

    def __init__(
        self,
        host: HostName,
        disks: RequestedDisks,
        smartctl: Smartctl,
        light: SlotLight,
        memory: RequestMemory,
        clock: Clock,
        *,
        allow: Collection[DiskPermission],
        key: Callable[[], str | None],
    ) -> None:
        self._host, self._disks, self._smartctl, self._light = host, disks, smartctl, light
        self._memory, self._clock, self._allow, self._key = memory, clock, frozenset(allow), key
        self._followed: dict[DeviceId, datetime] = {}

    def carry_out(self, signed: SignedDiskRequest) -> None:
        """Carry out one request, and remember its report. Raises MemoryUnusable; then nothing was done."""
        now, key = self._clock.now(), self._key()
        try:
            if key is None:
                raise RequestNotValid(RequestOutcome.FORGED)
            request = verify_disk_request(key, signed, self._host, now, self._memory.done)
            if request.verb.permission not in self._allow:
                raise RequestNotValid(RequestOutcome.NOT_ALLOWED)
        except RequestNotValid as invalid:
            name = read_request_id(signed)
            if name is not None and name not in {one.id for one in self._memory.reports}:
                structlog.get_logger().warning("request refused", id=name[:64], reason=invalid.outcome.value)
                if invalid.outcome is not RequestOutcome.REPEATED:
                    self._memory.end(RequestReport(name, invalid.outcome, now))
            return
        self._memory.begin(request, now)
        report, started = self._act(request)
        structlog.get_logger().info(
            "request carried out", id=request.id, device=request.device, verb=request.verb.value, by=request.by,
            outcome=report.outcome.value,
        )  # fmt: skip
        self._memory.end(report, started)

    def stop_tests(self, devices: Collection[DeviceId]) -> None:
        """End the tests on `devices` that this collector started; a test that another program started goes on."""
        for device in sorted(self._memory.started.keys() & set(devices)):
            disk = self._disks.find_disk(device)
            if disk is None or not disk.spot.is_safe:
                continue  # it is asked again with the next answer that names it
            ended = self._disks.run_on_disk(device, self._smartctl.build_abort_command(disk.spot))
            outcome, detail = judge_run(ended)
            structlog.get_logger().warning(
                "self-test stopped", device=device, outcome="stopped" if outcome is None else outcome.value,
                detail=detail,
            )  # fmt: skip
            if outcome is None:
                self._memory.forget_test(device)
                self._disks.find_disk(device)

    def list_running_tests(self) -> tuple[HostSelfTest, ...]:
        """Read the disks whose test is to be followed, and return the tests that run on this host."""
        now = self._clock.now()
        for device, started in self._memory.started.items():
            if now - self._followed.get(device, started.at) >= FOLLOW:
                self._followed[device] = now
                self._disks.find_disk(device)
            state = self._disks.self_tests.get(device)
            ended = state is not None and state[0].running is None and state[1] > started.at + SETTLING
            if ended or now - started.at > LONGEST_TEST:
                self._memory.forget_test(device)
                self._followed.pop(device, None)
        found: dict[DeviceId, SelfTestKind | None] = {
            device: state.running.kind
            for device, (state, _) in tuple(self._disks.self_tests.items())
            if state.running is not None
        }
        found |= {device: started.kind for device, started in self._memory.started.items()}
        return tuple(HostSelfTest(device, kind) for device, kind in sorted(found.items()))

    def _act(self, request: DiskRequest) -> tuple[RequestReport, tuple[DeviceId, StartedTest] | None]:
        disk = self._disks.find_disk(request.device)
        if disk is None or not disk.spot.is_safe:
            return self._report(request, RequestOutcome.UNKNOWN_DISK), None
        if (kind := request.verb.test_kind) is not None:
            return self._start_test(request, disk, kind)
        lit = self._light.switch(
            disk.blocks,
            on=request.verb is DiskVerb.LOCATE_ON,
            run=lambda command: self._disks.run_on_disk(request.device, command),
        )
        return self._report(request, lit.outcome, lit.detail, lit.slot), None

    def _start_test(
        self, request: DiskRequest, disk: FoundDisk, kind: SelfTestKind
    ) -> tuple[RequestReport, tuple[DeviceId, StartedTest] | None]:
        # The service checks this too, by what hosts reported; here is the last word.
        running = {one.device: one.kind for one in self.list_running_tests()}
        long_here = kind is SelfTestKind.LONG and any(
            one is not SelfTestKind.SHORT for one in running.values()
        )
        if request.device in running or long_here:
            return self._report(request, RequestOutcome.TEST_RUNNING), None
        ended = self._disks.run_on_disk(request.device, self._smartctl.build_test_command(disk.spot, kind))
        outcome, detail = judge_run(ended)
        if outcome is not None:
            return self._report(request, outcome, read_messages(ended.out) or detail), None
        now = self._clock.now()
        return self._report(request, RequestOutcome.STARTED), (request.device, StartedTest(kind, now))

    def _report(
        self, request: DiskRequest, outcome: RequestOutcome, detail: str = "", slot: str | None = None
    ) -> RequestReport:
        return RequestReport(request.id, outcome, self._clock.now(), detail, slot)


class _Message(msgspec.Struct, frozen=True):
    string: str = ""


class _Program(msgspec.Struct, frozen=True):
    messages: tuple[_Message, ...] = ()


class _Output(msgspec.Struct, frozen=True):
    smartctl: _Program = _Program()


def read_messages(out: bytes) -> str:
    """Return smartctl's messages in its JSON, or "" if there are none."""
    try:
        said = msgspec.json.decode(out, type=_Output).smartctl.messages
    except msgspec.MsgspecError:
        return ""
    return clean_text("; ".join(one.string for one in said), LONGEST_DETAIL)


def list_changed(
    known: Mapping[DeviceId, tuple[SelfTestState, datetime]], sent: Mapping[DeviceId, SelfTestState]
) -> dict[DeviceId, tuple[SelfTestState, datetime]]:
    """Return the self-tests that differ from those that the service has."""
    return {device: one for device, one in known.items() if sent.get(device) != one[0]}
