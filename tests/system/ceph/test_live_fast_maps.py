"""Fast maps on a real cluster, by predrain's own user: in force while PGs move, and exactly as before whenever they do
not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from predrain.actions.cluster.cluster_view import PROPOSE_INTERVAL, ClusterView
from predrain.actions.cluster.config_key_store import ConfigKeys
from predrain.actions.cluster.signed_keys import SignedKeys
from predrain.actions.controller.controller import Controller
from predrain.actions.controller.fast_maps import RECORD
from predrain.actions.core.claimed_settings import FAST_MAPS
from predrain.data.drain import Drain, DrainState
from predrain.data.setting import YieldedValue
from predrain.data.store.sqlite_store import SqliteStore
from tests.deadlines import idle_seconds
from tests.system.ceph.conftest import Start
from tests.system.ceph.driven import POLICY, QUICK, Driven
from tests.system.ceph.minicluster import MiniCluster

S = DrainState
ROW = f"mon/{PROPOSE_INTERVAL}"
KEY = "a key for tests, of thirty-two letters or more"
FAST = replace(POLICY, fast_maps_seconds=0.25, in_flight_max=2)


@pytest.fixture(scope="module")
def busy(start: Start, release: str) -> MiniCluster:
    """Four OSDs with some data; moves take a few seconds each."""
    cluster = start(conf=QUICK, size_gib=2, scheduler="wpq" if release == "pacific" else "mclock_scheduler")
    cluster.pool("rep", pg_num=16, size=2)
    cluster.pool("predrain", pg_num=1, size=3)
    cluster.write("rep", objects=400, size=65536)
    cluster.command("balancer off", to="mgr")
    cluster.wait_clean()
    return cluster


@pytest.fixture
def driven(busy: MiniCluster, tmp_path: Path) -> Iterator[Driven]:
    """A controller that keeps its drains in the cluster, and osd.0 with its data."""
    busy.command("osd in", ids=["0"])
    busy.wait_clean()
    with Driven(busy, FAST) as driven:
        driven.store = SqliteStore(tmp_path / "store.db")
        keep = SignedKeys(ConfigKeys(driven.channel), KEY)
        for name in keep.names():
            keep.remove(name)
        driven.controller = Controller(driven.port, driven.store, FAST, keep=keep)
        yield driven
    busy.try_command("config rm", who="mon", name=PROPOSE_INTERVAL)


def rows(cluster: MiniCluster) -> list[tuple[str, str, str]]:
    """`config dump` of what was set, without what OSDs measure of themselves."""
    return sorted(
        (row["section"], row["name"], row["value"])
        for row in cluster.json("config dump")
        if not row["name"].startswith("osd_mclock_max_capacity_iops")
    )


def in_force(cluster: MiniCluster) -> float:
    """Return the propose interval that is in force in the monitor itself, in seconds."""
    return float(cluster.command("config show", who="mon.a", key=PROPOSE_INTERVAL).decode().strip())


def tick(driven: Driven, until: Callable[[], bool], seconds: float = 60) -> None:
    """Tick until a condition holds."""
    end = idle_seconds() + seconds
    while not until():
        assert idle_seconds() < end
        driven.controller.tick(datetime.now(UTC), {})


def fast(driven: Driven) -> Drain:
    """A drain whose PGs move, with fast maps in force."""
    drain = driven.asked("osd.0")
    tick(driven, lambda: driven.view().settings.get(ROW) == "0.250000")
    tick(driven, lambda: driven.controller.requests.get_drain(drain.id).progress.in_flight > 0)
    driven.cluster.wait(lambda: in_force(driven.cluster) == 0.25, 20, "the monitor obeys it")
    return drain


def ended(driven: Driven, drain: Drain) -> None:
    """The drain, cancelled to its end; a look more, that what was sent is seen."""
    if driven.controller.requests.get_drain(drain.id).state is not S.CANCELLED:
        driven.controller.requests.cancel(drain.id, "operator", datetime.now(UTC))
        driven.until(drain, S.CANCELLED)
    driven.controller.tick(datetime.now(UTC), {})


@pytest.mark.core
@pytest.mark.release
def test_it_is_in_force_while_pgs_move_and_everything_is_as_before_at_the_end(
    busy: MiniCluster, driven: Driven
) -> None:
    before = rows(busy)
    drain = fast(driven)
    seen = {driven.view().settings.get(ROW)}

    def note(view: ClusterView) -> None:
        if any(pg.up != pg.acting for pg in view.pgs.values()):
            seen.add(view.settings.get(ROW))

    driven.until(drain, S.VERIFIED, each=note)
    said = [line.decided for line in driven.store.journal(drain.id)]
    assert seen == {"0.250000"}, said
    assert rows(busy) == before
    busy.wait(lambda: in_force(busy) == 1.0, 20, "the monitor goes on as before")
    driven.controller.tick(datetime.now(UTC), {})
    assert driven.controller.keep is not None
    assert driven.controller.keep.read(RECORD) is None


@pytest.mark.release
def test_a_pause_gives_it_back_exactly(busy: MiniCluster, driven: Driven) -> None:
    busy.command("config set", who="mon", name=PROPOSE_INTERVAL, value="0.9")
    before = rows(busy)
    drain = fast(driven)
    assert rows(busy) != before
    driven.controller.requests.pause(drain.id, "operator", datetime.now(UTC))
    driven.controller.tick(datetime.now(UTC), {})
    assert rows(busy) == before
    ended(driven, drain)
    assert rows(busy) == before


def test_a_halt_gives_it_back_at_the_next_look(busy: MiniCluster, driven: Driven) -> None:
    before = rows(busy)
    drain = fast(driven)
    driven.controller.halt("maintenance")
    driven.controller.tick(datetime.now(UTC), {})
    assert rows(busy) == before
    driven.controller.halt(None)
    ended(driven, drain)
    assert rows(busy) == before


@pytest.mark.parametrize("theirs", ["0.5", None])
def test_an_operators_change_of_the_propose_interval_during_a_drain_stays(
    busy: MiniCluster, driven: Driven, theirs: str | None
) -> None:
    drain = fast(driven)
    if theirs is None:
        busy.command("config rm", who="mon", name=PROPOSE_INTERVAL)
    else:
        busy.command("config set", who="mon", name=PROPOSE_INTERVAL, value=theirs)
    set_by_them = rows(busy)
    tick(driven, lambda: YieldedValue(FAST_MAPS) in driven.controller.requests.get_drain(drain.id).ours)
    ended(driven, drain)
    assert rows(busy) == set_by_them


def test_the_next_controller_gives_back_what_a_killed_one_left(busy: MiniCluster, driven: Driven) -> None:
    before = rows(busy)
    drain = fast(driven)
    assert rows(busy) != before
    keep = SignedKeys(ConfigKeys(driven.channel), KEY)
    driven.controller = Controller(driven.port, driven.store, FAST, keep=keep)
    ended(driven, drain)
    assert rows(busy) == before
