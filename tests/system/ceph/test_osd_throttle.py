"""Throttles on real OSDs: what each release and scheduler obeys, verified by reservations, and given back exactly."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache

import pytest

from predrain.actions.cluster.cluster_port import SetOption
from predrain.actions.cluster.cluster_view import ClusterView
from predrain.actions.cluster.dumps.setting_dumps import config_dump
from predrain.actions.core.claimed_settings import claim_settings, command_for
from predrain.actions.core.held_throttles import (
    BACKFILLS,
    OVERRIDE,
    PROFILE,
    SchedulerSupport,
    compute_required_settings,
    determine_scheduler_support,
    explain_unreliable_throttle,
    to_give_back,
)
from predrain.data.drain import Drain
from predrain.data.ids import OsdId
from predrain.data.setting import ConfigOption
from tests.actions.made import a_context, a_drain, calm_view
from tests.system.ceph.minicluster import MiniCluster

Rows = list[tuple[str, str, str, str]]

SCHEDULERS = ("wpq", "mclock_scheduler")
OSDS = (OsdId(0), OsdId(1))


@pytest.fixture(scope="module", params=SCHEDULERS)
def scheduled(request: pytest.FixtureRequest, release: str) -> Iterator[MiniCluster]:
    """Two OSDs that run the scheduler; the other scheduler's cluster is taken down first."""
    with MiniCluster(release, hosts=2, per_host=1, size_gib=1, scheduler=request.param) as running:
        yield running


def rows(cluster: MiniCluster) -> Rows:
    """`config dump` without what OSDs measure of themselves when they start."""
    dump = cluster.json("config dump")
    kept = (row for row in dump if not row["name"].startswith("osd_mclock_max_capacity_iops"))
    return sorted((row["section"], row.get("mask", ""), row["name"], row["value"]) for row in kept)


def in_force(cluster: MiniCluster) -> dict[OsdId, int]:
    """Backfills that each OSD's reservations allow at once."""
    answers = {osd: cluster.json("dump_recovery_reservations", to=f"osd.{osd}") for osd in OSDS}
    return {osd: answer["local_reservations"]["max_allowed"] for osd, answer in answers.items()}


def seen(cluster: MiniCluster) -> ClusterView:
    """A look at what throttles are about; the rest is a small cluster at rest."""
    settings = config_dump(json.dumps(cluster.json("config dump")).encode())
    return replace(
        calm_view(),
        release=cluster.release,
        scheduler=cluster.scheduler,
        settings=settings,
        backfills_in_force=in_force(cluster),
    )


def send(cluster: MiniCluster, option: SetOption) -> None:
    if option.value is None:
        cluster.command("config rm", who="osd", name=option.name)
    else:
        cluster.command("config set", who="osd", name=option.name, value=option.value)


def put(cluster: MiniCluster, options: Mapping[str, str]) -> None:
    """An operator's hand."""
    for name, value in options.items():
        send(cluster, SetOption(name, value))


def hold(cluster: MiniCluster, drain: Drain) -> Drain:
    """All that the drain wants held, in the order that the engine sends it, and booked before."""
    view = seen(cluster)
    keys = {
        key: must for key, (_, must) in compute_required_settings(view, drain, a_context(view, drain)).items()
    }
    options = [
        command for key, must in keys.items() if isinstance(command := command_for(key, must), SetOption)
    ]
    ready = claim_settings(drain, view, options)
    for option in options:
        send(cluster, option)
    return ready


def give_back(cluster: MiniCluster, drain: Drain) -> None:
    """Restore the settings as the next process does, which has nothing but the drain as it was stored."""
    view = seen(cluster)
    for key, was in to_give_back(view, drain, a_context(view, drain)).items():
        option = command_for(key, was)
        assert isinstance(option, SetOption)
        send(cluster, option)


def eventually(cluster: MiniCluster, backfills: int) -> None:
    say: Callable[[], bool] = lambda: in_force(cluster) == dict.fromkeys(OSDS, backfills)  # noqa: E731
    cluster.wait(say, 20, f"{backfills} backfills in force at every OSD")


@cache
def by_default(release: str, scheduler: str) -> int:
    return 1000 if (release, scheduler) == ("pacific", "mclock_scheduler") else 1


OPERATORS: Mapping[SchedulerSupport, Mapping[str, str]] = {
    SchedulerSupport.VALUES: {
        BACKFILLS: "6",
        "osd_recovery_max_active": "9",
        "osd_recovery_op_priority": "40",
    },
    SchedulerSupport.OVERRIDE: {
        OVERRIDE: "true",
        BACKFILLS: "6",
        "osd_recovery_max_active": "9",
        PROFILE: "high_recovery_ops",
    },
    SchedulerSupport.PROFILE: {PROFILE: "high_recovery_ops"},
}
"""The options that an operator in a hurry may have set, in the order in which they take effect."""


def operators(cluster: MiniCluster) -> Mapping[str, str]:
    return OPERATORS[determine_scheduler_support(seen(cluster))]


@pytest.fixture
def loose(scheduled: MiniCluster) -> Iterator[MiniCluster]:
    """The cluster as an operator in a hurry runs it."""
    put(scheduled, operators(scheduled))
    usual = by_default(scheduled.release, scheduled.scheduler)
    eventually(scheduled, int(operators(scheduled).get(BACKFILLS, usual)))
    yield scheduled
    clear(scheduled)


def clear(cluster: MiniCluster) -> None:
    for name in reversed(tuple(operators(cluster))):
        send(cluster, SetOption(name, None))
    eventually(cluster, by_default(cluster.release, cluster.scheduler))


@pytest.mark.release
def test_by_default_the_cap_is_in_force_and_nothing_is_set(scheduled: MiniCluster) -> None:
    before = rows(scheduled)
    eventually(scheduled, by_default(scheduled.release, scheduled.scheduler))
    drain = hold(scheduled, a_drain())
    assert not drain.ours
    assert rows(scheduled) == before


@pytest.mark.release
def test_the_backfill_reservations_decide_whether_the_throttle_is_reliable(scheduled: MiniCluster) -> None:
    why = explain_unreliable_throttle(seen(scheduled), OSDS)
    if by_default(scheduled.release, scheduled.scheduler) == 1:
        assert why is None
    else:
        assert why == "1000 backfills at once are in force at osd.0, cap 1"


@pytest.mark.release
def test_more_than_the_seeds_is_lowered_in_force_and_given_back_exactly(loose: MiniCluster) -> None:
    before = rows(loose)
    drain = hold(loose, a_drain())
    assert drain.ours
    eventually(loose, by_default(loose.release, loose.scheduler))
    held = {name: value for section, _, name, value in rows(loose) if section == "osd"}
    assert held == {
        **operators(loose),
        **{key.name: value for key, value in drain.ours.items() if isinstance(key, ConfigOption)},
    }
    give_back(loose, drain)
    assert rows(loose) == before
    usual = by_default(loose.release, loose.scheduler)
    eventually(loose, int(operators(loose).get(BACKFILLS, usual)))


def test_an_operators_value_set_meanwhile_is_not_given_back_over_their_head(loose: MiniCluster) -> None:
    drain = hold(loose, a_drain())
    option = next(key for key in drain.ours if isinstance(key, ConfigOption))
    name, known = option.name, (drain.ours[option], drain.saved[option])
    values = ("high_client_ops", "balanced", "high_recovery_ops") if name == PROFILE else ("2",)
    theirs = next(value for value in values if value not in known)
    put(loose, {name: theirs})
    give_back(loose, drain)
    found = {name: value for section, _, name, value in rows(loose) if section == "osd"}
    assert found == {**operators(loose), name: theirs}


def test_values_are_ignored_where_the_table_says_so(scheduled: MiniCluster) -> None:
    """Values that are set before the override stay ignored: were it otherwise, the table would miss a way."""
    if determine_scheduler_support(seen(scheduled)) is SchedulerSupport.VALUES:
        pytest.skip("wpq obeys values, which another test shows")
    before = rows(scheduled)
    usual = by_default(scheduled.release, scheduled.scheduler)
    put(scheduled, {BACKFILLS: "6"})
    try:
        with pytest.raises(TimeoutError):
            cluster_obeys(scheduled, 6)
        assert in_force(scheduled) == dict.fromkeys(OSDS, usual)
    finally:
        send(scheduled, SetOption(BACKFILLS, None))
    assert rows(scheduled) == before


def cluster_obeys(cluster: MiniCluster, backfills: int) -> None:
    cluster.wait(lambda: in_force(cluster)[OSDS[0]] == backfills, 6, f"{backfills} backfills")
