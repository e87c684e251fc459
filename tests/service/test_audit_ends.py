"""The log notes where the audit ends, so that the doctor finds an audit that was recomputed or cut in the store."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import delete, select, update

from predrain.data.drain import JournalEntry
from predrain.data.log.log_port import Topic
from predrain.data.log.sqlite_log import SqliteLog
from predrain.data.store import store_schema
from predrain.data.store.audit_chain import GENESIS, hash_line
from predrain.data.store.sqlite_store import SqliteStore
from predrain.data.store.store_port import AUDIT
from predrain.service.access.audit import THIS_MACHINE
from predrain.service.access.canonical_requests import describe_act
from predrain.service.config.settings import ServiceTable, Settings
from predrain.service.config.state_directory import StateDir
from predrain.service.doctor.finding import Finding
from predrain.service.doctor.local_checks import LOOKS
from predrain.service.storage.audit_ends import RESTORE
from predrain.service.storage.store_identity import (
    NOTED_AFTER,
    RENEWED_AFTER,
    StoreMarks,
    find_mark,
    join_log_to_store,
)
from tests.service.conftest import SetClock

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


class Service:
    """Log and store of one state directory, and who writes their marks."""

    def __init__(self, path: Path) -> None:
        self.settings = Settings(service=ServiceTable(port=0, state=path))
        state = StateDir(path).ensure_exists()
        self.log, self.store, self.clock = SqliteLog(state.log), SqliteStore(state.store), SetClock(NOON)
        join_log_to_store(self.log, self.store, self.clock, "predrain", lambda: "one", marks=True)
        self.marks = StoreMarks(self.log, self.store, self.clock, "predrain")
        self._written = 0

    def write_lines(self, count: int) -> None:
        """Lines of the audit, then a look of who writes marks, long enough after the last mark."""
        for _ in range(count):
            self._written += 1
            seen = f"from here, call {self._written}"
            act = JournalEntry(AUDIT, self.clock.now(), seen, f"act {self._written}", "200", caller="anna")
            self.store.add_journal([act])
        self.clock.sleep(NOTED_AFTER.total_seconds())
        self.marks.step()

    def examine(self) -> dict[str, Finding]:
        """Return the doctor's findings about the audit, by their subject."""
        (look,) = (look for name, look in LOOKS if name == "audit")
        return {one.what: one for one in look(self.settings, self.clock)}

    def count_marks(self) -> int:
        return len(self.log.read_newest(Topic.OUTLOOKS, 1_000))

    def read_numbers(self) -> list[int]:
        wanted = select(store_schema.journal.c.number).where(store_schema.journal.c.drain == AUDIT)
        ordered = wanted.order_by(store_schema.journal.c.number)
        return list(self.store._database.read(lambda found: found.execute(ordered).scalars().all()))

    def forge(self, change: Callable[[list[tuple[int, bytes]]], list[tuple[int, bytes]]]) -> None:
        """Recompute the whole chain over changed lines.

        A person who knows of the chain and has write access to the database can do so.
        """
        table, mine = store_schema.journal, store_schema.journal.c.drain == AUDIT

        def write(connection: object) -> None:
            run = connection.execute  # type: ignore[attr-defined]
            rows = [
                (one.number, bytes(one.document))
                for one in run(select(table.c.number, table.c.document).where(mine).order_by(table.c.number))
            ]
            kept = change(rows)
            run(delete(table).where(mine, table.c.number.not_in([number for number, _ in kept])))
            head = GENESIS
            for number, document in kept:
                head = hash_line(head, document)
                run(update(table).where(table.c.number == number).values(document=document, hash=head))
            run(update(store_schema.chains).values(head=head, ended=kept[-1][0] if kept else 0))

        self.store._database.write(write)


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    made = Service(tmp_path / "state")
    with closing(made.log), closing(made.store):
        yield made


def test_an_audit_that_nobody_touched_agrees_with_what_the_log_noted(service: Service) -> None:
    for _ in range(3):
        service.write_lines(2)
    found = service.examine()
    assert {one.state for one in found.values()} == {"ok"}
    assert "3 ends" in found["audit, noted"].told


@pytest.mark.parametrize("place", range(6))
def test_an_audit_whose_chain_was_made_anew_over_a_changed_line_is_found_out(
    service: Service, place: int
) -> None:
    for _ in range(3):
        service.write_lines(2)
    there = service.read_numbers()[place]
    service.forge(lambda rows: [(n, one.replace(b"act", b"lie") if n == there else one) for n, one in rows])
    found = service.examine()
    assert found["audit"].state == "ok", "the chain itself holds"
    assert found["audit, noted"].state == "wrong"
    assert "has it no more" in found["audit, noted"].told


@pytest.mark.parametrize("left", range(6))
def test_an_audit_that_was_cut_is_found_out_also_when_it_has_grown_again(service: Service, left: int) -> None:
    for _ in range(3):
        service.write_lines(2)
    service.forge(lambda rows: rows[:left])
    found = service.examine()
    assert found["audit"].state == "ok", "the chain itself holds"
    assert found["audit, noted"].state == "wrong"
    service.write_lines(9)
    assert service.examine()["audit, noted"].state == "wrong"


def test_lines_that_are_dropped_as_if_by_retention_and_are_too_young_are_found_out(service: Service) -> None:
    service.write_lines(4)
    service.clock.sleep(timedelta(days=30).total_seconds())
    service.write_lines(2)
    service.store.prune(journal=(AUDIT, service.clock.now()))
    found = service.examine()
    assert found["audit"].state == "ok"
    assert "too young to be dropped" in found["audit, noted"].told


def test_audit_lines_that_retention_drops_contradict_no_mark(service: Service) -> None:
    service.write_lines(4)
    service.clock.sleep(timedelta(days=service.settings.retention.audit_days - 20).total_seconds())
    service.marks.step()  # the mark is renewed; the line that it names is as old as it was
    service.clock.sleep(timedelta(days=30).total_seconds())
    service.write_lines(2)
    kept_from = service.clock.now() - timedelta(days=service.settings.retention.audit_days)
    assert service.store.prune(journal=(AUDIT, kept_from)) == 4
    assert service.examine()["audit, noted"].state == "ok"


def test_a_line_that_stands_alone_is_noted_at_the_next_look_and_many_lines_every_ten_minutes(
    service: Service,
) -> None:
    service.clock.sleep(NOTED_AFTER.total_seconds())
    before = service.count_marks()
    service.write_lines(1)
    assert service.count_marks() == before + 1
    for _ in range(60):
        service.store.add_journal(
            [JournalEntry(AUDIT, service.clock.now(), f"call {service.clock.now()}", "act", "200")]
        )
        service.marks.step()
        service.clock.sleep(60)
    assert service.count_marks() == before + 6
    service.clock.sleep(RENEWED_AFTER.total_seconds() / 2)
    service.marks.step()
    count = service.count_marks()
    service.marks.step()
    assert service.count_marks() == count, "nothing has changed"


def test_of_two_processes_one_notes_an_end(service: Service) -> None:
    other = StoreMarks(service.log, service.store, service.clock, "worker-2")
    other.step()
    service.write_lines(1)
    count = service.count_marks()
    other.step()
    assert service.count_marks() == count
    mark = find_mark(service.log)
    assert mark is not None
    assert mark.body.audit is not None
    assert mark.body.audit.number == service.read_numbers()[-1]


def test_an_end_that_was_noted_for_another_store_says_nothing_of_this_one(service: Service) -> None:
    service.write_lines(3)
    service.forge(lambda rows: rows[:1])
    service.store.write_notes("store", {"identity": b"two"})
    found = service.examine()
    assert (found["audit, noted"].state, "noted no end" in found["audit, noted"].told) == ("note", True)


def restored(service: Service, made_at: datetime) -> None:
    """Put the audit of `made_at` in the place of this one, with the line that a restore writes."""
    there = {line.decided: line.at for line in service.store.journal(AUDIT)}
    kept = sum(at < made_at for at in there.values())
    service.forge(lambda rows: rows[:kept])
    said = {"made_at": made_at.isoformat(), "signed_by": "4f2c", "trusted": []}
    at = service.clock.now()
    seen = f"from {THIS_MACHINE}, call 1"
    service.store.add_journal(
        [JournalEntry(AUDIT, at, seen, describe_act(RESTORE, said), "done", caller="cli:ada")]
    )


def test_a_restored_store_is_told_as_restored_and_not_as_cut(service: Service) -> None:
    service.write_lines(3)
    service.clock.sleep(60)
    made_at = service.clock.now()
    service.clock.sleep(60)
    for _ in range(3):
        service.write_lines(2)
    restored(service, made_at)
    for _ in range(2):
        found = service.examine()
        assert found["audit, noted"].state == "ok"
        assert "but for 3 of before the restore" in found["audit, noted"].told
        told = found["store, restored"]
        assert told.state == "note"
        assert "by cli:ada from the backup of 2026-03-01 12:11 UTC (signed by key 4f2c)" in told.told
        assert "3 ends of it were noted by the log" in told.told
        service.write_lines(9)


def test_a_restore_explains_no_line_of_before_its_backup_and_none_of_after_it(service: Service) -> None:
    service.write_lines(3)
    service.clock.sleep(60)
    made_at = service.clock.now()
    service.clock.sleep(60)
    service.write_lines(2)
    restored(service, made_at)
    service.clock.sleep(60)
    service.write_lines(2)
    assert service.examine()["audit, noted"].state == "ok"
    service.forge(lambda rows: rows[:-1])
    assert service.examine()["audit, noted"].state == "wrong"
    service.forge(lambda rows: [(number, one.replace(b"act 1", b"lie 1")) for number, one in rows])
    assert service.examine()["audit, noted"].state == "wrong"
