"""Reported ends of drives, applied to the lifespans of histories: a drained disk does not count as a healthy one."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from predrain.data.history import EPOCH, UnreadableHistory
from predrain.data.lifespan import HistorySource, Lifespans
from predrain.data.outcome import DriveFate
from predrain.data.reported_endings import ReportedEnding, apply_reported_endings, read_words

START = date(2018, 1, 1)
BEGIN = (START - EPOCH).days
END = 180
"""Last day of the history, counted from its first."""


def source(first: int = 0, last: int = 100, *, died: bool = False) -> HistorySource:
    """Drive A, and drive Z, which is in service to the end."""
    return HistorySource(
        (),
        Lifespans(
            serials=np.array(["A", "Z"], dtype=object),
            first=np.array([BEGIN + first, BEGIN]),
            last=np.array([BEGIN + last, BEGIN + END]),
            died=np.array([died, False]),
        ),
    )


def said(day: int, fate: DriveFate, serial: str = "A") -> ReportedEnding:
    return ReportedEnding(serial, START + timedelta(days=day), fate)


def end_of(found: HistorySource, place: int = 0) -> tuple[int, bool]:
    return int(found.lifespans.last[place]) - BEGIN, bool(found.lifespans.died[place])


@pytest.mark.parametrize("fate", [DriveFate.FAILED, DriveFate.CONFIRMED])
def test_a_confirmed_drive_counts_as_a_death_on_its_last_day(fate: DriveFate) -> None:
    assert end_of(apply_reported_endings([source()], [said(110, fate)])[0]) == (100, True)
    assert end_of(apply_reported_endings([source()], [said(60, fate)])[0]) == (60, True)


def test_a_cleared_drive_counts_as_alive_up_to_the_day_it_was_looked_at() -> None:
    assert end_of(apply_reported_endings([source()], [said(120, DriveFate.CLEARED)])[0]) == (120, False)
    assert end_of(apply_reported_endings([source(died=True)], [said(120, DriveFate.CLEARED)])[0]) == (
        120,
        False,
    )


def test_a_drained_drive_that_nobody_looked_at_is_censored_at_the_drain() -> None:
    assert end_of(apply_reported_endings([source()], [said(40, DriveFate.UNVERIFIED)])[0]) == (40, False)


def test_a_drained_drive_that_was_then_confirmed_is_a_death_and_one_cleared_is_alive() -> None:
    drain = said(40, DriveFate.UNVERIFIED)
    assert end_of(apply_reported_endings([source()], [drain, said(50, DriveFate.CONFIRMED)])[0]) == (50, True)
    assert end_of(apply_reported_endings([source()], [drain, said(110, DriveFate.CLEARED)])[0]) == (
        110,
        False,
    )


def test_where_a_confirmed_drive_went_does_not_undo_its_death() -> None:
    words = [said(50, DriveFate.CONFIRMED), said(55, DriveFate.REPLACED)]
    assert end_of(apply_reported_endings([source()], words)[0]) == (50, True)


def test_a_cleared_drive_that_was_drained_again_is_censored_at_the_second_drain() -> None:
    words = [said(20, DriveFate.UNVERIFIED), said(30, DriveFate.CLEARED), said(70, DriveFate.UNVERIFIED)]
    assert end_of(apply_reported_endings([source()], words)[0]) == (70, False)


def test_a_death_that_the_history_books_stands_against_an_unverified_drain() -> None:
    assert end_of(apply_reported_endings([source(died=True)], [said(40, DriveFate.UNVERIFIED)])[0]) == (
        100,
        True,
    )


def test_a_suspicion_alone_changes_nothing() -> None:
    assert end_of(apply_reported_endings([source()], [said(40, DriveFate.SUSPECTED)])[0]) == (100, False)


def test_a_word_from_after_the_history_says_nothing_of_a_drive_that_was_still_in_service() -> None:
    assert end_of(apply_reported_endings([source()], [said(END + 400, DriveFate.FAILED, "Z")])[0], 1) == (
        END,
        False,
    )


def test_a_word_belongs_to_the_span_that_had_begun_last() -> None:
    early, late = source(0, 30), source(60, 100)
    one, two = apply_reported_endings([early, late], [said(99, DriveFate.FAILED)])
    assert end_of(one) == (30, False)
    assert end_of(two) == (99, True)
    one, two = apply_reported_endings([early, late], [said(31, DriveFate.FAILED)])
    assert (end_of(one), end_of(two)) == ((30, True), (100, False))


def test_a_word_after_until_is_not_heard() -> None:
    words = [said(40, DriveFate.UNVERIFIED), said(50, DriveFate.CONFIRMED)]
    cut = apply_reported_endings([source()], words, until=START + timedelta(days=45))
    assert end_of(cut[0]) == (40, False)


@given(st.lists(st.tuples(st.integers(0, END + 50), st.sampled_from(list(DriveFate))), max_size=6))
def test_a_life_keeps_its_beginning_and_ends_inside_the_history_for_any_reported_fates(
    told: list[tuple[int, DriveFate]],
) -> None:
    (found,) = apply_reported_endings([source(10)], [said(day, fate) for day, fate in told])
    spans = found.lifespans
    assert (spans.first == source(10).lifespans.first).all()
    assert (spans.last >= spans.first).all()
    assert (spans.last <= BEGIN + END).all()
    assert end_of(found, 1) == (END, False)


def test_a_file_of_outcomes_is_read_and_a_broken_row_is_named(tmp_path: Path) -> None:
    file = tmp_path / "outcomes.csv"
    file.write_text("serial_number,date,fate\nA,2018-02-01,Confirmed\n")
    assert read_words(file) == (ReportedEnding("A", date(2018, 2, 1), DriveFate.CONFIRMED),)
    file.write_text("serial_number,date,fate\nA,2018-02-01,confirmed\nB,some day,failed\n")
    with pytest.raises(UnreadableHistory, match="row 2"):
        read_words(file)
    file.write_text("serial_number,date\nA,2018-02-01\n")
    with pytest.raises(UnreadableHistory, match="no column fate"):
        read_words(file)
