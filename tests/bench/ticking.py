"""Figures of a controller's tick on the dumps of large clusters: read, survey, weigh every disk, guard,
decide, one drain under way.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial

from predrain.actions.cluster.cluster_port import Command, CommandResult
from predrain.actions.cluster.cluster_view import ClusterView
from predrain.actions.cluster.dumps.question_schedule import BRIEF_ABOVE
from predrain.actions.cluster.dumps.raw_answers import RawAnswers
from predrain.actions.cluster.dumps.view_reader import ClusterReader
from predrain.actions.controller.controller import Controller
from predrain.actions.core.drain_policy import Policy
from predrain.actions.simulator.cluster_spec import ClusterSpec, crush_tree
from predrain.actions.simulator.worlds import build_world
from predrain.actions.simulator.worlds.shapes import TB
from predrain.data.drain import DrainState
from predrain.data.ids import DeviceId
from predrain.data.outlook import Outlook, Status
from predrain.data.store.sqlite_store import SqliteStore
from tests.actions.made import ec_spec
from tests.bench.figure import Figure, Work
from tests.bench.generated_dumps import Dumped

TICKS, TICK_SECONDS = 12, 10.0
BEGIN = datetime(2026, 11, 21, 12, tzinfo=UTC)
_EVERY_PG_WHOLE = 1 << 30


@dataclass(slots=True)
class _Cluster:
    """The port over dumps; only what is done with the bytes counts as the tick's time."""

    dumped: Dumped
    reader: ClusterReader
    now: datetime
    answers: RawAnswers = field(default_factory=lambda: RawAnswers(BEGIN, {}))

    @property
    def read_bytes(self) -> int:
        """Bytes of the last look."""
        return sum(map(len, self.answers.raw.values()))

    def prepare(self) -> None:
        """Let the cluster print the answers to the next poll. The last answers are released first."""
        self.answers = RawAnswers(BEGIN, {})
        self.answers = self.dumped.answer(self.reader.list_due_commands(self.now), self.now)

    def view(self) -> ClusterView:
        return self.reader.view(self.answers)

    def apply(self, command: Command) -> CommandResult:
        self.reader.note_command(command, self.now)
        return self.dumped.apply(command)


def ticks(spec: Callable[[], ClusterSpec], brief_above: int) -> Work:
    """Measure the ticks of a controller that drains one OSD, after its first poll."""
    cluster = _Cluster(Dumped(spec(), BEGIN), ClusterReader(brief_above), BEGIN)
    controller = Controller(cluster, SqliteStore(":memory:"), Policy())
    cluster.prepare()
    controller.tick(cluster.now, {})
    outlooks = _outlooks(controller)
    drain = controller.requests.propose("osd.7", "bench", "a figure", cluster.now)
    controller.requests.approve(drain.id, "bench", cluster.now)
    work, sent, longest = Work(), 0, 0.0
    for _ in range(TICKS):
        cluster.now += timedelta(seconds=TICK_SECONDS)
        cluster.prepare()
        before = work.seconds
        with work.timed():
            sent += controller.tick(cluster.now, outlooks).commands
        longest = max(longest, work.seconds - before)
        work.amount += 1
    found = next(one for one in controller.store.drains() if one.id == drain.id)
    assert found.state is DrainState.DRAINING, (found.state, found.held_by)
    assert sent > 0
    work.note = f"{cluster.read_bytes / 1e6:.0f} MB a tick, the longest {longest:.2f} s, {sent} commands sent"
    return work


def _outlooks(controller: Controller) -> dict[DeviceId, Outlook]:
    """A forecast of every disk: one of 1,000 is likely to fail, 20 of 1,000 are warned of, the rest is healthy."""
    assert controller.view is not None
    found: dict[DeviceId, Outlook] = {}
    devices = (device for osd in controller.view.osds.values() if (device := osd.device) is not None)
    for number, device in enumerate(devices):
        month, status = (
            (0.4, Status.BAD) if number % 1000 == 500
            else (0.02, Status.WARNING) if number % 50 == 20
            else (0.001, Status.GOOD)
        )  # fmt: skip
        found[device] = Outlook(device, BEGIN, status, "model:bench", (), "", month / 4, month / 2, month)
    return found


def plain(spec: Callable[[], ClusterSpec], brief_above: int) -> Work:
    """`json.loads` of the bytes that such a tick reads, and nothing else."""
    cluster = _Cluster(Dumped(spec(), BEGIN), ClusterReader(brief_above), BEGIN)
    cluster.prepare()
    cluster.view()
    cluster.now += timedelta(seconds=TICK_SECONDS)
    cluster.prepare()
    work = Work()
    for _ in range(3):
        with work.timed():
            for raw in cluster.answers.raw.values():
                if raw != b"wpq":
                    json.loads(raw)
        work.amount += 1
    return work


def _figure(
    name: str, spec: Callable[[], ClusterSpec], brief_above: int, seconds: float, memory: float = 1.0
) -> Figure:
    return Figure(
        name, "ticks", partial(ticks, spec, brief_above), partial(plain, spec, brief_above),
        "json.loads of the same bytes", f"under {seconds:g} s a tick, {memory:g} GB",
        lambda work, gigabytes: work.quiet / work.amount < seconds and gigabytes < memory,
    )  # fmt: skip


def _echo() -> ClusterSpec:
    return build_world("echo", 1)


def _cisco() -> ClusterSpec:
    return build_world("cisco", 1)


def _largest() -> ClusterSpec:
    """10,000 OSDs of 6 TB, EC 8+3: CRUSH takes no root above a weight of 65,535."""
    spec = ec_spec(hosts=500, per_host=20, k=8, m=3, pg_num=262_144)
    osds = tuple(replace(osd, size_bytes=6 * TB) for osd in spec.osds)
    pool = replace(spec.pools[0], shard_bytes=10 << 30)
    return replace(spec, osds=osds, crush=crush_tree(osds), pools=(pool,))


FIGURES = (
    _figure("tick on dumps, 450 OSDs, 16,384 PGs", _cisco, BRIEF_ABOVE, 0.2),
    _figure("tick on dumps, 450 OSDs, every PG whole", _cisco, _EVERY_PG_WHOLE, 0.2),
    _figure("tick on dumps, 6,000 OSDs, 65,536 PGs", _echo, BRIEF_ABOVE, 1.0),
    _figure("tick on dumps, 6,000 OSDs, every PG whole", _echo, _EVERY_PG_WHOLE, 1.0),
    _figure("tick on dumps, 10,000 OSDs, 262,144 PGs", _largest, BRIEF_ABOVE, 4.0, 3.0),
)
