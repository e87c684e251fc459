"""What a worker that takes drives over asks first: which readings their checkpoints lack."""

from __future__ import annotations

from predrain.data.ids import DeviceId
from predrain.data.store.port import Checkpoint, Store
from tests.data.store.written import DEVICE, HOUR, NO_ANSWER, NOON, READINGS, SILENT

TIMES = tuple(reading.taken_at for reading in READINGS)


def test_readings_after_the_checkpoint_are_unsaved(store: Store) -> None:
    store.add_readings(READINGS)
    store.save_checkpoints([Checkpoint(DEVICE, "any layout", TIMES[0], b"state")])
    assert store.unsaved([DEVICE]) == {DEVICE: TIMES[1:]}


def test_a_device_that_was_never_saved_lacks_all_and_comes_oldest_first(store: Store) -> None:
    store.add_readings([*reversed(READINGS), NO_ANSWER])
    assert store.unsaved([DEVICE, SILENT]) == {DEVICE: TIMES, SILENT: (NOON,)}


def test_devices_that_lack_nothing_or_are_not_asked_for_are_not_told(store: Store) -> None:
    store.add_readings([*READINGS, NO_ANSWER])
    store.save_checkpoints([Checkpoint(DEVICE, "any layout", TIMES[-1], b"state")])
    assert store.unsaved([DEVICE, DeviceId("NEVER_SEEN")]) == {}
    assert store.unsaved([]) == {}


def test_a_reading_that_comes_late_makes_all_of_its_device_unsaved(store: Store) -> None:
    store.add_readings(READINGS[1:])
    store.save_checkpoints([Checkpoint(DEVICE, "any layout", TIMES[-1] + HOUR, b"state")])
    store.add_readings(READINGS[:1])
    assert store.unsaved([DEVICE]) == {DEVICE: TIMES}


def test_readings_after_the_checkpoint_come_at_once_oldest_first(store: Store) -> None:
    store.add_readings([*reversed(READINGS), NO_ANSWER])
    store.save_checkpoints([Checkpoint(DEVICE, "any layout", TIMES[0], b"state")])
    assert store.find_later_readings([DEVICE, SILENT]) == {DEVICE: READINGS[1:]}
    store.save_checkpoints([Checkpoint(DEVICE, "any layout", TIMES[-1], b"state")])
    assert store.find_later_readings([DEVICE]) == {}
