"""The store answers as plain dictionaries would, after any sequence of writes and across restarts."""

from __future__ import annotations

import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from predrain.data.drain import Drain, DrainState, Intent, JournalEntry
from predrain.data.ids import DeviceId, HostName, OsdId
from predrain.data.latency_windows import LatencySummary, LatencyWindows
from predrain.data.outcome import DriveFate, Outcome
from predrain.data.outlook import Outlook, Status
from predrain.data.reading import Counters, Identity, Protocol, Reading, Smart, Unreadable
from predrain.data.store.sqlite_store import SqliteStore
from predrain.data.store.store_port import RevisionConflict

START = datetime(2026, 3, 1, tzinfo=UTC)
DEVICES = st.sampled_from([DeviceId("a"), DeviceId("b"), DeviceId("c d'; --")])
TIMES = st.builds(lambda ticks: START + timedelta(microseconds=ticks), st.integers(-4, 4))
SEEN = st.one_of(
    st.builds(Unreadable, TIMES, st.text(st.characters(codec="utf-8"), max_size=5)),
    st.builds(
        Smart,
        st.sampled_from(Protocol),
        st.just(Identity(model="ST4000")),
        st.none() | st.booleans(),
        st.builds(Counters, pending=st.none() | st.integers(0, 2**70)),
    ),
)
READINGS = st.builds(Reading, DEVICES, st.just(HostName("h")), TIMES, TIMES, SEEN)
OUTLOOKS = st.builds(
    Outlook,
    DEVICES,
    TIMES,
    st.sampled_from(Status),
    st.just("rule:x"),
    st.just(()),
    st.text("xy", max_size=2),
)
SUMMARIES = st.builds(
    LatencySummary, st.builds(OsdId, st.integers(0, 2)), st.just(HostName("h")), TIMES, st.just(15.0),
    st.integers(0, 9),
)  # fmt: skip
DRAINS = st.builds(
    Drain, st.sampled_from(["d-1", "d-2"]), st.none() | DEVICES, st.just((OsdId(3),)),
    st.sampled_from(DrainState), st.sampled_from(Intent), st.just("controller"), st.text("xy", max_size=1),
    TIMES, TIMES, st.integers(0, 3),
)  # fmt: skip
LINES = st.builds(
    JournalEntry, st.sampled_from(["d-1", "d-2"]), TIMES, st.text("xy", max_size=1), st.text("xy", max_size=1)
)
OUTCOMES = st.builds(Outcome, DEVICES, TIMES, st.sampled_from(DriveFate), st.just("operator"))


class StoreAgrees(RuleBasedStateMachine):
    @initialize()
    def start(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.store = self._open()
        self.readings: dict[tuple[str, datetime], Reading] = {}
        self.outlooks: dict[tuple[str, datetime], Outlook] = {}
        self.latency: dict[tuple[int, datetime], LatencySummary] = {}
        self.drains: dict[str, Drain] = {}
        self.journal: list[JournalEntry] = []
        self.outcomes: list[Outcome] = []
        self.halt: str | None = None

    def _open(self) -> SqliteStore:
        return SqliteStore(Path(self.folder.name) / "store.db")

    @rule(readings=st.lists(READINGS, max_size=4))
    def add_readings(self, readings: list[Reading]) -> None:
        before = len(self.readings)
        for reading in readings:
            self.readings.setdefault((reading.device, reading.taken_at), reading)
        assert self.store.add_readings(readings) == len(self.readings) - before

    @rule(outlooks=st.lists(OUTLOOKS, max_size=4))
    def save_outlooks(self, outlooks: list[Outlook]) -> None:
        self.outlooks.update({(outlook.device, outlook.as_of): outlook for outlook in outlooks})
        self.store.save_outlooks(outlooks)

    @rule(summaries=st.lists(SUMMARIES, max_size=4))
    def add_latency(self, summaries: list[LatencySummary]) -> None:
        for summary in summaries:
            self.latency.setdefault((summary.osd, summary.window_start), summary)
        self.store.add_latency(LatencyWindows.from_summaries(summaries))

    @rule(drain=DRAINS)
    def save_drain(self, drain: Drain) -> None:
        stored = self.drains.get(drain.id)
        refused = stored is not None and stored != drain and stored.revision >= drain.revision
        try:
            self.store.save_drain(drain)
        except RevisionConflict:
            assert refused
            return
        assert not refused
        self.drains[drain.id] = drain

    @rule(lines=st.lists(LINES, max_size=3))
    def add_journal(self, lines: list[JournalEntry]) -> None:
        self.journal += [line for line in dict.fromkeys(lines) if line not in self.journal]
        self.store.add_journal(lines)

    @rule(outcome=OUTCOMES)
    def add_outcome(self, outcome: Outcome) -> None:
        if outcome not in self.outcomes:
            self.outcomes.append(outcome)
        self.store.add_outcome(outcome)

    @rule(why=st.none() | st.text("xy", max_size=2))
    def set_halt(self, why: str | None) -> None:
        self.halt = why
        self.store.set_halt(why)

    @rule()
    def restart(self) -> None:
        self.store.close()
        self.store = self._open()

    @rule(device=DEVICES, since=st.none() | TIMES)
    def history(self, device: DeviceId, since: datetime | None) -> None:
        def wanted(kept: dict[tuple[str, datetime], Any]) -> tuple[Any, ...]:
            return tuple(kept[of, at] for of, at in sorted(kept) if of == device and at >= (since or at))

        assert self.store.readings(device, since) == wanted(self.readings)
        assert self.store.outlooks(device, since) == wanted(self.outlooks)

    @rule(osd=st.integers(0, 2), since=TIMES)
    def latency_history(self, osd: int, since: datetime) -> None:
        wanted = [self.latency[of, at] for of, at in sorted(self.latency) if of == osd and at >= since]
        assert self.store.read_latency_summaries(osd, since) == tuple(wanted)

    @rule(drain=st.none() | st.sampled_from(["d-1", "d-2"]), limit=st.none() | st.integers(0, 5))
    def journal_tail(self, drain: str | None, limit: int | None) -> None:
        wanted = [line for line in self.journal if drain in (None, line.drain)]
        wanted = wanted if limit is None else wanted[max(len(wanted) - limit, 0) :]
        assert self.store.journal(drain, limit) == tuple(wanted)

    @invariant()
    def the_latest_of_every_device_is_the_end_of_its_history(self) -> None:
        assert self.store.latest_readings() == {of: self.readings[of, at] for of, at in sorted(self.readings)}
        assert self.store.latest_outlooks() == {of: self.outlooks[of, at] for of, at in sorted(self.outlooks)}

    @invariant()
    def drains_outcomes_and_halt_agree(self) -> None:
        newest_first = sorted(
            self.drains.values(), key=lambda drain: (drain.created_at, drain.id), reverse=True
        )
        assert self.store.drains() == tuple(newest_first)
        assert {id_: self.store.drain(id_) for id_ in self.drains} == self.drains
        assert self.store.outcomes() == tuple(sorted(self.outcomes, key=lambda outcome: outcome.at))
        assert self.store.halt_reason() == self.halt

    def teardown(self) -> None:
        if hasattr(self, "store"):
            self.store.close()
            self.folder.cleanup()


TestStoreAgrees: Any = pytest.mark.slow(StoreAgrees.TestCase)
TestStoreAgrees.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)
