"""A drain lives in the store and in the cluster: either is lost, both differ, another controller leads."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from predrain.actions.cluster.cluster_port import ClusterUnreachable
from predrain.actions.cluster.signed_keys import SignedKeys
from predrain.actions.controller.controller import Controller
from predrain.actions.controller.replication import (
    DrainReplication,
    decode_drain_copy,
    encode_drain_copy,
    name_of,
)
from predrain.actions.controller.request_execution import NotLeading, RequestNotReplicated
from predrain.actions.core.decision_answers import TickReport
from predrain.data.drain import Drain, DrainState
from predrain.data.halt_state import HaltAuthor
from predrain.data.store.sqlite_store import MEMORY, SqliteStore
from tests.actions.made import NOW, a_drain, a_plan, calm_view, wide_spec
from tests.actions.made_config_keys import SIGNING_KEY, KeepInMemory, LeaseInHand
from tests.actions.run import Run, empty, map_of, whole
from tests.settings_by_text import by_setting

S = DrainState


class Kept(Run):
    """A run whose cluster keeps drains, with a lease."""

    def __post_init__(self) -> None:
        self.keep, self.lease, self.processes = KeepInMemory(), LeaseInHand(), 0
        super().__post_init__()

    def started(self, cluster: Any = None, store: Any = None) -> Controller:
        self.processes += 1
        self.controller = Controller(
            cluster or self.watched,
            store or self.store,
            self.policy,
            keep=SignedKeys(self.keep, SIGNING_KEY),
            lease=self.lease,
            owner=f"process {self.processes}",
        )
        return self.controller

    def __enter__(self) -> Kept:
        return self

    def lose_the_store(self) -> None:
        """The folder is deleted; another process starts with an empty one."""
        self.store.close()
        (self.folder / "store.db").unlink()
        for rest in self.folder.iterdir():
            rest.unlink()
        self.store = SqliteStore(self.folder / "store.db")
        self.started()


@pytest.fixture
def run() -> Iterator[Kept]:
    with Kept(replace(wide_spec(), settings={"osd/osd_max_backfills": "8"}, balancer=True)) as run:
        yield run


def whole_drain() -> Drain:
    drain = a_drain(0, saved=by_setting({"osd.0/reweight": "1.0"}), ours=by_setting({"upmap/1.3": "0>4"}))
    return replace(drain, plan=a_plan(calm_view(), drain))


def test_a_drain_is_read_back_as_it_was_written() -> None:
    assert decode_drain_copy("drain/osd.0", encode_drain_copy(whole_drain())) == whole_drain()


@pytest.mark.parametrize("text", ["", "predrain-drain 2\n{}", "predrain-drain 1\n{}", "hello"])
def test_the_refusal_of_an_unreadable_drain_copy_names_the_config_key_to_look_at(text: str) -> None:
    with pytest.raises(ClusterUnreachable, match="ceph config-key get predrain"):
        decode_drain_copy("drain/osd.0", text)


# -- the controller
# -----------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("state", [S.PROPOSED, S.APPROVED, S.DRAINING, S.DRAINED, S.VERIFIED])
def test_with_the_store_deleted_the_drain_comes_back_from_the_cluster_and_goes_on(
    run: Kept, state: S
) -> None:
    run.tick()
    drain = run.controller.requests.propose("osd.0", "operator", "test", run.cluster.now)
    if state is not S.PROPOSED:
        run.controller.requests.approve(drain.id, "operator", run.cluster.now)
        run.until(drain, state)
        run.ticks(3)
    before = run.known(drain)
    run.lose_the_store()
    run.tick()
    after = run.known(drain)
    assert after.saved.items() >= before.saved.items()
    assert after.plan is not None
    assert "recovered from the cluster" in run.transcript(drain)
    if state is S.PROPOSED:
        run.controller.requests.approve(drain.id, "operator", run.cluster.now)
    run.until(drain, S.VERIFIED)
    assert empty(run, 0)
    assert whole(run)


def test_a_cancel_after_the_store_was_deleted_still_restores_everything(run: Kept) -> None:
    run.tick()
    before = map_of(run)
    drain = run.drain("osd.0")
    run.until(drain, S.DRAINING)
    run.ticks(12)
    run.lose_the_store()
    run.tick()
    run.controller.requests.cancel(drain.id, "operator", run.cluster.now)
    run.until(drain, S.CANCELLED)
    run.cluster.advance(3600)
    after = map_of(run)
    for what in ("weights", "settings", "flags", "balancer"):
        assert after[what] == before[what], what


@pytest.mark.slow
def test_with_the_clusters_copy_deleted_it_is_written_anew_and_the_drain_goes_on(run: Kept) -> None:
    drain = run.drain("osd.0")
    run.until(drain, S.DRAINING)
    run.keep.texts.clear()
    run.started()
    run.tick()
    assert name_of(drain) in run.keep.texts
    assert "written again" in run.transcript(drain)
    run.until(drain, S.VERIFIED)
    assert whole(run)


@pytest.mark.slow
@pytest.mark.parametrize("cancels", [True, False])
def test_an_ended_drain_leaves_no_copy_in_the_cluster(run: Kept, cancels: bool) -> None:
    drain = run.drain("osd.0")
    if cancels:
        run.until(drain, S.DRAINING)
        run.controller.requests.cancel(drain.id, "operator", run.cluster.now)
        run.until(drain, S.CANCELLED)
    else:
        run.until(drain, S.VERIFIED)
        run.tick()
        run.controller.requests.hand_over(drain.id, "operator", run.cluster.now)
    assert not [name for name in run.keep.names() if name.startswith("drain/")]


def test_a_store_that_slept_through_the_end_does_not_take_the_drain_up_again(run: Kept) -> None:
    drain = run.drain("osd.0")
    run.until(drain, S.DRAINING)
    old = run.known(drain)
    run.controller.requests.cancel(drain.id, "operator", run.cluster.now)
    run.until(drain, S.CANCELLED)
    run.lose_the_store()
    run.store.save_drain(old)
    sent = len(run.watched.commands)
    run.ticks(5)
    assert run.known(drain).state is S.CANCELLED
    assert len(run.watched.commands) == sent
    assert "by another controller" in run.transcript(drain)


def test_the_higher_revision_wins_whichever_side_has_it() -> None:
    keep, store = KeepInMemory(), SqliteStore(MEMORY)
    low, high = whole_drain(), replace(whole_drain(), revision=9, held_by=("Halted.",))
    for stored, kept in ((low, high), (high, low)):
        other = replace(stored, id=f"osd.{stored.revision}-x", osds=stored.osds)
        store.save_drain(other)
        keep.texts = {name_of(kept): encode_drain_copy(replace(kept, id=other.id))}
        DrainReplication(store, keep).recover(NOW)
        found = store.drain(other.id)
        assert found is not None
        assert found.revision == 9
        assert decode_drain_copy("x", keep.texts[name_of(kept)]) == found
    store.close()


@pytest.mark.parametrize("state", [s for s in S if s not in (S.CANCELLED, S.HANDED_OVER)])
def test_equal_revisions_that_differ_stop_and_ask_a_person(state: S) -> None:
    keep, store = KeepInMemory(), SqliteStore(MEMORY)
    stored = replace(whole_drain(), state=state, ours=by_setting({"upmap/1.3": "0>4"}))
    kept = replace(
        stored, ours=by_setting({"upmap/1.3": "0>5", "upmap/1.4": "0>6"}), saved=by_setting({"upmap/1.4": ""})
    )
    store.save_drain(stored)
    keep.texts = {name_of(kept): encode_drain_copy(kept)}
    DrainReplication(store, keep).recover(NOW)
    found = store.drain(stored.id)
    assert found is not None
    assert found.state in (S.FAILED, S.PAUSED)
    assert "two controllers" in found.ended_why + " ".join(found.held_by)
    assert found.ours == by_setting({"upmap/1.3": "0>4", "upmap/1.3~": "0>5", "upmap/1.4": "0>6"})
    assert {str(key) for key in found.saved} == {"upmap/1.4", "osd.0/reweight"}
    assert decode_drain_copy("x", keep.texts[name_of(kept)]) == found
    store.close()


def test_a_copy_of_a_newer_version_holds_everything_and_says_so(run: Kept) -> None:
    run.keep.signed.write("drain/osd.3", "predrain-drain 99\n{}")
    report = run.tick()
    assert report.commands == 0
    assert "predrain-drain 99" in report.trouble


@pytest.mark.slow
def test_while_the_cluster_cannot_take_the_copy_no_command_is_sent_and_then_it_goes_on(run: Kept) -> None:
    drain = run.drain("osd.0")
    run.until(drain, S.DRAINING)
    run.keep.silent = True
    sent = len(run.watched.commands)
    for _ in range(8):
        halt = run.tick().halt
        assert halt is not None
        assert halt.author is HaltAuthor.NOBODY
    assert len(run.watched.commands) == sent
    run.keep.silent = False
    run.until(drain, S.VERIFIED)
    assert whole(run)
    run.controller.halt("maintenance")
    halt = run.tick().halt
    assert halt is not None
    assert halt.author is HaltAuthor.PERSON


@pytest.mark.slow
def test_a_bare_halt_in_the_cluster_stops_every_command_until_it_is_removed(run: Kept) -> None:
    drain = run.drain("osd.0")
    run.until(drain, S.DRAINING)
    run.keep.texts["halt"] = "smoke"
    sent = len(run.watched.commands)
    assert run.tick().halted == "smoke"
    run.ticks(5)
    assert len(run.watched.commands) == sent
    assert any("Halted: smoke" in sentence for sentence in run.known(drain).held_by)
    assert run.controller.halt(None) is None
    run.until(drain, S.VERIFIED)


def test_a_halt_stands_in_both_places_and_a_lifted_one_in_none(run: Kept) -> None:
    assert run.controller.halt("smoke") == "smoke"
    assert run.keep.texts["halt"] == "smoke"
    run.keep.silent = True
    with pytest.raises(ClusterUnreachable):
        run.controller.halt(None)
    assert run.store.halt_reason() == "smoke"


def test_a_halt_that_the_cluster_did_not_take_is_told_to_it_when_it_answers_and_only_once(run: Kept) -> None:
    run.keep.silent = True
    with pytest.raises(ClusterUnreachable):
        run.controller.halt("smoke")
    assert run.tick().halted == "smoke"
    run.keep.silent = False
    run.started()
    run.lease.free = False
    assert run.tick().halted == "smoke"
    assert run.keep.texts["halt"] == "smoke"
    del run.keep.texts["halt"]  # another controller lifts it for the others
    run.tick()
    assert "halt" not in run.keep.texts


@pytest.mark.parametrize("ask", ["pause", "cancel"])
def test_a_word_that_the_cluster_did_not_take_is_said_to_be_so_and_reaches_it_later(
    run: Kept, ask: str
) -> None:
    drain = run.drain("osd.0")
    run.until(drain, S.DRAINING)
    run.ticks(3)
    before = run.keep.texts[name_of(drain)]
    run.keep.full = "drain/"
    with pytest.raises(RequestNotReplicated, match="the cluster did not take that"):
        getattr(run.controller.requests, ask)(drain.id, "operator", run.cluster.now)
    assert run.keep.texts[name_of(drain)] == before
    asked = run.known(drain)
    assert run.store.journal(drain.id)[-1].caller == "operator"
    run.keep.full = None
    run.started()
    assert run.controller.take_leadership(run.cluster.now) is None
    assert decode_drain_copy("x", run.keep.signed.read(name_of(drain)) or "") == asked


def test_a_word_said_while_the_cluster_is_silent_changes_nothing(run: Kept) -> None:
    drain = run.drain("osd.0")
    before = run.known(drain)
    run.keep.silent = True
    with pytest.raises(NotLeading, match="cannot be read"):
        run.controller.requests.pause(drain.id, "operator", run.cluster.now)
    assert run.known(drain) == before


# -- who leads
# -----------------------------------------------------------------------------------------------------


def test_a_controller_without_the_lease_looks_on_and_writes_nothing(run: Kept) -> None:
    drain = run.drain("osd.0")
    run.until(drain, S.DRAINING)
    before, journal = run.known(drain), run.store.journal()
    run.lease.free = False
    reports = [run.tick() for _ in range(5)]
    assert all(isinstance(report, TickReport) and report.view is not None for report in reports)
    assert all("Another controller" in report.trouble for report in reports)
    assert run.known(drain) == before
    assert run.store.journal() == journal
    with pytest.raises(NotLeading, match="Another controller"):
        run.controller.requests.pause(drain.id, "operator", run.cluster.now)


def test_a_controller_that_loses_the_lease_during_a_look_writes_nothing(run: Kept) -> None:
    drain = run.drain("osd.0")
    run.until(drain, S.DRAINING)
    before, sent = run.known(drain), len(run.watched.commands)

    class Slow:
        """Looks for longer than the lease stands."""

        def view(self) -> Any:
            seen = run.watched.view()
            run.lease.has = False
            return seen

        def apply(self, command: Any) -> Any:
            return run.watched.apply(command)

    run.started(Slow())
    assert "Another controller" in run.tick().trouble
    assert run.known(drain) == before
    assert len(run.watched.commands) == sent


@pytest.mark.slow
def test_the_next_leader_goes_on_from_the_copy_that_the_last_leader_left_in_the_cluster(run: Kept) -> None:
    drain = run.drain("osd.0")
    run.until(drain, S.DRAINING)
    first, store = run.controller, run.store
    stale = run.known(drain)
    run.ticks(6)
    run.store = SqliteStore(run.folder / "second.db")
    run.store.save_drain(stale)
    run.started()
    run.until(drain, S.VERIFIED)
    assert "recovered from the cluster" in run.transcript(drain)
    run.lease.free = True
    assert first.tick(run.cluster.now, {}).trouble == ""
    found = store.drain(drain.id)
    assert found is not None
    assert found.state is S.VERIFIED
    store.close()


def test_a_controller_that_is_overtaken_in_the_middle_of_a_step_sends_at_most_the_command_at_hand(
    run: Kept,
) -> None:
    second: list[Controller] = []

    class Overtaken:
        """The second controller takes over while the first one's command is on its way."""

        sent = 0

        def view(self) -> Any:
            return run.watched.view()

        def apply(self, command: Any) -> Any:
            if not second:
                second.append(
                    Controller(
                        run.watched,
                        run.store,
                        run.policy,
                        keep=run.keep.signed,
                        lease=LeaseInHand(),
                        owner="second",
                    )
                )
                second[0].tick(run.cluster.now, {})
            Overtaken.sent += 1
            return run.watched.apply(command)

    run.started(Overtaken())
    drain = run.drain("osd.0")
    while not Overtaken.sent:
        run.tick()
    assert Overtaken.sent == 1
    assert "another controller acted since" in run.transcript(drain)
