"""The pace of a run says by figures whether the machine took the load."""

from __future__ import annotations

from dataclasses import replace

from tests.chaos.pace import LoadPace, await_scored

PACE = LoadPace(
    seconds=100.0,
    due=100_000,
    read=99_900,
    accepted=100_100,
    undelivered=200,
    scored=99_000,
    drain_seconds=2.0,
)


def test_a_load_that_was_read_and_scored_in_time_was_taken() -> None:
    assert PACE.is_load_complete
    assert PACE.has_kept_up
    assert PACE.backlog == 1_100


def test_a_load_that_the_generators_did_not_read_is_not_complete() -> None:
    assert not replace(PACE, read=90_000).is_load_complete


def test_a_service_that_has_more_than_ten_seconds_of_the_load_to_score_fell_behind() -> None:
    behind = replace(PACE, scored=80_000)
    assert not behind.has_kept_up
    assert behind.scored_per_second == 800.0


def test_waiting_ends_with_the_last_outlook() -> None:
    counts = iter([3, 5, 7])
    await_scored(lambda: next(counts), 7)
    assert next(counts, None) is None
