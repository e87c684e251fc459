"""The histories of many drives at once, which a worker reads first when it starts or takes drives over."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

import pytest

from predrain.data.ids import DeviceId
from predrain.data.store import stored_histories
from predrain.data.store.store_port import Checkpoint, Store
from tests.data.store.written import DEVICE, HOUR, NO_ANSWER, OUTLOOKS, READINGS, SILENT

TIMES = tuple(reading.taken_at for reading in READINGS)
STRANGER = DeviceId("NEVER_SEEN")


def test_each_device_comes_with_its_readings_from_its_time_on_oldest_first(store: Store) -> None:
    store.add_readings([*reversed(READINGS), NO_ANSWER])
    asked = {DEVICE: TIMES[1], SILENT: NO_ANSWER.taken_at + HOUR}
    assert dict(store.iterate_readings(asked)) == {DEVICE: READINGS[1:], SILENT: ()}


def test_without_a_time_the_whole_history_comes(store: Store) -> None:
    store.add_readings([*READINGS, NO_ANSWER])
    asked = {SILENT: None, STRANGER: None, DEVICE: None}
    assert dict(store.iterate_readings(asked)) == {DEVICE: READINGS, SILENT: (NO_ANSWER,), STRANGER: ()}
    assert dict(store.iterate_readings({})) == {}


def test_outlooks_come_likewise(store: Store) -> None:
    store.save_outlooks(OUTLOOKS)
    asked: dict[DeviceId, datetime | None] = {DEVICE: OUTLOOKS[1].as_of, SILENT: None}
    assert dict(store.iterate_outlooks(asked)) == {DEVICE: (replace(OUTLOOKS[1], survival=None),), SILENT: ()}


def test_more_devices_than_one_question_may_have_all_come(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored_histories, "_TOGETHER", 2)
    monkeypatch.setattr(stored_histories, "_WHOLE", 2)
    store.add_readings(READINGS)
    strangers = [DeviceId(f"{STRANGER}_{n}") for n in range(5)]
    for since in (None, TIMES[0]):
        told = dict(store.iterate_readings(dict.fromkeys([*strangers, DEVICE], since)))
        assert told == {**dict.fromkeys(strangers, ()), DEVICE: READINGS}


@pytest.mark.parametrize("name", ['quo"te', "back\\slash", "ümlaut", "{}"])
def test_a_device_of_any_name_is_found(store: Store, name: str) -> None:
    strange = [replace(one, device=DeviceId(name)) for one in READINGS]
    store.add_readings(strange)
    assert dict(store.iterate_readings({DeviceId(name): TIMES[1]})) == {name: tuple(strange[1:])}


def test_outlooks_are_found_by_device_and_time(store: Store) -> None:
    store.save_outlooks(OUTLOOKS)
    there = (DEVICE, OUTLOOKS[0].as_of)
    assert store.find_outlook_keys([there, (DEVICE, TIMES[2]), (SILENT, TIMES[0])]) == {there}
    assert store.find_outlook_keys([]) == frozenset()


def test_a_reading_that_comes_late_drops_the_checkpoint_of_its_device(store: Store) -> None:
    store.add_readings(READINGS[1:])
    store.save_checkpoints([Checkpoint(DEVICE, "any layout", TIMES[-1] + HOUR, b"state")])
    store.add_readings(READINGS[:1])
    assert store.checkpoints([DEVICE]) == {}
