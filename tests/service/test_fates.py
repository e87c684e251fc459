"""The outcomes of the disks of a service: statements count as they were made, and a drain proves nothing of a disk."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime, timedelta

import pytest

from predrain.data.drain import Drain, DrainState, Intent, Progress
from predrain.data.history import EPOCH
from predrain.data.ids import DeviceId, OsdId
from predrain.data.outcome import DriveFate, Outcome
from predrain.data.store.sqlite_store import SqliteStore
from predrain.service.forecasting.known_fates import lives_of, outcomes_of, words_of
from tests.service.conftest import NOON, smart_reading

DAY = timedelta(days=1)
DISK = DeviceId("ST4000DM000_A")


@pytest.fixture
def store() -> Iterator[SqliteStore]:
    made = SqliteStore(":memory:")
    made.add_readings([smart_reading("A", NOON), smart_reading("B", NOON + 10 * DAY)])
    yield made
    made.close()


def drained(state: DrainState, moved: int, at: datetime = NOON - 2 * DAY) -> Drain:
    return Drain(
        "osd.1-x", DISK, (OsdId(1),), state, Intent.REPLACE, "predrain", "", at, at, 1,
        progress=Progress(planned_pgs=9, moved_pgs=moved),
    )  # fmt: skip


def said(fate: DriveFate, at: datetime = NOON) -> Outcome:
    return Outcome(DISK, at, fate, "a person")


@pytest.mark.parametrize(
    ("state", "moved", "counts"),
    [
        (DrainState.VERIFIED, 9, True),
        (DrainState.DRAINING, 3, True),
        (DrainState.PROPOSED, 0, False),
        (DrainState.CANCELLED, 3, False),
    ],
)
def test_a_drain_that_moved_data_and_was_not_put_back_leaves_a_disk_unverified(
    store: SqliteStore, state: DrainState, moved: int, counts: bool
) -> None:
    store.save_drain(drained(state, moved))
    assert [one.fate for one in outcomes_of(store)] == ([DriveFate.UNVERIFIED] if counts else [])


def test_statements_and_drains_stand_in_order_of_time(store: SqliteStore) -> None:
    store.add_outcome(said(DriveFate.CONFIRMED))
    store.save_drain(drained(DrainState.VERIFIED, 9))
    assert [one.fate for one in outcomes_of(store)] == [DriveFate.UNVERIFIED, DriveFate.CONFIRMED]


def test_histories_know_drives_by_the_serial_number_that_the_drive_told(store: SqliteStore) -> None:
    store.add_outcome(said(DriveFate.FAILED))
    store.add_outcome(Outcome(DeviceId("VENDOR_MODEL_NEVERREAD"), NOON, DriveFate.CLEARED, "a person"))
    assert [(word.serial, word.fate) for word in words_of(store)] == [
        ("A", DriveFate.FAILED),
        ("NEVERREAD", DriveFate.CLEARED),
    ]


def life(store: SqliteStore) -> tuple[date, bool]:
    lives = lives_of(store, date(2026, 1, 1))
    at = lives.serials.tolist().index(DISK)
    return EPOCH + timedelta(days=int(lives.last[at])), bool(lives.died[at])


def test_a_disk_lives_to_its_last_reading_and_dies_there_when_it_is_said_to_have_failed(
    store: SqliteStore,
) -> None:
    assert life(store) == (NOON.date(), False)
    store.add_outcome(said(DriveFate.FAILED, NOON + DAY))
    assert life(store) == (NOON.date(), True)


def test_a_drained_disk_is_followed_to_its_drain_until_somebody_says_what_it_was(store: SqliteStore) -> None:
    store.save_drain(drained(DrainState.VERIFIED, 9))
    assert life(store) == ((NOON - 2 * DAY).date(), False)
    store.add_outcome(said(DriveFate.CLEARED, NOON + 3 * DAY))
    assert life(store) == ((NOON + 3 * DAY).date(), False)


def test_disks_that_were_not_heard_of_since_the_first_day_are_left_out(store: SqliteStore) -> None:
    assert lives_of(store, NOON.date() + DAY).serials.tolist() == ["ST4000DM000_B"]


def test_a_fleet_that_is_said_to_lose_300_drives_of_a_model_on_one_day_has_lost_none(
    store: SqliteStore,
) -> None:
    serials = [f"M{number}" for number in range(300)]
    store.add_readings([smart_reading(serial, NOON) for serial in serials])
    for serial in serials:
        store.add_outcome(Outcome(DeviceId(f"ST4000DM000_{serial}"), NOON, DriveFate.FAILED, "a script"))
    store.add_readings([smart_reading("DIED", NOON - DAY)])
    store.add_outcome(Outcome(DeviceId("ST4000DM000_DIED"), NOON - DAY, DriveFate.FAILED, "a person"))
    lives = lives_of(store, date(2026, 1, 1))
    assert [str(one) for one in lives.serials[lives.died]] == ["ST4000DM000_DIED"]
