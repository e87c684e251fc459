"""Questions to OSDs beside the view, with a channel that answers wrongly, late or not at all."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

import pytest

from predrain.actions.cluster.channel import Argument, DaemonReply
from predrain.actions.cluster.cluster_port import ClusterUnreachable
from predrain.actions.cluster.cluster_view import ClusterView, Pg
from predrain.actions.cluster.latency_observer import (
    LatencyObserver,
    backfills_allowed,
    find_moving_osds,
    from_perf,
    from_summary,
)
from predrain.actions.cluster.latency_probe import PROBES, Probes
from predrain.actions.cluster.osd_latency import LatencySource
from predrain.actions.crush.pool import Pool
from predrain.data.drain import DrainState
from predrain.data.ids import HostName, OsdId, PgId
from predrain.data.latency_windows import LatencySummary
from tests.actions.made import calm_view, changed_pg, wide_spec
from tests.actions.run import Run

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
POOL = "predrain"
ALL = tuple(OsdId(osd) for osd in range(12))


def pooled(states: str = "active clean") -> ClusterView:
    """Return the small cluster with the probe's pool: osd.n is the primary of PG n."""
    pool = Pool(99, POOL, size=3, min_size=2, pg_num=12, pg_num_target=12, rule=0, erasure=False)
    pgs = {
        id_: Pg(id_, 99, frozenset(states.split()), acting, acting, 4096)
        for seed in range(12)
        for id_, acting in [(PgId(f"99.{seed:x}"), (seed, (seed + 3) % 12, (seed + 6) % 12))]
    }
    view = calm_view()
    return replace(view, pools={**view.pools, 99: pool}, pgs={**view.pgs, **pgs})


@dataclass
class OsdsInMemory:
    """A channel to OSDs that give the answers which a test sets. `trouble` is called before each answer."""

    trouble: Callable[[str], None] = lambda _: None
    reservations: Callable[[str], DaemonReply] = lambda _: DaemonReply(
        0, b'{"local_reservations": {"max_allowed": 1, "queues": []}}', ""
    )
    perf: Mapping[int, int] = field(default_factory=dict)
    took: Callable[[str], float] = lambda _: 0.004
    asked: list[str] = field(default_factory=list)

    def ask(
        self,
        to: str,
        prefix: str,
        arguments: Mapping[str, Argument] | None = None,
        *,
        given: bytes = b"",
        seconds: float | None = None,
    ) -> DaemonReply:
        assert (arguments, given) == ({"format": "json"}, b"")
        self.asked.append(to)
        self.trouble(to)
        if prefix == "osd perf":
            rows = [
                {"id": osd, "perf_stats": {"commit_latency_ms": ms, "apply_latency_ms": 0}}
                for osd, ms in self.perf.items()
            ]
            return DaemonReply(0, json.dumps({"osdstats": {"osd_perf_infos": rows}}).encode(), "")
        assert prefix == "dump_recovery_reservations"
        assert seconds is not None
        return self.reservations(to)

    def probe(self, pool: str, name: str, size: int) -> float:
        assert (pool, size) == (POOL, 4096)
        self.asked.append(name)
        self.trouble(name)
        return self.took(name)


def senses(channel: OsdsInMemory, at_work: tuple[OsdId, ...] = ALL) -> LatencyObserver:
    return LatencyObserver(channel, POOL, lambda: at_work)  # type: ignore[arg-type]


def test_a_look_probes_a_few_osds_those_that_move_data_first_and_the_rest_in_turn() -> None:
    probes = Probes(OsdsInMemory(), POOL)  # type: ignore[arg-type]
    looks = [{sample.osd for sample in probes.probe_osds(pooled(), ALL[:3], ALL[:9], NOW)} for _ in range(4)]
    for osds in looks:
        assert len(osds) == PROBES
        assert osds >= set(ALL[:3])
        assert len(osds & set(ALL[9:])) == 1
    assert set().union(*looks) == set(ALL)


def test_many_osds_that_move_data_leave_a_probe_for_the_others() -> None:
    probes = Probes(OsdsInMemory(), POOL)  # type: ignore[arg-type]
    looks = [
        {sample.osd for sample in probes.probe_osds(pooled(), ALL[:10], ALL[:11], NOW)} for _ in range(3)
    ]
    assert all({10, 11} <= osds for osds in looks)
    assert set().union(*looks) == set(ALL)


def test_an_osd_that_did_not_answer_a_probe_is_left_alone_for_ten_minutes() -> None:
    def silent(name: str) -> None:
        raise ClusterUnreachable(name)

    channel = OsdsInMemory(trouble=silent)
    probes = Probes(channel, POOL)  # type: ignore[arg-type]
    for look in range(3):
        assert not probes.probe_osds(pooled(), (), ALL, NOW + timedelta(seconds=10 * look))
    assert len(set(channel.asked)) == len(channel.asked) == 3
    channel.trouble = lambda _: None
    found = [
        sample
        for _ in range(3)
        for sample in probes.probe_osds(pooled(), (), ALL, NOW + timedelta(minutes=5))
    ]
    assert {sample.osd for sample in found} == set(ALL[3:])
    again = probes.probe_osds(pooled(), (), ALL, NOW + timedelta(minutes=11))
    assert {sample.osd for sample in again} >= set(ALL[:3])


def test_slow_probes_leave_the_rest_to_the_next_look() -> None:
    channel = OsdsInMemory(took=lambda _: 1.2)
    samples = Probes(channel, POOL).probe_osds(pooled(), (), ALL, NOW)  # type: ignore[arg-type]
    assert [sample.ms for sample in samples] == [1200.0]


def test_an_osd_whose_pg_serves_nobody_is_not_probed() -> None:
    channel = OsdsInMemory()
    assert not Probes(channel, POOL).probe_osds(pooled("peering"), (), ALL, NOW)  # type: ignore[arg-type]
    assert not Probes(channel, "another").probe_osds(pooled(), (), ALL, NOW)  # type: ignore[arg-type]
    assert channel.asked == []


def test_reservations_of_the_osds_at_work_are_read() -> None:
    channel = OsdsInMemory()
    seen = senses(channel, (OsdId(2), OsdId(5))).add_to_view(pooled(), NOW)
    assert dict(seen.backfills_in_force) == {2: 1, 5: 1}


def test_a_key_that_may_not_is_refused_once_in_ten_minutes() -> None:
    channel = OsdsInMemory(reservations=lambda _: DaemonReply(-13, b"", "EACCES"))
    asks = senses(channel)
    for look in range(3):
        assert not asks.add_to_view(pooled(), NOW + timedelta(seconds=10 * look)).backfills_in_force
    assert [to for to in channel.asked if to.startswith("osd.")] == ["osd.0"]
    asks.add_to_view(pooled(), NOW + timedelta(minutes=10))
    assert [to for to in channel.asked if to.startswith("osd.")] == ["osd.0", "osd.0"]


def test_an_osd_that_does_not_answer_is_unknown_and_does_not_stop_the_look() -> None:
    def silent(to: str) -> None:
        if to == "osd.1":
            raise ClusterUnreachable("no answer")

    asks = senses(OsdsInMemory(trouble=silent), ALL[:4])
    seen = asks.add_to_view(pooled(), NOW)
    assert dict(seen.backfills_in_force) == {0: 1}
    assert seen.slowest_ms
    later = asks.add_to_view(pooled(), NOW + timedelta(seconds=10))
    assert OsdId(1) not in later.backfills_in_force


def test_reservations_of_an_earlier_look_are_not_in_force_when_the_osd_times_out() -> None:
    channel = OsdsInMemory()
    asks = senses(channel, ALL[:2])
    asks.add_to_view(pooled(), NOW)
    channel.reservations = lambda _: DaemonReply(-110, b"", "timed out")
    assert not asks.add_to_view(pooled(), NOW + timedelta(seconds=10)).backfills_in_force


def test_answers_that_make_no_sense_are_unknown() -> None:
    for raw in (b"", b"{}", b'{"local_reservations": {"max_allowed": "many"}}', b"\xff" * 9, b"[" * 5000):
        assert backfills_allowed(raw) is None
    channel = OsdsInMemory(reservations=lambda _: DaemonReply(0, b"inf", ""))
    assert not senses(channel).add_to_view(pooled(), NOW).backfills_in_force


def test_osd_perf_of_0_is_no_data() -> None:
    raw = (
        b'{"osdstats": {"osd_perf_infos": ['
        b'{"id": 0, "perf_stats": {"commit_latency_ms": 0, "apply_latency_ms": 0, "commit_latency_ns": 0}},'
        b'{"id": 1, "perf_stats": {"commit_latency_ms": 7, "apply_latency_ms": 9}}]}}'
    )
    assert [(sample.osd, sample.ms) for sample in from_perf(raw, NOW)] == [(1, 9.0)]


def a_summary(at: datetime, ms: float | None, operations: int = 500) -> LatencySummary:
    return LatencySummary(OsdId(0), HostName("a"), at, 15.0, operations, read_ms_p99=ms, write_ms_p99=2.0)


def test_a_summary_of_few_operations_says_nothing() -> None:
    assert from_summary(a_summary(NOW, 9.0, operations=3)) == ()
    read, write = from_summary(a_summary(NOW, 9.0))
    assert (read.source, read.ms, read.at) == (LatencySource.READ, 9.0, NOW + timedelta(seconds=15))
    assert (write.source, write.ms) == (LatencySource.WRITE, 2.0)
    assert [sample.source for sample in from_summary(a_summary(NOW, None))] == [LatencySource.WRITE]


def test_latency_that_hosts_counted_gives_a_usual_hour_at_the_first_look() -> None:
    counted = [a_summary(NOW - timedelta(seconds=15 * n), 30.0 if n < 5 else 10.0) for n in range(240, 0, -1)]
    asks = LatencyObserver(
        OsdsInMemory(perf={0: 10, 1: 10}),  # type: ignore[arg-type]
        POOL,
        lambda: [OsdId(0)],
        lambda _, since: [one for one in counted if one.window_start >= since],
    )
    assert dict(asks.add_to_view(pooled(), NOW).latency_ratio) == {0: 3.0}


def test_windows_of_a_minute_are_a_signal_though_they_come_late() -> None:
    counted = [
        replace(a_summary(NOW - timedelta(seconds=60 * n), 30.0 if n < 5 else 10.0), window_seconds=60.0)
        for n in range(60, 0, -1)
    ]
    asks = LatencyObserver(
        OsdsInMemory(),  # type: ignore[arg-type]
        POOL,
        lambda: [OsdId(0)],
        lambda _, since: [one for one in counted if one.window_start >= since],
    )
    assert dict(asks.add_to_view(pooled(), NOW + timedelta(seconds=45)).latency_ratio)[OsdId(0)] == 3.0
    late = replace(a_summary(NOW, 10.0), window_seconds=60.0)
    asks.add_to_view(pooled(), NOW + timedelta(seconds=100))
    counted += [late, replace(late, window_start=NOW + timedelta(seconds=60))]
    ratio = asks.add_to_view(pooled(), NOW + timedelta(seconds=150)).latency_ratio
    assert dict(ratio)[OsdId(0)] == 1.0


def test_latency_that_a_host_counted_while_its_osd_recovered_does_not_become_usual() -> None:
    rested = [a_summary(NOW - timedelta(seconds=15 * n), 10.0) for n in range(240, 120, -1)]
    moved = [
        replace(a_summary(NOW - timedelta(seconds=15 * n), 30.0), recovering=True) for n in range(120, 0, -1)
    ]
    asks = LatencyObserver(OsdsInMemory(), POOL, lambda: [OsdId(0)], lambda *_: [*rested, *moved])  # type: ignore[arg-type]
    assert dict(asks.add_to_view(pooled(), NOW).latency_ratio) == {0: 3.0}


def told_by_host(*backfills: tuple[datetime, int | None], channel: OsdsInMemory) -> LatencyObserver:
    """Build an observer of osd.0 whose host reported these limits of backfills at these times."""
    told = [replace(a_summary(at - timedelta(seconds=15), 9.0), backfills_max=n) for at, n in backfills]
    return LatencyObserver(channel, POOL, lambda: [OsdId(0)], lambda *_: told)  # type: ignore[arg-type]


def test_reservations_that_a_host_told_of_late_are_in_force_and_the_osd_is_not_asked() -> None:
    channel = OsdsInMemory(reservations=lambda _: DaemonReply(-13, b"", "EACCES"))
    asks = told_by_host((NOW - timedelta(seconds=90), 6), (NOW - timedelta(seconds=30), 1), channel=channel)
    assert dict(asks.add_to_view(pooled(), NOW).backfills_in_force) == {0: 1}
    assert not [to for to in channel.asked if to.startswith("osd.")]
    assert dict(asks.add_to_view(pooled(), NOW + timedelta(seconds=90)).backfills_in_force) == {0: 1}


def test_an_osd_is_asked_for_reservations_that_its_host_reported_more_than_two_minutes_ago() -> None:
    channel = OsdsInMemory(reservations=lambda _: DaemonReply(-13, b"", "EACCES"))
    asks = told_by_host((NOW - timedelta(seconds=121), 1), channel=channel)
    assert not asks.add_to_view(pooled(), NOW).backfills_in_force
    assert "osd.0" in channel.asked
    channel.reservations = OsdsInMemory().reservations
    asks = told_by_host((NOW - timedelta(seconds=121), 6), channel=channel)
    assert dict(asks.add_to_view(pooled(), NOW).backfills_in_force) == {0: 1}


def test_an_osd_that_said_otherwise_since_its_host_told_wins() -> None:
    told: list[LatencySummary] = []
    channel = OsdsInMemory()
    asks = LatencyObserver(channel, POOL, lambda: [OsdId(0)], lambda *_: told)  # type: ignore[arg-type]
    assert dict(asks.add_to_view(pooled(), NOW).backfills_in_force) == {0: 1}
    told.append(replace(a_summary(NOW - timedelta(seconds=60), 9.0), backfills_max=6))
    channel.reservations = lambda _: DaemonReply(0, b'{"local_reservations": {"max_allowed": 2}}', "")
    assert dict(asks.add_to_view(pooled(), NOW + timedelta(seconds=10)).backfills_in_force) == {0: 2}
    told.append(replace(a_summary(NOW, 9.0), backfills_max=6))
    assert dict(asks.add_to_view(pooled(), NOW + timedelta(seconds=20)).backfills_in_force) == {0: 6}


def test_a_host_that_does_not_know_or_speaks_of_the_future_leaves_reservations_unverified() -> None:
    channel = OsdsInMemory(reservations=lambda _: DaemonReply(-13, b"", "EACCES"))
    asks = told_by_host((NOW, None), (NOW + timedelta(seconds=60), 1), channel=channel)
    assert not asks.add_to_view(pooled(), NOW).backfills_in_force


def test_osds_that_give_or_take_a_pg_are_busy() -> None:
    view = calm_view()
    assert find_moving_osds(view) == frozenset()
    pg = view.pgs[PgId("1.0")]
    other = next(osd for osd in ALL if osd not in pg.up)
    moving = changed_pg(view, pg.id, up=(other, *pg.up[1:]))
    assert find_moving_osds(moving) == {other, *pg.up}


@pytest.mark.slow
def test_a_drain_whose_signal_goes_moves_one_pg_at_a_time_from_then_on() -> None:
    with Run(wide_spec(pg_num=64)) as run:
        drain = run.drain("osd.0")
        while run.known(drain).progress.in_flight < 3:
            run.tick()
        look = run.cluster.view
        run.cluster.view = lambda: replace(look(), latency_ratio={})  # type: ignore[method-assign]
        before = run.known(drain).progress.in_flight
        while (found := run.known(drain)).state is not DrainState.VERIFIED:
            run.tick()
            now = run.known(drain).progress.in_flight
            assert now <= max(1, before)
            before = now
        assert found.progress.budget == 1


def test_a_hosts_counts_for_the_osds_of_another_host_are_no_signal() -> None:
    view = pooled()
    machines = {id_: replace(osd, machine=HostName(f"stor-{id_}")) for id_, osd in view.osds.items()}
    view = replace(view, osds=machines)
    times = [NOW - timedelta(seconds=15 * n) for n in range(240, 0, -1)]
    own = [replace(a_summary(at, 10.0), host=HostName("stor-0")) for at in times]
    forged = [replace(a_summary(at, 90.0), host=HostName("stor-1"), backfills_max=9) for at in times[-5:]]
    channel = OsdsInMemory()
    honest = LatencyObserver(channel, "predrain", lambda: ALL, lambda osd, _: own if osd == 0 else ())
    fooled = LatencyObserver(
        channel, "predrain", lambda: ALL, lambda osd, _: [*own, *forged] if osd == 0 else ()
    )
    assert fooled.add_to_view(view, NOW).latency_ratio == honest.add_to_view(view, NOW).latency_ratio
    assert (
        fooled.add_to_view(view, NOW).backfills_in_force == honest.add_to_view(view, NOW).backfills_in_force
    )
