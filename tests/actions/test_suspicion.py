"""Since when a disk has been called bad, by the severity that everybody reads."""

from __future__ import annotations

from datetime import timedelta

from predrain.actions.controller.disk_evidence import SuspectHistory
from predrain.data.outlook import Status
from predrain.data.store.sqlite_store import MEMORY, SqliteStore
from tests.actions.made import NOW, POLICY, bad_outlook, device

HOUR = timedelta(hours=1)


def test_one_better_reading_does_not_make_a_bad_disk_newly_bad() -> None:
    store, suspicion, begin = SqliteStore(MEMORY), SuspectHistory(), NOW - 3 * HOUR
    told = [
        bad_outlook(0, at=begin),
        bad_outlook(0, at=begin + HOUR, status=Status.WARNING, held=Status.BAD),
        bad_outlook(0, at=begin + 2 * HOUR),
    ]
    store.save_outlooks(told)
    for outlook in told:
        suspicion.update_suspects({device(0): outlook}, store, POLICY, outlook.as_of)
        assert suspicion.since == {device(0): begin}
    anew = SuspectHistory()
    anew.update_suspects({device(0): told[-1]}, store, POLICY, NOW)
    assert anew.since == {device(0): begin}
    store.close()
