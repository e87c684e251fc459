"""The state table."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from predrain.actions.core.state_machine import (
    ENDED,
    TABLE,
    Event,
    NotInTable,
    apply_event,
    build_state_reference,
    can_take_event,
)
from predrain.data.drain import DrainState
from tests.actions.made import NOW, a_drain

REFERENCE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "states.md"


def test_the_manual_is_written_from_the_table() -> None:
    assert REFERENCE.read_text() == build_state_reference()


def test_the_picture_names_every_state() -> None:
    drawn = (REFERENCE.parents[1] / "pictures" / "states.svg").read_text()
    assert all(f">{state}</text>" in drawn for state in DrainState)


def test_a_state_and_an_event_have_one_row() -> None:
    pairs = [(row.state, row.event) for row in TABLE]
    assert len(pairs) == len(set(pairs))


def test_every_state_can_be_reached_and_only_ended_ones_cannot_be_left() -> None:
    reached = {row.next for row in TABLE} | {DrainState.PROPOSED}
    assert set(DrainState) - reached == set()
    assert {state for state in DrainState if not any(row.state is state for row in TABLE)} == set(ENDED)


@given(st.sampled_from(DrainState), st.sampled_from(Event))
def test_an_event_that_the_state_table_lacks_is_refused_with_the_events_that_it_has(
    state: DrainState, event: Event
) -> None:
    drain = a_drain(state=state)
    if can_take_event(drain, event):
        assert apply_event(drain, event, NOW).revision == drain.revision + 1
        return
    with pytest.raises(NotInTable) as refused:
        apply_event(drain, event, NOW)
    assert state.value in str(refused.value)
    for row in TABLE:
        if row.state is state:
            assert row.event.value in str(refused.value)


@given(st.lists(st.sampled_from(Event), max_size=30))
def test_any_sequence_of_events_stays_in_the_table_and_never_leaves_an_end(events: list[Event]) -> None:
    drain = a_drain(state=DrainState.PROPOSED)
    for event in events:
        if can_take_event(drain, event):
            assert drain.state not in ENDED
            drain = apply_event(drain, event, NOW)


@pytest.mark.parametrize(
    "state", [DrainState.PREPARING, DrainState.DRAINING, DrainState.HOLDING, DrainState.DRAINED]
)
def test_a_resume_leads_back_to_where_it_was_paused(state: DrainState) -> None:
    paused = apply_event(a_drain(state=state), Event.PAUSE, NOW)
    assert paused.state is DrainState.PAUSED
    assert apply_event(paused, Event.RESUME, NOW).state is state
    assert apply_event(paused, Event.RESUME, NOW).resume_to is None


def test_a_failed_drain_says_for_what_it_needs_a_person() -> None:
    failed = apply_event(a_drain(), Event.BREAK, NOW, why="the mon answers EACCES")
    assert failed.ended_why == "the mon answers EACCES"
    assert apply_event(failed, Event.CANCEL, NOW).state is DrainState.CANCELLING


def test_a_hold_ends_by_itself_and_a_pause_does_not() -> None:
    holding = apply_event(a_drain(), Event.REFUSED, NOW)
    assert apply_event(holding, Event.PASSED, NOW).state is DrainState.DRAINING
    assert not can_take_event(apply_event(a_drain(), Event.PAUSE, NOW), Event.PASSED)
