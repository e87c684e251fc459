"""A drain on a real cluster whose operator runs recovery fast: lowered in force, given back in each case, exactly."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from predrain.actions.cluster.latency_observer import LatencyObserver
from predrain.actions.controller.controller import Controller
from predrain.actions.core.held_throttles import BACKFILLS, OVERRIDE
from predrain.actions.core.in_flight import list_watched_osds
from predrain.data.drain import Drain, DrainState
from predrain.data.store.sqlite_store import SqliteStore
from tests.system.ceph.conftest import Start
from tests.system.ceph.driven import POLICY, QUICK, Driven
from tests.system.ceph.minicluster import MiniCluster
from tests.system.ceph.runner import Orders, as_given

S = DrainState
ROOT = Path(__file__).resolve().parents[3]
SHORT_LOGS = "osd_min_pg_log_entries = 4\nosd_max_pg_log_entries = 8\nosd_pg_log_trim_min = 1\n"


@pytest.fixture(scope="module")
def fast(start: Start, release: str) -> MiniCluster:
    """Four OSDs that run six backfills at once, by the release's own scheduler."""
    scheduler = "wpq" if release == "pacific" else "mclock_scheduler"
    cluster = start(scheduler=scheduler, conf=QUICK + SHORT_LOGS, size_gib=2)
    cluster.pool("rep", pg_num=8, size=2)
    cluster.pool("predrain", pg_num=8, size=3)
    cluster.write("rep", objects=100, size=65536)
    cluster.command("balancer off", to="mgr")
    if scheduler == "mclock_scheduler":
        cluster.command("config set", who="osd", name=OVERRIDE, value="true")
    cluster.command("config set", who="osd", name=BACKFILLS, value="6")
    cluster.wait(lambda: in_force(cluster) == {6}, 20, "6 backfills in force")
    cluster.wait_clean()
    return cluster


@pytest.fixture
def driven(fast: MiniCluster, tmp_path: Path) -> Iterator[Driven]:
    """A controller, and osd.0 with its data, whichever test drained it before."""
    fast.command("osd in", ids=["0"])
    fast.wait_clean()
    with Driven(fast) as driven:
        attach(driven, tmp_path / "store.db")
        yield driven


def attach(driven: Driven, store: Path) -> None:
    """Give the test a controller that observes its OSDs, on a store that outlives the controller."""
    driven.store = SqliteStore(store)
    driven.controller = Controller(driven.port, driven.store, POLICY)
    driven.port.live.senses = LatencyObserver(
        driven.channel, "predrain", lambda: list_watched_osds(driven.store.drains())
    )


def in_force(cluster: MiniCluster) -> set[int]:
    """Return the numbers of backfills that the OSDs allow at once."""
    answers = [cluster.json("dump_recovery_reservations", to=f"osd.{osd}") for osd in cluster.osds()]
    return {answer["local_reservations"]["max_allowed"] for answer in answers}


def rows(cluster: MiniCluster) -> list[tuple[str, ...]]:
    """`config dump`, without what OSDs measure of themselves when they start."""
    return sorted(
        (row["section"], row.get("mask", ""), row["name"], row["value"])
        for row in cluster.json("config dump")
        if not row["name"].startswith("osd_mclock_max_capacity_iops")
    )


def ticked(driven: Driven) -> bool:
    return driven.controller.tick(datetime.now(UTC), {}).view is not None


def said(driven: Driven, drain: Drain) -> str:
    return "\n".join(f"{line.decided} {line.answered}" for line in driven.store.journal(drain.id))


@pytest.mark.release
def test_a_drain_lowers_what_is_in_force_and_a_cancel_gives_it_back(
    fast: MiniCluster, driven: Driven
) -> None:
    before = rows(fast)
    drain = driven.asked("osd.0")
    driven.until(drain, S.DRAINING)
    fast.wait(lambda: in_force(fast) == {1}, 10, "1 backfill in force")
    driven.controller.requests.cancel(drain.id, "operator", datetime.now(UTC))
    driven.until(drain, S.CANCELLED)
    assert rows(fast) == before
    fast.wait(lambda: in_force(fast) == {6}, 10, "6 backfills in force again")


def test_degradation_that_is_not_ours_gets_the_operators_speed_at_once(
    fast: MiniCluster, driven: Driven
) -> None:
    before = rows(fast)
    drain = driven.asked("osd.0")
    driven.until(drain, S.DRAINING)
    fast.kill("osd.3")
    fast.command("osd down", ids=["3"])
    driven.until(drain, S.HOLDING)
    driven.controller.tick(datetime.now(UTC), {})
    assert rows(fast) == before
    assert "back at once: degradation that is not ours" in said(driven, drain)
    fast.spawn("osd.3")
    fast.wait(lambda: fast.osds() == [0, 1, 2, 3], 60, "osd.3 back")
    fast.wait_clean()
    driven.until(drain, S.DRAINING)
    fast.wait(
        lambda: ticked(driven) and in_force(fast) == {1},
        60,
        "1 backfill in force again while the drain goes on",
    )
    driven.controller.requests.cancel(drain.id, "operator", datetime.now(UTC))
    driven.until(drain, S.CANCELLED)
    assert rows(fast) == before


def test_the_next_process_gives_back_what_a_killed_one_lowered(
    fast: MiniCluster, driven: Driven, tmp_path: Path
) -> None:
    before = rows(fast)
    drain = driven.asked("osd.0")
    orders = Orders(as_given(fast.connection()), str(tmp_path / "store.db"))
    given = json.dumps({name: getattr(orders, name) for name in ("connection", "store", "owner")})
    runner = [sys.executable, "-m", "tests.system.ceph.runner", given]
    with subprocess.Popen(runner, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if (told := json.loads(line))["what"] == "sent" and "SetOption" in told["command"]:
                break
        process.send_signal(signal.SIGKILL)
    assert rows(fast) != before
    attach(driven, tmp_path / "store.db")
    driven.until(drain, S.VERIFIED)
    assert rows(fast) == before
