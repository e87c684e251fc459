"""Who listens hears of every change, and the less often the more of them listen."""

from __future__ import annotations

from contextlib import ExitStack

from hypothesis import given
from hypothesis import strategies as st

from predrain.service.changes import APART_SECONDS, SOONEST_SECONDS, ChangeKind, Changes
from predrain.service.rest.events import HEARTBEAT_SECONDS


def test_few_listeners_hear_of_a_change_four_times_a_second() -> None:
    changes = Changes()
    with changes.listening(), changes.listening():
        assert changes.pace == SOONEST_SECONDS


@given(st.integers(0, 250))
def test_all_listeners_together_hear_of_no_more_than_so_many_changes_a_second(count: int) -> None:
    changes = Changes()
    with ExitStack() as listening:
        for _ in range(count):
            listening.enter_context(changes.listening())
        assert count / changes.pace <= 1 / APART_SECONDS + 1e-9
    assert changes.pace == SOONEST_SECONDS


def test_even_a_thousand_listeners_hear_of_a_change_before_the_next_sign_of_life() -> None:
    changes = Changes()
    with ExitStack() as listening:
        for _ in range(1000):
            listening.enter_context(changes.listening())
        assert changes.pace < HEARTBEAT_SECONDS


def test_a_listener_who_waited_hears_of_all_kinds_that_changed_meanwhile() -> None:
    changes = Changes()
    seen, _ = changes.since(0)
    changes.tell(ChangeKind.OSDS)
    changes.tell(ChangeKind.HALT, ChangeKind.STATUS)
    number, kinds = changes.since(seen)
    assert kinds == {ChangeKind.OSDS, ChangeKind.HALT, ChangeKind.STATUS}
    assert changes.since(number) == (number, frozenset())


def test_one_who_was_away_for_too_long_takes_everything_for_changed() -> None:
    changes = Changes(remembered=2)
    for _ in range(4):
        changes.tell(ChangeKind.DRAINS)
    assert changes.since(1)[1] == frozenset(ChangeKind)
