"""After any history of appends, reads, commits and trims, a plain model and every log of one machine agree."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from predrain.data.log.log_port import Record, Topic
from predrain.data.log.memory_log import MemoryLog
from predrain.data.log.sqlite_log import SqliteLog

TOPICS = st.sampled_from([Topic.READINGS, Topic.LATENCY])
GROUPS = st.sampled_from(["worker", "archive"])


class LogAgrees(RuleBasedStateMachine):
    """The model counts records from 1 per topic; a log may number them as it likes, in the same order."""

    @initialize(kind=st.sampled_from(["memory", "sqlite"]))
    def start(self, kind: str) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.kind = kind
        self.log: MemoryLog | SqliteLog = MemoryLog() if kind == "memory" else self._open()
        self.accepted: dict[Topic, list[bytes]] = {topic: [] for topic in Topic}
        self.trimmed: dict[Topic, int] = dict.fromkeys(Topic, 0)
        self.done: dict[tuple[Topic, str], int] = {}
        self.number = 0

    def _open(self) -> SqliteLog:
        return SqliteLog(Path(self.folder.name) / "log.db")

    def _pending(self, topic: Topic, group: str) -> list[bytes]:
        return self.accepted[topic][max(self.done.get((topic, group), 0), self.trimmed[topic]) :]

    @rule(topic=TOPICS, size=st.integers(0, 4))
    def append(self, topic: Topic, size: int) -> None:
        batch = [str(self.number + i).encode() for i in range(size)]
        self.number += size
        self.log.append(topic, [Record("k", value) for value in batch])
        self.accepted[topic] += batch

    @rule(topic=TOPICS, group=GROUPS, limit=st.integers(0, 6))
    def read(self, topic: Topic, group: str, limit: int) -> None:
        given = [delivered.value for delivered in self.log.read(topic, group, limit)]
        self.done.setdefault((topic, group), 0)
        assert given == self._pending(topic, group)[:limit]

    @rule(topic=TOPICS, group=GROUPS, count=st.integers(1, 6))
    def commit(self, topic: Topic, group: str, count: int) -> None:
        given = self.log.read(topic, group, count)
        self.done.setdefault((topic, group), 0)
        if given:
            self.log.commit(topic, group, given)
            self.done[topic, group] = max(self.done[topic, group], self.trimmed[topic]) + len(given)

    @rule(topic=TOPICS, keep=st.integers(0, 3))
    def trim(self, topic: Topic, keep: int) -> None:
        """Ask for everything to go but the last `keep`; only what all groups have done may go."""
        everything = self.log.read(topic, "trimmer", 10**6)
        self.done.setdefault((topic, "trimmer"), 0)
        if everything:
            self.log.commit(topic, "trimmer", everything)
        self.done[topic, "trimmer"] = len(self.accepted[topic])
        if len(everything) <= keep:
            return
        goes = len(self.accepted[topic]) - keep
        groups = [done for (of, _), done in self.done.items() if of == topic]
        expected = max(min(goes, *groups), self.trimmed[topic])
        before = everything[len(everything) - keep].offset if keep else everything[-1].offset + 1
        assert self.log.trim(topic, before) == expected - self.trimmed[topic]
        self.trimmed[topic] = expected

    @rule()
    def restart(self) -> None:
        if isinstance(self.log, SqliteLog):
            self.log.close()
            self.log = self._open()

    @invariant()
    def nothing_acknowledged_is_lost(self) -> None:
        for topic in (Topic.READINGS, Topic.LATENCY):
            for group in ("worker", "archive"):
                if (topic, group) in self.done:
                    assert [d.value for d in self.log.read(topic, group, 10**6)] == self._pending(
                        topic, group
                    )

    def teardown(self) -> None:
        if hasattr(self, "log"):
            self.log.close()
            self.folder.cleanup()


TestLogAgrees: Any = pytest.mark.slow(LogAgrees.TestCase)
TestLogAgrees.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)
