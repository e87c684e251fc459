"""The reasons for holds are a closed list: each has one guard, or none and a state of its own."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

from predrain.actions.core.state_machine import Event, apply_event
from predrain.actions.engine.journal_compaction import hold_drain, same_reasons
from predrain.actions.guards import GUARDS, Refuse
from predrain.data.drain import DrainState
from predrain.data.hold_reason import HoldCause, HoldReason
from predrain.data.ids import OsdId
from predrain.data.wire.wire_bodies import DRAIN
from tests.actions.made import NOW, a_drain

MINUTE = timedelta(minutes=1)

_WITHOUT_GUARD = {HoldReason.MODE, HoldReason.UNREACHABLE, HoldReason.STANDSTILL, HoldReason.OTHER}
_KEPT = Path(__file__).parents[1] / "service" / "v0_1_0" / "cluster_keys.json"


def test_every_reason_but_four_has_one_guard_with_one_sentence() -> None:
    codes = [guard.code for guard in GUARDS]
    assert len(codes) == len(set(codes))
    assert set(codes) | _WITHOUT_GUARD == set(HoldReason)
    assert not set(codes) & _WITHOUT_GUARD
    ends = [guard.ends for guard in GUARDS]
    assert len(set(ends)) == len(ends)


def test_a_drain_of_version_0_1_0_is_read_with_its_reasons_and_an_unknown_one_is_other() -> None:
    body = json.loads(json.loads(_KEPT.read_text())["predrain/drain/osd.0"].partition("\n")[2])
    assert "held_for" not in body
    body["held_for"] = ["space", "phase-of-the-moon"]
    read = DRAIN.read(json.dumps(body).encode())
    assert read.held_for == (HoldReason.SPACE, HoldReason.OTHER)
    assert DRAIN.read(DRAIN.write(read)) == read


def _refuse_space(percent: int, osd: int) -> Refuse:
    return Refuse(HoldReason.SPACE, f"osd.{osd} would be {percent}% full, limit 85%.", osd=OsdId(osd))


def test_a_hold_that_is_the_same_value_is_no_new_revision() -> None:
    held = hold_drain(a_drain(state=DrainState.HOLDING), (_refuse_space(86, 4),), NOW)
    assert hold_drain(held, (_refuse_space(86, 4),), NOW + MINUTE) is held


def test_other_figures_are_the_same_hold_with_the_new_sentence() -> None:
    held = hold_drain(a_drain(state=DrainState.HOLDING), (_refuse_space(86, 4),), NOW)
    later = hold_drain(held, (_refuse_space(87, 4),), NOW + MINUTE)
    assert later.held_by == ("osd.4 would be 87% full, limit 85%.",)
    assert later.hold_cause == held.hold_cause == HoldCause(HoldReason.SPACE, OsdId(4))
    assert (later.held_since, later.updated_at) == (NOW, held.updated_at)
    assert same_reasons((_refuse_space(87, 4),), later, (held,))


def test_another_osd_is_another_cause_for_the_same_reason() -> None:
    held = hold_drain(a_drain(state=DrainState.HOLDING), (_refuse_space(86, 4),), NOW)
    later = hold_drain(held, (_refuse_space(86, 5),), NOW + MINUTE)
    assert later.hold_cause == HoldCause(HoldReason.SPACE, OsdId(5))
    assert later.held_since == NOW


def test_a_drain_that_goes_on_has_no_cause_of_a_hold() -> None:
    held = hold_drain(a_drain(state=DrainState.DRAINING), (_refuse_space(86, 4),), NOW)
    assert held.state is DrainState.HOLDING
    goes_on = apply_event(held, Event.PASSED, NOW + MINUTE)
    assert (goes_on.hold_cause, goes_on.held_osd) == (None, None)


def test_a_hold_of_version_0_1_0_has_a_cause_without_a_reason() -> None:
    assert a_drain(held_by=("osd.4 is full.",)).hold_cause == HoldCause(HoldReason.OTHER)


def test_every_cause_of_a_hold_is_stored_with_the_drain() -> None:
    held = hold_drain(a_drain(state=DrainState.HOLDING), (_refuse_space(86, 4),), NOW)
    assert DRAIN.read(DRAIN.write(held)) == held
