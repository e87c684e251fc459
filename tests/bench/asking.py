"""The processor time of questions for work: 2,000 hosts ask, and no question holds anything new."""

from __future__ import annotations

import tempfile
from pathlib import Path

from predrain.data.clock import SystemClock
from predrain.data.disk_request import DiskPermission, WorkQuestion
from predrain.data.ids import HostName
from predrain.data.store.sqlite_store import SqliteStore
from predrain.service.disk_requests.request_book import RequestBook
from predrain.service.disk_requests.request_desk import DiskRequestDesk
from predrain.service.fleet.fleet import FleetSnapshot
from tests.bench.figure import Figure, Work

HOSTS = 2_000
NO_FLEET = FleetSnapshot({}, {}, {}, (), None, None)


def answered_questions() -> Work:
    """Every host asks once more; nothing of what it tells is new."""
    work = Work(amount=HOSTS)
    with tempfile.TemporaryDirectory() as folder:
        store = SqliteStore(Path(folder) / "store.sqlite")
        desk = DiskRequestDesk(store, SystemClock(), lambda: "key" * 12, find_view=None)
        questions = [
            WorkQuestion(HostName(f"stor-{number:04d}"), (DiskPermission.SELF_TEST,), has_key=True)
            for number in range(HOSTS)
        ]
        for question in questions:
            desk.exchange(NO_FLEET, question)
        with work.timed():
            for question in questions:
                desk.exchange(NO_FLEET, question)
        store.close()
    return work


def read_rooms() -> Work:
    """The one read of the store that a question cannot do without."""
    work = Work(amount=HOSTS)
    with tempfile.TemporaryDirectory() as folder:
        store = SqliteStore(Path(folder) / "store.sqlite")
        book = RequestBook(store)
        with work.timed():
            for _ in range(HOSTS):
                book.list_open()
        store.close()
    return work


FIGURES = (
    Figure(
        f"questions for work of {HOSTS:,} hosts", "questions", answered_questions, read_rooms, "the open requests read",
        "under 3 ms of CPU each", lambda work, _: work.cpu / work.amount < 0.003,
    ),
)  # fmt: skip
