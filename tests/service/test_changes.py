"""Each listener hears of every change, and the more listeners there are, the less often each of them hears."""

from __future__ import annotations

from contextlib import ExitStack

from hypothesis import given
from hypothesis import strategies as st

from predrain.service.app.changes import APART_SECONDS, SOONEST_SECONDS, ChangeFeed, ChangeKind
from predrain.service.rest.change_stream_routes import HEARTBEAT_SECONDS


def test_few_listeners_hear_of_a_change_four_times_a_second() -> None:
    changes = ChangeFeed()
    with changes.count_listener(), changes.count_listener():
        assert changes.pace == SOONEST_SECONDS


@given(st.integers(0, 250))
def test_all_listeners_together_hear_of_no_more_than_so_many_changes_a_second(count: int) -> None:
    changes = ChangeFeed()
    with ExitStack() as listening:
        for _ in range(count):
            listening.enter_context(changes.count_listener())
        assert count / changes.pace <= 1 / APART_SECONDS + 1e-9
    assert changes.pace == SOONEST_SECONDS


def test_even_a_thousand_listeners_hear_of_a_change_before_the_next_sign_of_life() -> None:
    changes = ChangeFeed()
    with ExitStack() as listening:
        for _ in range(1000):
            listening.enter_context(changes.count_listener())
        assert changes.pace < HEARTBEAT_SECONDS


def test_a_listener_who_waited_hears_of_all_kinds_that_changed_meanwhile() -> None:
    changes = ChangeFeed()
    seen, _ = changes.find_changes_since(0)
    changes.notify_change(ChangeKind.OSDS)
    changes.notify_change(ChangeKind.HALT, ChangeKind.STATUS)
    number, kinds = changes.find_changes_since(seen)
    assert kinds == {ChangeKind.OSDS, ChangeKind.HALT, ChangeKind.STATUS}
    assert changes.find_changes_since(number) == (number, frozenset())


def test_one_who_was_away_for_too_long_takes_everything_for_changed() -> None:
    changes = ChangeFeed(remembered=2)
    for _ in range(4):
        changes.notify_change(ChangeKind.DRAINS)
    assert changes.find_changes_since(1)[1] == frozenset(ChangeKind)
