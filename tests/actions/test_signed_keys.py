"""A text in the config_key store is believed only as it was signed: a forged, changed, copied or old text moves
nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from predrain.actions.ceph_mgr.predrain.text_signing import (
    NotVerified,
    SignatureFault,
    sign_text,
    verify_text,
)
from predrain.actions.cluster.cluster_port import ClusterUnreachable
from predrain.actions.cluster.signed_keys import (
    ConfirmedTextsChanged,
    NoSigningKey,
    SignedKeys,
    Unverified,
    compute_digest,
)
from predrain.actions.controller.replication import DrainReplication, encode_drain_copy, name_of
from predrain.data.drain import DrainState
from predrain.data.store.sqlite_store import MEMORY, SqliteStore
from tests.actions.made import NOW, wide_spec
from tests.actions.made_config_keys import SIGNING_KEY, KeepInMemory
from tests.actions.run import whole
from tests.actions.test_replication import Kept, whole_drain
from tests.settings_by_text import by_setting

NAMES = st.text(min_size=1, max_size=30)
TEXTS = st.text(max_size=200)
OTHER_KEY = "another key for tests, of thirty-two letters too"
BELIEVED = ("drain/osd.0", "ended", "steps", "lives", "heard", "requests/5", "answers/5")


@pytest.fixture
def run() -> Iterator[Kept]:
    with Kept(replace(wide_spec(), settings={"osd/osd_max_backfills": "8"}, balancer=True)) as run:
        yield run


# -- the signed form -----------------------------------------------------------------------------------------


@given(NAMES, TEXTS)
def test_a_signed_text_is_read_back_under_its_name(name: str, text: str) -> None:
    assert verify_text(SIGNING_KEY, name, sign_text(SIGNING_KEY, name, text)) == text


@given(NAMES, TEXTS, st.data())
def test_a_text_of_which_any_one_byte_is_changed_is_refused(
    name: str, text: str, data: st.DataObject
) -> None:
    value = sign_text(SIGNING_KEY, name, text).encode()
    at = data.draw(st.integers(0, len(value) - 1))
    byte = data.draw(st.integers(0, 255).filter(lambda byte: byte != value[at]))
    changed = (value[:at] + bytes([byte]) + value[at + 1 :]).decode("utf-8", "replace")
    with pytest.raises(NotVerified):
        verify_text(SIGNING_KEY, name, changed)


@given(NAMES, TEXTS, st.integers(1, 50))
def test_a_text_that_is_cut_or_lengthened_is_refused(name: str, text: str, count: int) -> None:
    value = sign_text(SIGNING_KEY, name, text)
    for changed in (value[:-count], value + "x" * count):
        with pytest.raises(NotVerified):
            verify_text(SIGNING_KEY, name, changed)


@given(NAMES, NAMES, TEXTS)
def test_a_text_that_is_copied_to_another_name_is_refused(name: str, other: str, text: str) -> None:
    if name == other:
        return
    with pytest.raises(NotVerified) as raised:
        verify_text(SIGNING_KEY, other, sign_text(SIGNING_KEY, name, text))
    assert raised.value.fault is SignatureFault.WRONG


@given(NAMES, TEXTS)
def test_a_text_of_another_key_is_told_apart_from_one_without_a_signature(name: str, text: str) -> None:
    with pytest.raises(NotVerified) as raised:
        verify_text(SIGNING_KEY, name, sign_text(OTHER_KEY, name, text))
    assert raised.value.fault is SignatureFault.OTHER_KEY
    with pytest.raises(NotVerified) as raised:
        verify_text(SIGNING_KEY, name, text)
    assert raised.value.fault is SignatureFault.UNSIGNED


# -- the config_key store --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", BELIEVED)
def test_a_text_without_a_good_signature_is_not_read_not_overwritten_and_not_removed(name: str) -> None:
    for forged in (
        "by hand",
        sign_text(OTHER_KEY, name, "by hand"),
        sign_text(SIGNING_KEY, "other", "by hand"),
    ):
        keep = KeepInMemory({name: forged})
        for attempt in (
            lambda keep=keep: keep.signed.read(name),
            lambda keep=keep: keep.signed.write(name, "ours"),
            lambda keep=keep: keep.signed.remove(name),
        ):
            with pytest.raises(Unverified, match=f"ceph config-key rm predrain/{name}"):
                attempt()
        assert keep.texts == {name: forged}


def test_a_halt_needs_no_signature_and_is_read_without_a_key() -> None:
    keep = KeepInMemory({"halt": "smoke"})
    assert keep.signed.read("halt") == "smoke"
    assert SignedKeys(keep, None).read("halt") == "smoke"
    SignedKeys(keep, None).write("halt", "fire")
    assert keep.texts == {"halt": "fire"}


def test_without_a_key_nothing_is_read_or_written_and_the_sentence_names_the_option() -> None:
    keep = KeepInMemory({"steps": "5 one"})
    with pytest.raises(NoSigningKey, match="--signing-key FILE"):
        SignedKeys(keep, None).read("steps")
    with pytest.raises(NoSigningKey, match="--signing-key FILE"):
        SignedKeys(keep, None).write("requests/5", "{}")
    assert keep.texts == {"steps": "5 one"}


def test_the_key_is_not_shown_with_the_object_that_holds_it() -> None:
    assert SIGNING_KEY not in repr(KeepInMemory().signed)


def test_a_person_signs_exactly_the_list_that_was_shown_and_never_a_request() -> None:
    keep = KeepInMemory({"steps": "5 one", "requests/5": "{}", "halt": "smoke"})
    keep.signed.write("ended", "osd.1-x 3 cancelled")
    listed = keep.signed.find_unverified()
    assert [(one.name, one.is_adoptable) for one in listed] == [("requests/5", False), ("steps", True)]
    digest = compute_digest(one for one in listed if one.is_adoptable)
    keep.texts["steps"] = "6 two"
    with pytest.raises(ConfirmedTextsChanged):
        keep.signed.adopt(digest)
    assert keep.texts["steps"] == "6 two"
    keep.texts["steps"] = "5 one"
    assert keep.signed.adopt(digest) == ("steps",)
    assert keep.signed.read("steps") == "5 one"
    assert keep.texts["requests/5"] == "{}"


# -- the controller ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stored", [True, False], ids=["a drain of the store", "a drain that no store knows"])
@pytest.mark.parametrize("fault", list(SignatureFault))
def test_a_forged_drain_of_a_higher_revision_moves_nothing_until_it_is_removed(
    run: Kept, fault: SignatureFault, *, stored: bool
) -> None:
    if stored:
        drain = run.drain("osd.0")
        run.until(drain, DrainState.DRAINING)
        run.ticks(3)
        drain = run.known(drain)
    else:
        run.ticks(2)
        drain = replace(whole_drain(), state=DrainState.DRAINING)
    forged = replace(
        drain, revision=drain.revision + 500, asked_by="nobody", ours=by_setting({"osd.1/reweight": "0.0"})
    )
    name = name_of(forged)
    good = run.keep.texts.get(name)
    run.keep.texts[name] = {
        SignatureFault.UNSIGNED: encode_drain_copy(forged),
        SignatureFault.OTHER_KEY: sign_text(OTHER_KEY, name, encode_drain_copy(forged)),
        SignatureFault.WRONG: sign_text(SIGNING_KEY, "drain/osd.77", encode_drain_copy(forged)),
    }[fault]
    put, sent = run.keep.texts[name], len(run.watched.commands)
    run.started()
    for _ in range(5):
        assert f"predrain/{name}" in run.tick().trouble
    assert len(run.watched.commands) == sent
    assert run.keep.texts[name] == put
    assert not [one for one in run.store.drains() if one.asked_by == "nobody"]
    run.keep.texts.pop(name)
    if good is not None:
        run.keep.texts[name] = good
    assert run.tick().trouble == ""
    if stored:
        run.until(drain, DrainState.VERIFIED)
        assert whole(run)
    else:
        run.ticks(5)
        assert len(run.watched.commands) == sent


def test_a_drain_kept_by_an_older_version_holds_until_a_person_confirms_the_list_and_then_goes_on(
    run: Kept,
) -> None:
    drain = run.drain("osd.0")
    run.until(drain, DrainState.DRAINING)
    run.ticks(3)
    run.keep.texts = {name: run.keep.signed.read(name) or "" for name in run.keep.texts}
    run.started()
    sent = len(run.watched.commands)
    for _ in range(5):
        assert "`predrain ceph adopt`" in run.tick().trouble
    assert len(run.watched.commands) == sent
    listed = run.keep.signed.find_unverified()
    assert {name_of(drain), "steps"} <= {one.name for one in listed}
    run.keep.signed.adopt(compute_digest(listed))
    assert run.tick().trouble == ""
    run.until(drain, DrainState.VERIFIED)
    assert whole(run)


def test_an_old_signed_copy_that_is_put_back_does_not_win_over_the_store(run: Kept) -> None:
    drain = run.drain("osd.0")
    run.until(drain, DrainState.DRAINING)
    name = name_of(drain)
    old = run.keep.texts[name]
    run.ticks(20)
    now = run.known(drain)
    run.keep.texts[name] = old
    run.started()
    run.tick()
    assert run.known(drain).revision >= now.revision
    assert run.known(drain).ours.items() >= now.ours.items()
    run.until(drain, DrainState.VERIFIED)
    assert whole(run)


def test_the_signed_copy_of_a_drain_that_ended_does_not_begin_it_anew(run: Kept) -> None:
    drain = run.drain("osd.0")
    run.until(drain, DrainState.DRAINING)
    name, old = name_of(drain), run.keep.texts[name_of(drain)]
    run.controller.requests.cancel(drain.id, "operator", run.cluster.now)
    run.until(drain, DrainState.CANCELLED)
    run.keep.texts[name] = old
    run.lose_the_store()
    sent = len(run.watched.commands)
    run.ticks(5)
    assert len(run.watched.commands) == sent
    assert [one.state for one in run.store.drains()] in ([], [DrainState.CANCELLED])


def test_a_step_counter_that_went_back_holds_and_a_counter_that_is_gone_is_counted_on(run: Kept) -> None:
    drain = run.drain("osd.0")
    run.until(drain, DrainState.DRAINING)
    old = run.keep.signed
    run.keep.texts["steps"] = sign_text(SIGNING_KEY, "steps", "0 a controller of long ago")
    run.started()
    sent = len(run.watched.commands)
    for _ in range(4):
        assert "step counter predrain/steps says 0" in run.tick().trouble
    with pytest.raises(ClusterUnreachable):
        DrainReplication(run.store, old).mirror(NOW)
    assert len(run.watched.commands) == sent
    del run.keep.texts["steps"]
    assert run.tick().trouble == ""
    run.started()
    assert run.tick().trouble == "", "the next process finds no counter below the one that it has noted"
    run.until(drain, DrainState.VERIFIED)


def test_two_controllers_with_different_keys_hold_and_say_which_file_to_share() -> None:
    keep, store = KeepInMemory(), SqliteStore(MEMORY)
    keep.signed.write("steps", "5 one")
    with pytest.raises(Unverified, match="give all controllers the same file as `signing_key` of"):
        DrainReplication(store, SignedKeys(keep, OTHER_KEY)).mirror(NOW)
    store.close()
