"""The states that a worker remembers: whole for the first devices, packed for the others, and equal in every use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from predrain.data.ids import DeviceId
from predrain.data.log.memory_log import MemoryLog
from predrain.data.reading import Reading
from predrain.data.store.sqlite_store import SqliteStore
from predrain.service.forecasting import bundle_choice, remembered_states, worker
from predrain.service.forecasting.bundle_choice import BundledForecaster
from predrain.service.forecasting.remembered_states import RememberedStates
from predrain.service.forecasting.worker import ScoringWorker
from tests.service.conftest import NOON, smart_reading
from tests.service.test_shared_worker import put, stored, worker_on

SERIALS = [f"Z{n}" for n in range(12)]
DAYS = 40


def read_on(day: int) -> list[Reading]:
    """Readings of each drive; the counts of every other drive rise."""
    return [
        smart_reading(serial, NOON - timedelta(days=DAYS - day), pending=day * (number % 2))
        for number, serial in enumerate(SERIALS)
    ]


@pytest.fixture
def histories() -> dict[DeviceId, list[Reading]]:
    found: dict[DeviceId, list[Reading]] = {}
    for day in range(DAYS):
        for reading in read_on(day):
            found.setdefault(reading.device, []).append(reading)
    return found


def hold_whole(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    monkeypatch.setattr(remembered_states, "WHOLE_STATES", count)


def remember(
    forecaster: BundledForecaster, histories: dict[DeviceId, list[Reading]]
) -> RememberedStates[object]:
    states: RememberedStates = RememberedStates(forecaster)
    for device, readings in histories.items():
        states[device] = forecaster.fold(None, readings)
    return states


@pytest.mark.parametrize("whole", [0, 5, 100])
def test_each_state_comes_back_equal_whatever_its_form(
    whole: int,
    forecaster: BundledForecaster,
    histories: dict[DeviceId, list[Reading]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hold_whole(monkeypatch, whole)
    states = remember(forecaster, histories)
    assert list(states) == list(histories)
    for device, readings in histories.items():
        wanted = forecaster.pack(forecaster.fold(None, readings))
        assert device in states
        assert forecaster.pack(states[device]) == wanted
        assert states.pack_state(device) == wanted


def test_a_removed_device_is_unknown_until_it_is_set_again(
    forecaster: BundledForecaster, histories: dict[DeviceId, list[Reading]], monkeypatch: pytest.MonkeyPatch
) -> None:
    hold_whole(monkeypatch, 5)
    states = remember(forecaster, histories)
    whole, *_, packed = histories
    for device in (whole, packed):
        state = states.pop(device)
        assert device not in states
        assert len(states) == len(SERIALS) - 1
        with pytest.raises(KeyError):
            states.pack_state(device)
        states[device] = state
        assert states.pack_state(device) == forecaster.pack(forecaster.fold(None, histories[device]))
    states.clear()
    assert not states


def test_a_copy_does_not_change_with_the_original(
    forecaster: BundledForecaster, histories: dict[DeviceId, list[Reading]], monkeypatch: pytest.MonkeyPatch
) -> None:
    hold_whole(monkeypatch, 5)
    states = remember(forecaster, histories)
    copied, wanted = states.copy_states(), {device: states.pack_state(device) for device in histories}
    for device, readings in histories.items():
        states[device] = forecaster.fold(None, readings[:1])
    assert {device: copied.pack_state(device) for device in copied} == wanted
    states.clear()
    assert len(copied) == len(SERIALS)


def run_worker(path: Path, forecaster: BundledForecaster) -> tuple[Sequence[object], dict[DeviceId, bytes]]:
    """Return the outlooks and the states after three weeks with a restart between them."""
    log, store = MemoryLog(), SqliteStore(path)
    for days in (range(10), range(10, 21)):
        one = worker_on(log, store, forecaster)
        one.rebuild()
        for day in days:
            put(log, read_on(day))
            assert one.step().outlooks == len(SERIALS)
    states = {device: forecaster.pack(state) for device, state in one.states().items()}
    found = stored(store)
    store.close()
    return found, states


def test_a_worker_gives_the_same_outlooks_from_packed_states_also_after_a_restart(
    tmp_path: Path, forecaster: BundledForecaster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "CHECKPOINT_READINGS", 30)
    wanted = run_worker(tmp_path / "whole.db", forecaster)
    assert len(wanted[1]) == len(SERIALS)
    hold_whole(monkeypatch, 5)
    assert run_worker(tmp_path / "packed.db", forecaster) == wanted


def test_a_start_neither_unpacks_nor_packs_a_checkpoint_that_is_up_to_date(
    tmp_path: Path, forecaster: BundledForecaster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "CHECKPOINT_READINGS", 1)
    hold_whole(monkeypatch, 0)
    log, store = MemoryLog(), SqliteStore(tmp_path / "store.db")
    first = worker_on(log, store, forecaster)
    first.rebuild()
    put(log, read_on(0))
    first.step()
    first.step()  # saves the checkpoints of the step before
    converted: list[object] = []
    for name in ("pack", "unpack"):
        monkeypatch.setattr(BundledForecaster, name, lambda _self, given: converted.append(given))
    assert worker_on(log, store, forecaster).rebuild() == len(SERIALS)
    assert converted == []
    store.close()


UNREADABLE = b"not a packed state"


def start_worker_beside_unreadable_checkpoints(
    path: Path, forecaster: BundledForecaster, unreadable: Sequence[DeviceId], new_days: int
) -> tuple[ScoringWorker[object], MemoryLog, SqliteStore]:
    """Return a worker whose store had readings of ten days, checkpoints, and then readings of `new_days` days."""
    log, store = MemoryLog(), SqliteStore(path)
    first = worker_on(log, store, forecaster)
    first.rebuild()
    for day in range(10):
        put(log, read_on(day))
        first.step()
    first.step()  # saves the checkpoints of the step before
    for day in range(10, 10 + new_days):
        store.add_readings(read_on(day))
    store.save_checkpoints(replace(one, state=UNREADABLE) for one in store.checkpoints(unreadable).values())
    second = worker_on(log, store, forecaster)
    assert second.rebuild() == len(SERIALS)
    return second, log, store


def judge_next_day(worker: ScoringWorker[object], log: MemoryLog, store: SqliteStore) -> dict[str, object]:
    """Return all outlooks once the eleventh day's readings are scored."""
    put(log, read_on(10))
    assert worker.step().outlooks == len(SERIALS)
    found = stored(store)
    store.close()
    return found


def test_a_device_whose_checkpoint_is_unreadable_is_judged_from_its_whole_history_at_its_next_reading(
    tmp_path: Path,
    forecaster: BundledForecaster,
    histories: dict[DeviceId, list[Reading]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(worker, "CHECKPOINT_READINGS", 1)
    hold_whole(monkeypatch, 0)
    wanted = judge_next_day(
        *start_worker_beside_unreadable_checkpoints(tmp_path / "sound.db", forecaster, (), new_days=0)
    )
    unreadable = list(histories)[3:6]
    started = start_worker_beside_unreadable_checkpoints(
        tmp_path / "damaged.db", forecaster, unreadable, new_days=0
    )
    states = started[0].states()
    assert [device for device in histories if states.get(device) is None] == unreadable
    assert judge_next_day(*started) == wanted


def test_a_start_reads_the_whole_history_of_a_device_with_later_readings_and_an_unreadable_checkpoint(
    tmp_path: Path,
    forecaster: BundledForecaster,
    histories: dict[DeviceId, list[Reading]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(worker, "CHECKPOINT_READINGS", 1)
    hold_whole(monkeypatch, 0)
    started, _, store = start_worker_beside_unreadable_checkpoints(
        tmp_path / "damaged.db", forecaster, list(histories)[3:6], new_days=1
    )
    store.close()
    wanted = {
        device: forecaster.pack(forecaster.fold(None, readings[:11]))
        for device, readings in histories.items()
    }
    assert {device: forecaster.pack(state) for device, state in started.states().items()} == wanted


def test_drift_leaves_out_a_device_whose_state_is_unreadable(
    forecaster: BundledForecaster, histories: dict[DeviceId, list[Reading]], monkeypatch: pytest.MonkeyPatch
) -> None:
    hold_whole(monkeypatch, 5)
    states = remember(forecaster, histories)
    left_out = list(histories)[7]
    states.keep_packed(left_out, UNREADABLE)
    del histories[left_out]
    wanted = forecaster.measure_family_drift([*remember(forecaster, histories).values()])
    assert forecaster.measure_family_drift(states.values()) == wanted


def test_drift_is_the_same_for_packed_states_in_small_batches(
    forecaster: BundledForecaster, histories: dict[DeviceId, list[Reading]], monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = forecaster.measure_family_drift([*remember(forecaster, histories).values()])
    assert sum(found.drives for found in wanted) == len(SERIALS)
    hold_whole(monkeypatch, 5)
    monkeypatch.setattr(bundle_choice, "_DRIVES_AT_ONCE", 5)
    assert forecaster.measure_family_drift(remember(forecaster, histories).values()) == wanted
