"""The demo: real lives in simulated slots, two worlds of one seed, and a table that adds up."""

from __future__ import annotations

import io
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from predrain.actions.core.drain_policy import Mode
from predrain.actions.simulator import ClientLoad
from predrain.data.drain import DrainState
from predrain.data.ids import DeviceId
from predrain.data.log.log_port import Topic
from predrain.data.log.memory_log import MemoryLog
from predrain.data.outcome import DriveFate, OutcomeRule
from predrain.data.reading import Smart
from predrain.data.store.sqlite_store import SqliteStore
from predrain.service.app.application import Application, ApplicationPorts
from predrain.service.config.settings import Settings
from predrain.service.demo import demo_world
from predrain.service.demo.demo_counts import DemoLedger, build_result_table
from predrain.service.demo.demo_fleet import DemoFleet, Drive, TooFewDrives, at_hour, read_histories
from predrain.service.demo.demo_run import FLEET, DaySummary, Demo, finish_run_counts, without_predrain
from predrain.service.demo.demo_terminal import ProgressBar
from predrain.service.demo.demo_world import DemoWorld
from predrain.service.drains.live_cluster import LiveClusterParts
from predrain.service.forecasting.known_fates import lives_of
from predrain.service.processes.up import forecaster_of
from tests.data.store import written
from tests.service.person_requests import propose_drain

SMALL = Demo(cluster="tiny", days=40, seconds_per_day=None, seed=6)
"""One disk fails on the fifteenth day."""


@pytest.fixture(scope="module")
def fleet() -> DemoFleet:
    known = read_histories((FLEET,))
    return DemoFleet(known, list(range(450)), 8, date(2018, 1, 22))  # type: ignore[arg-type]


def watched(demo: Demo) -> tuple[DemoWorld, Application]:
    world, first = demo.build_demo_world()
    ports = ApplicationPorts(
        MemoryLog(),
        SqliteStore(":memory:"),
        world.clock,
        forecaster_of(None),
        LiveClusterParts(world.cluster),
    )
    application = Application(ports, demo.build_policy(world.tick), Settings())
    world.warm_up(application, first)
    application.start()
    for _ in world.run_days(application):
        pass
    return world, application


def test_no_guard_refuses_a_proposal_for_the_hour_between_two_polls() -> None:
    demo = replace(SMALL, mode=Mode.PROPOSE, days=2)
    world, application = watched(demo)
    drain = propose_drain(application, "osd.0", "operator")
    later = world.clock.now() + demo_world.LOOK
    refused = [
        answer.code for answer in application.control.list_guard_answers(drain.id, later) if not answer.ok
    ]
    assert refused == []


def test_every_slot_has_a_drive_and_every_drive_that_dies_is_among_them(fleet: DemoFleet) -> None:
    assert len(fleet.drives) == 450
    assert all(drive is not None for drive in fleet.drives.values())
    assert len(fleet.dying_drives) >= 10
    assert len({drive.serial for drive in fleet.drives.values() if drive}) == 450


def test_the_drives_shown_were_left_out_of_training(fleet: DemoFleet) -> None:
    held_out = (FLEET.parent / "heldout_serials.txt").read_text().split()
    shown = {drive.serial for drive in fleet.drives.values() if drive} | {
        drive.serial for drive in fleet.spares
    }
    assert shown <= set(held_out)


def test_a_seated_drive_says_on_a_day_what_the_real_one_said(fleet: DemoFleet) -> None:
    import duckdb

    osd, drive = fleet.dying_drives[-1]
    day = date(2018, 3, 1)
    reading = fleet.reading(osd, "stor-01", at_hour(day, 7))  # type: ignore[arg-type]
    assert reading is not None
    assert isinstance(reading.seen, Smart)
    with duckdb.connect(":memory:") as connection:
        real = connection.execute(
            "SELECT smart_9_raw, smart_197_raw FROM read_parquet(?) "
            "WHERE serial_number = ? AND CAST(date AS DATE) = ?",
            [str(FLEET), drive.serial, day],
        ).fetchall()
    assert [(reading.seen.power_on_hours, reading.seen.counters.pending)] == real
    assert reading.taken_at == at_hour(day, 7)


def test_a_drive_shows_nothing_of_the_days_to_come(fleet: DemoFleet) -> None:
    osd, drive = fleet.dying_drives[0]
    early = fleet.reading(osd, "stor-01", at_hour(date(2018, 1, 22), 7))  # type: ignore[arg-type]
    late = fleet.reading(osd, "stor-01", at_hour((drive.death or date.max) + timedelta(days=30), 7))  # type: ignore[arg-type]
    assert early is not None
    assert late is not None
    assert isinstance(early.seen, Smart)
    assert isinstance(late.seen, Smart)
    assert (early.seen.power_on_hours or 0) < (late.seen.power_on_hours or 0)


def test_a_cluster_larger_than_the_fleet_is_refused_with_the_numbers() -> None:
    known = read_histories((FLEET,))
    with pytest.raises(TooFewDrives, match=r"9000 OSDs"):
        DemoFleet(known, list(range(9000)), 8, date(2018, 1, 22))  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def larger() -> DemoFleet:
    """Drives under 1,000 OSDs, of histories that hold half as many."""
    return DemoFleet(read_histories((FLEET,)), list(range(1000)), 8, date(2018, 1, 22))  # type: ignore[arg-type]


def test_a_cluster_somewhat_larger_shows_drives_again_under_serials_of_their_own(larger: DemoFleet) -> None:
    seated = [drive for drive in larger.drives.values() if drive is not None]
    assert larger.shown_most == 2
    assert len({drive.device for drive in seated}) == len(seated) == 1000
    assert len({drive.index for drive in seated}) >= 1000 / larger.shown_most


def test_a_larger_cluster_has_as_many_deaths_for_its_size_as_the_histories_have(
    fleet: DemoFleet, larger: DemoFleet
) -> None:
    once, twice = ([drive for _, drive in one.dying_drives] for one in (fleet, larger))
    assert Counter(drive.index for drive in twice) == dict.fromkeys((drive.index for drive in once), 2)
    deaths = {drive.index: drive.death or date.max for drive in once}
    for drive in twice:
        assert drive.death is not None
        assert date(2018, 1, 22) < drive.death
        assert deaths[drive.index] - drive.death in (timedelta(0), timedelta(days=1))
    real = {drive.index: fleet.is_silent_failure(drive) for drive in once}
    assert {drive.index: larger.is_silent_failure(drive) for drive in twice} == real


def test_a_drive_that_is_shown_again_shows_its_history_on_other_days(larger: DemoFleet) -> None:
    osd_of = {drive.serial: osd for osd, drive in larger.drives.items() if drive is not None}
    day, ahead = at_hour(date(2018, 2, 1), 7), set[int]()
    for osd, drive in larger.drives.items():
        if drive is None or not drive.days_ahead:
            continue
        original = osd_of[drive.serial.removesuffix("-2")]
        shown = larger.reading(osd, "stor-01", day)  # type: ignore[arg-type]
        recorded = larger.reading(original, "stor-01", day + timedelta(days=drive.days_ahead))  # type: ignore[arg-type]
        assert shown is not None
        assert recorded is not None
        assert isinstance(shown.seen, Smart)
        assert isinstance(recorded.seen, Smart)
        assert shown.seen.attributes == recorded.seen.attributes
        ahead.add(drive.days_ahead)
    assert ahead == {-1, 1}  # a living drive is shown a day late, one that dies a day early


def test_a_larger_cluster_has_spares_of_their_own_serials_for_as_many_disks_as_the_histories_have(
    larger: DemoFleet,
) -> None:
    seated = {drive.device for drive in larger.drives.values() if drive is not None}
    living = len({drive.index for drive in larger.drives.values() if drive is not None and not drive.death})
    spares = {drive.device for drive in larger.spares}
    assert len(spares) == len(larger.spares) >= living
    assert spares.isdisjoint(seated)


@pytest.mark.slow
def test_the_same_seed_gives_the_same_world_and_another_seed_another() -> None:
    assert without_predrain(SMALL) == without_predrain(SMALL)
    seats = [
        SMALL.build_demo_world()[0].fleet.drives,
        replace(SMALL, seed=9).build_demo_world()[0].fleet.drives,
    ]
    assert seats[0] != seats[1]


@pytest.mark.slow
def test_predrain_that_only_observes_changes_nothing_in_the_world() -> None:
    world, application = watched(replace(SMALL, mode=Mode.OBSERVE, days=20))
    alone = without_predrain(replace(SMALL, days=20))
    assert application.store.drains() == ()
    assert finish_run_counts(world).deaths == alone.deaths != []
    assert finish_run_counts(world).rebuilt_bytes == alone.rebuilt_bytes


@pytest.mark.slow
def test_every_death_is_counted_once_as_foretold_partly_moved_or_missed() -> None:
    world, _ = watched(SMALL)
    ledger = finish_run_counts(world)
    assert ledger.deaths
    missed = ledger.count_missed_deaths(silent=True) + ledger.count_missed_deaths(silent=False)
    assert len(ledger.lead_days) + len(ledger.partly_moved_shares) + missed == len(ledger.deaths)
    rows = {
        row.what.strip(): row.with_predrain for row in build_result_table(ledger, without_predrain(SMALL))
    }
    assert rows["disks that failed"] == str(len(ledger.deaths))


@pytest.mark.slow
def test_the_log_in_memory_holds_the_readings_of_a_week_only() -> None:
    """Otherwise the demo of a large cluster would end with a full log."""
    _, application = watched(replace(SMALL, mode=Mode.OBSERVE, days=20))
    disks, days = len(application.store.latest_readings()), application.settings.retention.log_days
    held = application.log.read_newest(Topic.READINGS, limit=100_000)
    assert disks * (days - 1) <= len(held) <= disks * (days + 1)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [6, 15], ids=["another disk takes the slot", "the slot stays empty"])
def test_that_a_disk_failed_is_learned_from_the_cluster_and_typed_by_nobody(seed: int) -> None:
    world, application = watched(replace(SMALL, seed=seed, mode=Mode.OBSERVE))
    (serial,) = finish_run_counts(world).deaths
    (failed,) = (one for one in application.store.outcomes() if one.fate is DriveFate.FAILED)
    assert (failed.device.rpartition("_")[2], failed.source) == (serial, OutcomeRule.OSD_LOST)
    lives = lives_of(application.store, date(2018, 1, 1))
    assert lives.serials[lives.died].tolist() == [failed.device]


def test_the_cost_row_adds_what_was_moved_to_ten_times_what_was_rebuilt() -> None:
    ledger = DemoLedger(rebuilt_bytes=2 * 2**40)
    row = next(row for row in build_result_table(ledger, DemoLedger()) if row.what.startswith("cost"))
    assert (row.what, row.with_predrain, row.without) == ("cost: TiB moved + 10 x TiB rebuilt", "20.0", "0.0")


def test_the_row_of_deaths_during_drains_has_the_median_of_what_was_moved() -> None:
    ledger = DemoLedger()
    for number, share in enumerate((0.1, 0.2, 0.99)):
        drive = Drive(number, DeviceId(f"D{number}"), f"S{number}", "ST0", date(2018, 3, 1))
        ledger.record_death(drive, datetime(2018, 3, 1, tzinfo=UTC), silent=False, share_moved=share)
    row = next(row for row in build_result_table(ledger, DemoLedger()) if "while draining" in row.what)
    assert row.with_predrain == "3 (median 20% moved)"


def list_poll_minutes(state: DrainState) -> list[float]:
    """The minutes between the first polls of a world in which one drain is in this state."""
    world, _ = SMALL.build_demo_world()
    polls = [world.clock.now()]
    drain = replace(written.DRAIN, state=state)
    application: Any = SimpleNamespace(
        store=SimpleNamespace(drains=lambda: (drain,)),
        step_controller=lambda: polls.append(world.clock.now()),
    )
    for _ in range(4):
        world._step(application, polls[0] + timedelta(minutes=50))
    return [(after - before).total_seconds() / 60 for before, after in pairwise(polls)]


@pytest.mark.slow
def test_the_demo_polls_every_ten_minutes_while_a_drain_moves_pgs() -> None:
    assert list_poll_minutes(DrainState.DRAINING) == [10, 10, 10, 10]


@pytest.mark.slow
def test_the_demo_of_a_large_cluster_polls_every_thirty_minutes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo_world, "LARGE", 1)
    assert list_poll_minutes(DrainState.DRAINING)[:2] == [30, 20]


@pytest.mark.slow
def test_an_approved_drain_that_waits_for_its_turn_does_not_make_the_demo_poll_sooner() -> None:
    assert list_poll_minutes(DrainState.APPROVED)[0] == 50


@pytest.mark.slow
def test_no_data_is_lost_and_every_pg_is_whole_when_the_demo_ends() -> None:
    world, _ = watched(SMALL)
    truth = world.cluster.truth()
    assert truth.lost == frozenset()
    assert min(pg.copies for pg in truth.pgs.values()) >= 2


def test_hours_felt_are_those_in_which_clients_lost_a_fiftieth_of_their_ops() -> None:
    ledger = DemoLedger()
    quiet = ClientLoad(3600, 100, 100, 3, 10, 20, 0)
    ledger.add_client_load(quiet)
    ledger.add_client_load(replace(quiet, served_iops=99))
    ledger.add_client_load(replace(quiet, served_iops=90, slow_ops=3))
    assert ledger.felt_seconds == 3600
    assert ledger.served / ledger.offered == pytest.approx(289 / 300)
    assert ledger.slow_ops == 3


@pytest.mark.parametrize("terminal", [False, True])
def test_the_demo_prints_a_line_for_every_ten_days_where_no_bar_can_move(*, terminal: bool) -> None:
    output = io.StringIO()
    progress = ProgressBar(Console(file=output, force_terminal=terminal, width=100))
    for day in range(1, 26):
        progress.day_over(DaySummary(day, 160, date(2018, 1, 21) + timedelta(days=day), 4, 1, 2))
    expected = "".join(f"day {day} of 160: 4 draining, 2 drained, 1 failed\n" for day in (10, 20))
    assert output.getvalue() == ("" if terminal else expected)


@pytest.mark.slow
def test_demo_once_prints_the_table_and_exits_with_zero() -> None:
    ran = subprocess.run(
        [str(Path(sys.executable).parent / "predrain"), "demo", "--once", "--cluster", "tiny", "--days", "10"],
        capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    assert "disks that failed" in ran.stdout
    assert "Traceback" not in ran.stderr


@pytest.mark.slow
def test_demo_of_an_unknown_cluster_names_those_there_are() -> None:
    ran = subprocess.run(
        [str(Path(sys.executable).parent / "predrain"), "demo", "--once", "--cluster", "atlantis"],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert ran.returncode == 1
    assert "cisco" in ran.stderr
