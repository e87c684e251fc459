"""A store that is lost beside a log with content is never replaced without a word; a first start is no such case."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from predrain.data.clock import SystemClock
from predrain.data.log.log_port import Log, Record, Topic
from predrain.data.log.sqlite_log import SqliteLog
from predrain.data.store.sqlite_store import SqliteStore
from predrain.data.store.store_port import Store
from predrain.service.cli import main
from predrain.service.config.settings import CephTable, ServiceTable, Settings
from predrain.service.config.state_directory import StateDir
from predrain.service.doctor.local_checks import LOOKS
from predrain.service.processes.state_opening import open_storage
from predrain.service.storage.store_identity import (
    MARK_KEY,
    RENEWED_AFTER,
    StoreMarks,
    StoreMismatch,
    find_mark,
    read_identity,
)
from tests.service.conftest import NOON, SetClock, smart_reading


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(service=ServiceTable(port=0, state=tmp_path / "state"))


@pytest.fixture
def state(settings: Settings) -> StateDir:
    return StateDir(settings.service.state).ensure_exists()


@contextmanager
def started(
    settings: Settings, *, accept_store: str | None = None, marks: bool = True
) -> Iterator[tuple[Log, Store]]:
    """Log and store as a start opens them."""
    state = StateDir(settings.service.state)
    with open_storage(
        settings, state, SystemClock(), "predrain", marks=marks, accept_store=accept_store
    ) as both:
        yield both


def worked(settings: Settings) -> None:
    """A service has taken a reading."""
    with started(settings) as (log, store):
        log.append(Topic.READINGS, [Record("k", b"x")])
        store.add_readings([smart_reading(at=NOON)])


def lose(state: StateDir, how: str) -> None:
    for file in state.path.glob("store.sqlite*"):
        file.unlink()
    if how == "has 0 bytes":
        state.store.touch()
    elif how == "is empty":
        SqliteStore(state.store).close()


HOW = ("is missing", "has 0 bytes", "is empty")


def find_loss_id(told: str) -> str:
    """The id that a refusal names."""
    found = re.search(r"--accept-store ([0-9a-f]{12}) ", told)
    assert found is not None, told
    return found[1]


def refusal(settings: Settings, accept_store: str | None = None) -> str:
    with pytest.raises(StoreMismatch) as refused, started(settings, accept_store=accept_store):
        pass
    return str(refused.value)


@pytest.mark.parametrize("how", HOW)
def test_a_lost_store_is_refused_with_what_would_be_gone_and_the_way_on(
    settings: Settings, state: StateDir, how: str
) -> None:
    worked(settings)
    lose(state, how)
    told = refusal(settings)
    for word in (str(state.store), how, "tokens", "audit", "outcomes", "silences", "--accept-store"):
        assert word in told
    assert "nothing would come back by itself" in told  # there is no cluster here
    assert state.store.exists() == (how != "is missing")
    assert refusal(settings) == told  # the second start is no smoother than the first
    with started(settings, accept_store=find_loss_id(told)):
        pass
    with started(settings) as (log, store):
        mark = find_mark(log)
        assert mark is not None
        assert mark.body.store == read_identity(store)


@pytest.mark.parametrize("first", HOW)
@pytest.mark.parametrize("second", HOW)
def test_an_id_that_was_accepted_accepts_no_later_loss(
    settings: Settings, state: StateDir, first: str, second: str
) -> None:
    worked(settings)
    lose(state, first)
    id_ = find_loss_id(refusal(settings))
    for _ in range(2):  # the flag was left in the unit file
        with started(settings, accept_store=id_) as (_, store):
            store.add_readings([smart_reading(at=NOON)])
    lose(state, second)
    told = refusal(settings, id_)
    assert f"--accept-store '{id_}' names another loss" in told
    assert find_loss_id(told) != id_
    with started(settings, accept_store=find_loss_id(told)):
        pass


def test_an_id_of_a_loss_before_there_were_marks_accepts_no_later_loss(
    settings: Settings, state: StateDir
) -> None:
    with closing(SqliteLog(state.log)) as log:
        log.append(Topic.READINGS, [Record("k", b"x")])
    id_ = find_loss_id(refusal(settings))
    with started(settings, accept_store=id_):
        pass
    lose(state, "is missing")
    refusal(settings, id_)


def test_a_process_that_may_not_write_the_mark_accepts_no_loss_since_it_could_not_remember_it(
    settings: Settings, state: StateDir
) -> None:
    worked(settings)
    lose(state, "is missing")
    id_ = find_loss_id(refusal(settings))
    with pytest.raises(StoreMismatch), started(settings, accept_store=id_, marks=False):
        pass


def test_drains_and_the_halt_are_named_as_what_the_cluster_gives_back(
    settings: Settings, state: StateDir, tmp_path: Path
) -> None:
    conf = tmp_path / "ceph.conf"
    conf.write_text("[global]\n")
    settings = settings.model_copy(update={"ceph": CephTable(conf=conf)})
    worked(settings)
    lose(state, "is missing")
    assert "drains and the halt would come back by themselves, from the cluster" in refusal(settings)


@pytest.mark.parametrize("how", HOW)
def test_a_store_of_version_0_1_0_that_is_lost_left_no_mark_and_is_told_by_the_logs_records(
    settings: Settings, state: StateDir, how: str
) -> None:
    with closing(SqliteLog(state.log)) as log:
        log.append(Topic.READINGS, [Record("k", b"x")])
    lose(state, how)
    assert "--accept-store" in refusal(settings)


def test_a_full_store_of_version_0_1_0_is_taken_without_a_question_and_marked(
    settings: Settings, state: StateDir
) -> None:
    with closing(SqliteLog(state.log)) as log:
        log.append(Topic.READINGS, [Record("k", b"x")])
    with closing(SqliteStore(state.store)) as store:
        store.add_readings([smart_reading(at=NOON)])
    with started(settings) as (log, store):
        mark = find_mark(log)
        assert mark is not None
        assert mark.body.store == read_identity(store)


def test_a_first_start_and_all_that_follow_ask_nothing(settings: Settings) -> None:
    identities = set()
    for _ in range(3):
        with started(settings) as (log, store):
            identities.add(read_identity(store))
            assert [one.key for one in log.read_newest(Topic.OUTLOOKS, 10)] == [MARK_KEY]
    assert len(identities) == 1


def test_another_services_store_beside_the_log_is_refused(
    settings: Settings, state: StateDir, tmp_path: Path
) -> None:
    worked(settings)
    other = Settings(service=ServiceTable(port=0, state=tmp_path / "other"))
    worked(other)
    lose(state, "is missing")
    state.store.write_bytes(StateDir(tmp_path / "other").store.read_bytes())
    assert "is another one than the store beside which the log was written" in refusal(settings)


def test_a_halt_that_was_set_by_hand_in_the_lost_stores_place_does_not_hide_the_loss(
    settings: Settings, state: StateDir
) -> None:
    worked(settings)
    lose(state, "has 0 bytes")
    with closing(SqliteStore(state.store)) as store:
        store.set_halt("smoke")
    assert "is empty" in refusal(settings)


def test_a_new_log_beside_a_store_is_taken_and_marked(settings: Settings, state: StateDir) -> None:
    worked(settings)
    for file in state.path.glob("log.sqlite*"):
        file.unlink()
    with started(settings) as (log, store):
        mark = find_mark(log)
        assert mark is not None
        assert mark.body.store == read_identity(store)


def test_a_process_that_may_not_write_the_mark_checks_it_all_the_same(
    settings: Settings, state: StateDir
) -> None:
    with started(settings, marks=False) as (log, _):
        assert find_mark(log) is None
    worked(settings)
    lose(state, "is missing")
    with pytest.raises(StoreMismatch), started(settings, marks=False):
        pass


def test_the_mark_is_written_anew_before_the_log_drops_it(settings: Settings) -> None:
    clock = SetClock(datetime.now(UTC))
    with started(settings) as (log, store):
        marks = StoreMarks(log, store, clock, "predrain")
        marks.step()
        assert len(log.read_newest(Topic.OUTLOOKS, 10)) == 1
        clock.sleep((RENEWED_AFTER + timedelta(days=1)).total_seconds())
        marks.step()
        assert len(log.read_newest(Topic.OUTLOOKS, 10)) == 2


def test_the_newest_backup_is_named_with_its_time(
    settings: Settings, state: StateDir, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    worked(settings)
    folder = tmp_path / "backups"
    folder.mkdir()
    for name in ("first.tar.gz", "second.tar.gz"):
        assert main(["backup", "--out", str(folder / name), "--state", str(state.path)]) == 0
    (folder / "rubbish.tar.gz").write_bytes(b"no backup")
    capsys.readouterr()
    lose(state, "is missing")
    told = refusal(settings)
    assert f"{folder / 'second.tar.gz'} of 20" in told
    assert "predrain restore" in told


@pytest.mark.parametrize("how", HOW)
def test_up_ends_with_one_sentence(
    settings: Settings, state: StateDir, how: str, capsys: pytest.CaptureFixture[str]
) -> None:
    worked(settings)
    lose(state, how)
    assert main(["up", "--state", str(state.path), "--port", "0"]) == 1
    told = capsys.readouterr().err
    assert told.startswith("predrain: ")
    assert told.count("\n") == 1
    assert how in told


def test_a_state_directory_restored_from_a_backup_starts_without_a_question(
    settings: Settings, state: StateDir, tmp_path: Path
) -> None:
    worked(settings)
    file, other = tmp_path / "kept.tar.gz", tmp_path / "restored"
    assert main(["backup", "--out", str(file), "--state", str(state.path)]) == 0
    public = str(state.path / "backup.pub")
    assert main(["restore", str(file), "--state", str(other), "--key", public]) == 0
    with started(Settings(service=ServiceTable(port=0, state=other))) as (_, store):
        assert len(store.latest_readings()) == 1


def test_a_store_that_lost_its_rows_and_kept_its_identity_is_the_same_store(
    settings: Settings, state: StateDir
) -> None:
    worked(settings)
    with closing(sqlite3.connect(state.store)) as connection, connection:
        connection.execute("DELETE FROM latest_readings")
        connection.execute("DELETE FROM readings")
    with started(settings) as (_, store):
        assert store.is_empty()


@pytest.mark.parametrize("how", ["is empty"])
def test_the_doctor_names_a_store_that_a_start_would_refuse(
    settings: Settings, state: StateDir, how: str
) -> None:
    worked(settings)
    (look,) = (look for name, look in LOOKS if name == "store")
    assert "store, log" not in {one.what for one in look(settings, SystemClock())}
    lose(state, how)
    found = {one.what: one for one in look(settings, SystemClock())}
    assert found["store, log"].state == "wrong"
    assert find_loss_id(refusal(settings)) in found["store, log"].told
