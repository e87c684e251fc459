"""The loop body that asks the service for work: reports go with the question, requests come with the answer.

The host opens no port. While the service is away the collector asks seldom, and keeps its reports.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from random import Random

import structlog

from predrain.collector.delivery import SinkUnavailable
from predrain.collector.disk_requests.request_memory import MemoryUnusable, RequestMemory
from predrain.collector.disk_requests.request_runner import RequestedDisks, RequestRunner, list_changed
from predrain.data.disk_request import DiskPermission, DiskSelfTests, WorkAnswer, WorkQuestion
from predrain.data.ids import DeviceId, HostName
from predrain.data.self_test import SelfTestState

ASKING_SECONDS = 20.0
LONGEST_PAUSE_SECONDS = 120.0


class WorkLoop:
    """Asks for work and carries it out. One thread calls `step`."""

    def __init__(
        self,
        host: HostName,
        runner: RequestRunner,
        memory: RequestMemory,
        disks: RequestedDisks,
        ask: Callable[[WorkQuestion], WorkAnswer],
        random: Random,
        *,
        allow: Collection[DiskPermission],
        has_key: Callable[[], bool],
        stopping: Callable[[], bool],
    ) -> None:
        """ask: sends one question. It raises SinkUnavailable."""
        self._host, self._runner, self._memory, self._disks = host, runner, memory, disks
        self._ask, self._random, self._stopping = ask, random, stopping
        self._allow, self._has_key = tuple(sorted(allow)), has_key
        self._sent: dict[DeviceId, SelfTestState] = {}
        self._failures = 0

    def step(self) -> float:
        """Ask once, and carry out what the answer holds; return the seconds to wait."""
        try:
            running = self._runner.list_running_tests()
            changed = list_changed(dict(self._disks.self_tests), self._sent)
            question = WorkQuestion(
                self._host,
                self._allow,
                self._has_key(),
                running,
                self._memory.reports,
                tuple(DiskSelfTests(device, state, at) for device, (state, at) in sorted(changed.items())),
            )
            answer = self._ask(question)
            self._sent |= {one.device: one.state for one in question.tests}
            self._memory.forget_reports(question.reports)
            self._tell_answered()
            self._runner.stop_tests(answer.stop)
            for signed in answer.requests:
                if self._stopping():
                    break
                self._runner.carry_out(signed)
        except (SinkUnavailable, MemoryUnusable) as away:
            return self._pause(str(away), getattr(away, "after", 0.0))
        # A person waits for the report.
        return 0.0 if self._memory.reports else ASKING_SECONDS * self._random.uniform(0.9, 1.1)

    def _tell_answered(self) -> None:
        if self._failures:
            structlog.get_logger().info("work is asked for again", after_failures=self._failures)
        self._failures = 0

    def _pause(self, why: str, after: float) -> float:
        if not self._failures:
            structlog.get_logger().warning("no work is asked for", reason=why)
        length = min(ASKING_SECONDS * 2.0 ** min(self._failures, 10), LONGEST_PAUSE_SECONDS)
        self._failures += 1
        return max(after, length) * self._random.uniform(0.5, 1.0)
