"""The texts that one mgr stores for the next are signed with `executor_key`. A text without a valid signature is named,
and the module does not act on it.
"""

from __future__ import annotations

import json

import pytest

from predrain.actions.ceph_mgr.predrain.kept_texts import NO_KEY, KeptText, read_kept, write_kept
from predrain.actions.ceph_mgr.predrain.step_executor import (
    REMEMBERED_SECONDS,
    STORE,
    UNKNOWN,
    StepAnswer,
    StepExecutor,
)
from predrain.actions.ceph_mgr.predrain.text_signing import sign_text
from tests.actions.ceph_mgr.test_mgr_step_executor import KEY, NOW, STEP, FakeMgr, consider

OTHER = "o" * 44


def test_a_text_that_was_kept_with_the_key_is_read_with_the_key() -> None:
    mgr = FakeMgr()
    write_kept(mgr, "known", KEY, "text")
    assert read_kept(mgr, "known", KEY) == KeptText("text")
    write_kept(mgr, "known", KEY, "")
    assert read_kept(mgr, "known", KEY) == KeptText(None)


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("text", "carries no signature"),
        (sign_text(OTHER, "mgr/predrain/known", "text"), "is signed with another executor_key"),
        (sign_text(KEY, "mgr/predrain/known", "text") + "!", "carries a wrong signature"),
        (sign_text(KEY, "mgr/predrain/steps", "text"), "carries a wrong signature"),
        (sign_text(KEY, "known", "text"), "carries a wrong signature"),
    ],
    ids=["unsigned", "of another key", "changed", "of the module's other text", "of a text of the service"],
)
def test_a_kept_text_that_the_key_has_not_signed_is_not_believed_and_is_named(value: str, why: str) -> None:
    found = read_kept(FakeMgr(store={"known": value}), "known", KEY)
    assert found.text is None
    assert found.doubt.startswith(f"config-key mgr/predrain/known {why}")


@pytest.mark.parametrize("key", ["", "short"])
def test_without_a_key_a_text_is_given_out_with_its_doubt_and_a_signed_one_is_not(key: str) -> None:
    mgr = FakeMgr()
    write_kept(mgr, "known", key, "text")
    assert read_kept(mgr, "known", key) == KeptText("text", NO_KEY)
    write_kept(mgr, "known", KEY, "text")
    assert read_kept(mgr, "known", key).text is None


def test_the_next_mgr_knows_the_steps_that_were_taken_up() -> None:
    mgr = FakeMgr()
    assert consider(mgr) == StepAnswer(True, "done so", 41)
    assert mgr.store[STORE].startswith("predrain-signed 1 ")
    assert consider(mgr, hand=StepExecutor(mgr)) == StepAnswer(True, "done so", 41)
    assert len(mgr.sent) == 1


@pytest.mark.parametrize(
    "forged",
    [
        "{}",
        json.dumps({STEP.id: [NOW, [True, "done", 41, False]]}),
        sign_text(OTHER, "mgr/predrain/steps", "{}"),
    ],
    ids=["steps forgotten", "an answer made up", "another key"],
)
def test_a_forged_memory_of_steps_lets_no_step_run_twice_and_answers_none(forged: str) -> None:
    mgr = FakeMgr()
    consider(mgr)
    mgr.store[STORE] = forged
    hand = StepExecutor(mgr)
    assert consider(mgr, hand=hand, now=NOW + 5) is None
    assert "it is not believed, and no step is taken up for" in hand.last
    assert consider(mgr, hand=hand, now=NOW + 4 + REMEMBERED_SECONDS) is None
    after = consider(mgr, hand=hand, now=NOW + 5 + REMEMBERED_SECONDS)
    assert after is not None
    assert after.refused, "it has expired by then"
    assert len(mgr.sent) == 1
    assert after != UNKNOWN


def test_after_the_wait_steps_are_taken_up_and_kept_signed_again() -> None:
    mgr = FakeMgr(store={STORE: "{}"})
    hand = StepExecutor(mgr)
    assert consider(mgr, hand=hand, now=NOW - REMEMBERED_SECONDS) is None
    assert consider(mgr, hand=hand) == StepAnswer(True, "done so", 41)
    assert mgr.store[STORE].startswith("predrain-signed 1 ")
