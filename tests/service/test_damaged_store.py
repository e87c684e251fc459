"""Damage in the store's file: whole pages are refused at the start and by the doctor, single rows are left out.

A page of the file is really overwritten, at places that a seed chooses. The damage leads either to a sentence or to no
change at all. It never leads to an unexpected error, or to a start that has forgotten the stored data.
"""

from __future__ import annotations

import random
import shutil
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from predrain.actions.core.drain_policy import Policy
from predrain.data.log.log_port import Record, Topic
from predrain.data.log.sqlite_log import SqliteLog
from predrain.data.refusal import Refusal
from predrain.data.store.sqlite_store import SqliteStore
from predrain.data.store.store_faults import StoreUnreadable
from predrain.data.store.store_port import Store
from predrain.service.app.application import Application, ApplicationPorts
from predrain.service.config.settings import ServiceTable, Settings
from predrain.service.config.state_directory import StateDir
from predrain.service.doctor.examination import run_doctor_checks
from predrain.service.drains.live_cluster import LiveClusterParts
from predrain.service.forecasting.bundle_choice import BundledForecaster
from predrain.service.processes.state_opening import open_storage
from predrain.service.storage import page_check
from tests.data.store import written
from tests.service.conftest import NOON, SetClock, smart_reading
from tests.service.test_drains import seated

DISKS = 95
PAGE = 4096
SEEDS = range(30)


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> StateDir:
    """A state directory that a service has worked in."""
    state = StateDir(tmp_path_factory.mktemp("filled") / "state").ensure_exists()
    settings = Settings(service=ServiceTable(port=0, state=state.path))
    with open_storage(settings, state, SetClock(), "predrain", marks=True) as (log, store):
        log.append(Topic.READINGS, [Record("k", b"waiting")])
        written.fill(store)
        store.add_readings(smart_reading(f"{n % DISKS}", NOON - timedelta(hours=n)) for n in range(4 * DISKS))
        store.write_notes("tokens", {"one": b"hash"})
    return state


@pytest.fixture
def state(filled: StateDir, tmp_path: Path) -> StateDir:
    """The same, for one test."""
    return StateDir(shutil.copytree(filled.path, tmp_path / "state"))


def settings_of(state: StateDir) -> Settings:
    return Settings(service=ServiceTable(port=0, state=state.path))


def told(store: Store) -> list[Any]:
    """Return the store's answers from all that it can check: documents have checksums, lines have digests."""
    return [
        store.latest_readings(),
        [store.readings(one) for one in (written.DEVICE, "ST4000DM000_7")],  # type: ignore[arg-type]
        store.latest_outlooks(),
        store.drains(),
        store.journal(),
        store.outcomes(),
    ]


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_a_page_overwritten_anywhere_is_told_or_changes_nothing(
    state: StateDir, whole: list[Any], seed: int, forecaster: BundledForecaster
) -> None:
    overwrite(state.store, random.Random(seed))
    found: list[Refusal] = []

    def trying(step: Callable[[], Any]) -> Any:
        try:
            return step()
        except Refusal as refusal:
            found.append(refusal)
            return None

    def serve() -> None:
        settings, clock = settings_of(state), SetClock()
        with open_storage(settings, state, clock, "predrain", marks=True) as (log, store):
            answers = trying(lambda: told(store))
            if answers is not None and store.describe_damage() is None:
                assert answers == whole
            application = Application(
                ApplicationPorts(log, store, clock, lambda: forecaster), Policy(), settings
            )
            for step in (
                application.start,
                application.step_worker,
                application.step_latencies,
                application.get_snapshot,
                application.update_forecast_health,
                application.apply_retention,
            ):
                trying(step)
            trying(lambda: application.ingest([smart_reading("7")]))
            application.stop()

    trying(serve)
    for refusal in found:
        assert str(refusal).count("\n") == 0
        assert len(str(refusal)) > 20


@pytest.fixture(scope="module")
def whole(filled: StateDir) -> list[Any]:
    """Return the answers of an undamaged store."""
    with closing(SqliteStore(filled.store)) as store:
        return told(store)


def overwrite(file: Path, chance: random.Random) -> None:
    """One page, in one of the ways in which disks and memory fail."""
    raw = bytearray(file.read_bytes())
    at = chance.randrange(len(raw) // PAGE) * PAGE
    how = chance.choice(("bit", "bytes", "zeros", "other page", "noise"))
    if how == "bit":
        raw[at + chance.randrange(PAGE)] ^= 1 << chance.randrange(8)
    elif how == "bytes":
        begin = at + chance.randrange(PAGE - 64)
        raw[begin : begin + 64] = chance.randbytes(64)
    elif how == "zeros":
        raw[at : at + PAGE] = bytes(PAGE)
    elif how == "other page":
        other = chance.randrange(len(raw) // PAGE) * PAGE
        raw[at : at + PAGE] = raw[other : other + PAGE]
    else:
        raw[at : at + PAGE] = chance.randbytes(PAGE)
    file.write_bytes(raw)


def damage_a_leaf(state: StateDir) -> None:
    """Overwrite a page that a start does not touch: one of the readings' history."""
    with closing(sqlite3.connect(state.store)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        (page,) = connection.execute(
            "SELECT max(pageno) FROM dbstat WHERE name = 'readings' AND pagetype = 'leaf'"
        ).fetchone()
    raw = bytearray(state.store.read_bytes())
    raw[(page - 1) * PAGE : (page - 1) * PAGE + 64] = b"\xa5" * 64
    state.store.write_bytes(raw)


def test_a_damaged_page_is_found_at_the_start_and_by_the_doctor_with_the_cure(state: StateDir) -> None:
    damage_a_leaf(state)
    with closing(SqliteStore(state.store)) as store:
        assert len(store.latest_readings()) == DISKS + 2  # the newest of each disk is not on that page
    with (
        pytest.raises(StoreUnreadable, match=r"damaged .*predrain restore"),
        open_storage(settings_of(state), state, SetClock(), "predrain", marks=True),
    ):
        pass
    (finding,) = [
        one for one in run_doctor_checks(settings_of(state), state.path, SetClock()) if one.what == "store"
    ]
    assert finding.state == "wrong"
    assert "predrain restore" in finding.told


def test_a_large_store_is_not_waited_for_and_its_damage_is_told_by_a_loop(
    state: StateDir, forecaster: BundledForecaster, monkeypatch: pytest.MonkeyPatch
) -> None:
    damage_a_leaf(state)
    monkeypatch.setattr(page_check, "CHECKED_AT_START", PAGE)
    settings, clock = settings_of(state), SetClock()
    with open_storage(settings, state, clock, "predrain", marks=True) as (log, store):
        application = Application(ApplicationPorts(log, store, clock, lambda: forecaster), Policy(), settings)
        application.run()
        until = time.monotonic() + 60
        while "store" not in application.faults and time.monotonic() < until:
            time.sleep(0.02)
        assert "predrain restore" in application.faults["store"]
        application.stop()


@pytest.mark.parametrize("table", ["latest_readings", "latest_outlooks", "outcomes", "readings"])
def test_one_damaged_row_is_left_out_and_everything_else_goes_on(
    state: StateDir, forecaster: BundledForecaster, table: str
) -> None:
    damage_a_row(state, table)
    settings, clock = settings_of(state), SetClock()
    with open_storage(settings, state, clock, "predrain", marks=True) as (log, store):
        application = Application(ApplicationPorts(log, store, clock, lambda: forecaster), Policy(), settings)
        application.start()
        assert application.ingest([smart_reading("7", NOON), smart_reading("8", NOON)]).accepted == 2
        assert application.step_worker().taken == 3
        told(store)
        assert len(application.get_snapshot().readings) >= DISKS
        assert application.ready
        assert f"1 in {table}" in application.troubles["store"]
        assert not application.faults
        application.stop()
    (finding,) = [one for one in run_doctor_checks(settings, state.path, clock) if one.what == "store"]
    assert (finding.state, "backup" in finding.told) == ("wrong", True) or table == "readings"


def test_a_drain_that_cannot_be_read_stops_the_controller_alone(
    state: StateDir, forecaster: BundledForecaster
) -> None:
    damage_a_row(state, "drains")
    settings, clock = settings_of(state), SetClock()
    with open_storage(settings, state, clock, "predrain", marks=True) as (log, store):
        cluster = LiveClusterParts(seated())
        application = Application(
            ApplicationPorts(log, store, clock, lambda: forecaster, cluster), Policy(), settings
        )
        application.start()
        application.step_worker()
        assert application.get_snapshot().drains == ()
        with pytest.raises(StoreUnreadable, match=r"1 in drains .* no command is sent to the cluster"):
            application.step_controller()
        application.halt("smoke", "me")
        assert application.find_halt_reason() == "smoke"
        application.stop()


def damage_a_row(state: StateDir, table: str) -> None:
    with closing(sqlite3.connect(state.store)) as connection, connection:
        (first,) = connection.execute(f"SELECT min(rowid) FROM {table}").fetchone()
        changed = connection.execute(f"UPDATE {table} SET document = x'00' WHERE rowid = ?", (first,))
        assert changed.rowcount == 1


def test_damage_in_the_log_does_not_pass_for_a_first_start(state: StateDir) -> None:
    for file in state.path.glob("store.sqlite*"):
        file.unlink()
    state.log.write_bytes(b"no database, by any means. " * 400)
    with pytest.raises(Refusal), open_storage(settings_of(state), state, SetClock(), "predrain", marks=True):
        pass
    assert not state.store.exists()
    with closing(SqliteLog(state.path / "other.sqlite")) as log:
        assert log.read_newest(Topic.OUTLOOKS, 1) == ()
