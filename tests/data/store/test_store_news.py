"""The store reports the rows that other processes wrote: all of them once they are committed, and few others."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace

import psycopg
import pytest

from predrain.data.drain import DrainState
from predrain.data.ids import DeviceId
from predrain.data.outlook import Status
from predrain.data.reading import Reading
from predrain.data.store.postgres_store import PostgresStore
from predrain.data.store.store_port import Store, StoreChanges
from tests.data.store import written
from tests.system.postgres.server import Server

FIRST, SECOND = written.OUTLOOKS
NOTHING = ((), (), (), ())


def told(news: StoreChanges) -> tuple[object, ...]:
    return (news.readings, news.outlooks, news.drains, news.outcomes)


def newest(news: StoreChanges) -> dict[DeviceId, Reading]:
    return {reading.device: reading for reading in news.readings}


def test_a_first_look_tells_the_newest_of_everything(store: Store) -> None:
    assert told(store.read_changes()) == NOTHING
    written.fill(store)
    news = store.read_changes()
    assert newest(news) == {written.DEVICE: written.READINGS[-1], written.SILENT: written.NO_ANSWER}
    assert told(news)[1:] == ((SECOND,), (written.DRAIN,), (written.OUTCOME,))


@pytest.mark.slow
def test_with_nothing_new_nothing_is_told(store: Store) -> None:
    written.fill(store)
    mark = store.read_changes().mark
    for _ in range(3):
        news = store.read_changes(mark)
        assert told(news) == NOTHING
        mark = news.mark
    # The same rows once more: only an outlook may be another score, so only outlooks are reported again.
    written.fill(store)
    assert told(store.read_changes(mark)) == ((), (SECOND,), (), ())


def test_each_change_by_another_process_is_reported_once(opened: Callable[[], Store]) -> None:
    mine, other = opened(), opened()
    mark = mine.read_changes().mark
    other.add_readings(written.READINGS)
    news = mine.read_changes(mark)
    assert told(news) == ((written.READINGS[-1],), (), (), ())
    other.save_outlooks([FIRST])
    other.add_outcome(written.OUTCOME)
    other.save_drain(written.DRAIN)
    news = mine.read_changes(news.mark)
    assert told(news) == ((), (FIRST,), (written.DRAIN,), (written.OUTCOME,))
    other.save_drain(replace(written.DRAIN, state=DrainState.PAUSED, revision=written.DRAIN.revision + 1))
    news = mine.read_changes(news.mark)
    assert [drain.state for drain in news.drains] == [DrainState.PAUSED]
    assert told(mine.read_changes(news.mark)) == NOTHING


def test_a_new_score_of_the_same_instant_is_told(store: Store) -> None:
    store.save_outlooks([FIRST])
    mark = store.read_changes().mark
    again = replace(FIRST, status=Status.BAD)
    store.save_outlooks([again])
    assert store.read_changes(mark).outlooks == (again,)


def test_a_late_reading_or_outlook_is_not_the_newest_and_is_not_reported(store: Store) -> None:
    store.add_readings(written.READINGS[1:])
    store.save_outlooks([SECOND])
    mark = store.read_changes().mark
    store.add_readings(written.READINGS[:1])
    store.save_outlooks([FIRST])
    assert told(store.read_changes(mark)) == NOTHING


def test_an_older_copy_of_the_store_in_place_of_the_newer_is_told_whole(store: Store) -> None:
    written.fill(store)
    ahead = {":": "9000000000:9000000000:", "": "9000000000"}
    mark = store.read_changes().mark
    news = store.read_changes(ahead[":" if ":" in mark else ""])
    assert newest(news) == {written.DEVICE: written.READINGS[-1], written.SILENT: written.NO_ANSWER}
    assert told(store.read_changes(news.mark)) == NOTHING


@pytest.mark.system
def test_a_transaction_that_began_earlier_and_commits_later_is_told(url: str) -> None:
    """A counter would have passed it by: the later number is committed and seen first."""
    store = PostgresStore(url)
    store.save_outlooks([FIRST, replace(FIRST, device=DeviceId("other"))])
    mark = store.read_changes().mark
    with closing(psycopg.connect(url)) as slow:
        slow.execute(
            "UPDATE latest_outlooks SET written = pg_current_xact_id()::text::bigint WHERE device = 'other'"
        )
        store.save_outlooks([SECOND])
        news = store.read_changes(mark)
        assert news.outlooks == (SECOND,)
        assert told(store.read_changes(news.mark)) == NOTHING
        slow.commit()
    news = store.read_changes(news.mark)
    assert [one.device for one in news.outlooks] == ["other"]
    assert told(store.read_changes(news.mark)) == NOTHING
    store.close()


@pytest.mark.system
def test_numbers_of_another_server_are_not_told_for_ever(server: Server, url: str) -> None:
    """As after a dump that was read back into a new server, which counts from the beginning."""
    store = PostgresStore(url)
    written.fill(store)
    server.run("UPDATE latest_readings SET written = 9000000000", url.rsplit("/", 1)[1])
    news = store.read_changes()
    assert len(news.readings) == 2
    assert told(store.read_changes(news.mark)) == NOTHING
    store.close()


@pytest.mark.system
@pytest.mark.slow
def test_a_reader_that_follows_concurrent_writers_ends_with_the_stored_outlooks(url: str) -> None:
    """Seeded: eight writers, each device written by all of them, one who follows meanwhile."""
    store, done = PostgresStore(url), threading.Event()

    def write(seed: int) -> None:
        mine, chance = PostgresStore(url), random.Random(seed)
        for turn in range(40):
            of = [DeviceId(f"d-{n}") for n in chance.sample(range(30), 12)]
            p = (seed * 40 + turn) / 400
            mine.save_outlooks(replace(FIRST, device=device, p_fail_30d=p) for device in of)
        mine.close()

    writers = [threading.Thread(target=write, args=(seed,)) for seed in range(8)]
    for writer in writers:
        writer.start()
    seen, mark, looks = {}, None, 0
    while not done.is_set():
        if not any(writer.is_alive() for writer in writers):
            done.set()  # and one last look
        news = store.read_changes(mark)
        seen.update({one.device: one for one in news.outlooks})
        mark, looks = news.mark, looks + 1
    assert looks > 3
    assert seen == store.latest_outlooks()
    store.close()
