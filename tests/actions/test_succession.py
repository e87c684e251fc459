"""Two controllers with a store each, one after the other: the texts that the last leader wrote stand, whichever
controller comes back.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from itertools import count
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from predrain.actions.controller.controller import Controller
from predrain.actions.controller.replication import (
    DrainReplication,
    decode_drain_copy,
    encode_drain_copy,
    name_of,
)
from predrain.actions.controller.request_execution import NoSuchDrain, NotLeading
from predrain.actions.core.drain_policy import Policy
from predrain.actions.core.state_machine import NotInTable
from predrain.actions.simulator import SimulatedCluster
from predrain.data.drain import Drain, DrainState
from predrain.data.store.sqlite_store import MEMORY, SqliteStore
from predrain.data.store.store_faults import StoreFull
from tests.actions.made import NOW, a_drain, tiny_spec, wide_spec
from tests.actions.made_config_keys import KeepInMemory

S = DrainState


@dataclass
class Lock:
    """The lock that both controllers share."""

    owner: str = ""


@dataclass
class LeaseBelieved:
    """One controller's side of the lock. A controller that was stopped believes that it holds the lock until it asks
    again.
    """

    lock: Lock
    name: str
    has: bool = False
    why: str = "Another controller holds the lease; it does the work, or stop it."

    @property
    def taken(self) -> bool:
        return self.lock.owner not in ("", self.name)

    def hold(self) -> bool:
        self.has = not self.taken
        if self.has:
            self.lock.owner = self.name
        return self.has

    def is_held(self) -> bool:
        return self.has

    def release(self) -> None:
        if self.has and not self.taken:
            self.lock.owner = ""
        self.has = False


_NUMBERS = count()


class Side:
    """A controller with a store of its own; another process of it after each `start`."""

    def __init__(self, pair: Pair, name: str) -> None:
        self.pair, self.name = pair, name
        self.store, self.keep = SqliteStore(MEMORY), KeepInMemory(pair.texts)
        self.start()

    def start(self) -> None:
        owner = f"{self.name}-{next(_NUMBERS)}"
        self.lease = LeaseBelieved(self.pair.lock, self.name)
        self.controller = Controller(
            self.pair.cluster, self.store, Policy(), keep=self.keep.signed, lease=self.lease, owner=owner
        )

    def tick(self, times: int = 1) -> None:
        for _ in range(times):
            self.pair.cluster.advance(10.0)
            self.controller.tick(self.pair.cluster.now, {})

    def drain(self) -> Drain:
        (found,) = self.store.drains()
        return found


@dataclass
class Pair:
    """One cluster, the texts of its config_key store, its lock, and two controllers that want to lead."""

    cluster: SimulatedCluster
    texts: dict[str, str] = field(default_factory=dict)
    lock: Lock = field(default_factory=Lock)

    def __post_init__(self) -> None:
        self.one, self.two = Side(self, "one"), Side(self, "two")

    def close(self) -> None:
        for side in (self.one, self.two):
            side.store.close()

    def kept(self, drain: Drain) -> Drain:
        return decode_drain_copy("x", KeepInMemory(self.texts).signed.read(name_of(drain)) or "")


@pytest.fixture
def pair() -> Iterator[Pair]:
    made = Pair(SimulatedCluster(wide_spec(used=0.3), 1))
    yield made
    made.close()


def under_way(pair: Pair) -> Drain:
    """A drain of the first one's, which has seen far more progress than it has taken steps."""
    one = pair.one
    one.tick()
    drain = one.controller.requests.propose("osd.0", "operator", "test", pair.cluster.now)
    one.controller.requests.approve(drain.id, "operator", pair.cluster.now)
    while one.drain().state is not S.DRAINING:
        one.tick()
    one.tick(6)
    return seen_much(one)


def seen_much(side: Side) -> Drain:
    drain = side.drain()
    seen = replace(drain, revision=drain.revision + 100, progress=replace(drain.progress, asked="a look"))
    side.store.save_drain(seen)
    return seen


def test_a_returning_leader_with_more_looks_behind_it_takes_over_its_successors_decision(pair: Pair) -> None:
    drain = under_way(pair)
    pair.lock.owner = ""
    pair.two.tick()
    pair.two.tick(3)
    pair.two.controller.requests.pause(drain.id, "operator", pair.cluster.now)
    left = pair.kept(drain)
    assert left.revision < drain.revision
    pair.lock.owner = ""
    pair.one.tick()
    assert pair.one.drain().state is S.PAUSED
    assert (pair.one.drain().ours, pair.kept(drain).ours) == (left.ours, left.ours)


def test_a_returning_leader_does_not_take_up_again_a_drain_that_ended_meanwhile(pair: Pair) -> None:
    drain = under_way(pair)
    pair.lock.owner = ""
    pair.two.tick()
    pair.two.controller.requests.cancel(drain.id, "operator", pair.cluster.now)
    while pair.two.drain().state is not S.CANCELLED:
        pair.two.tick()
    pair.lock.owner = ""
    pair.one.tick()
    assert pair.one.drain().state is S.CANCELLED
    assert name_of(drain) not in pair.texts


def test_beside_a_successor_one_shows_what_that_one_does(pair: Pair) -> None:
    drain = under_way(pair)
    pair.lock.owner = ""
    pair.two.tick()
    pair.two.controller.requests.pause(drain.id, "operator", pair.cluster.now)
    assert DrainReplication(pair.one.store, pair.one.keep.signed).mirror(pair.cluster.now)
    assert pair.one.drain().state is S.PAUSED
    assert not DrainReplication(pair.one.store, pair.one.keep.signed).mirror(pair.cluster.now)
    pair.two.controller.requests.resume(drain.id, "operator", pair.cluster.now)
    assert DrainReplication(pair.one.store, pair.one.keep.signed).mirror(pair.cluster.now)
    assert pair.one.drain().state is S.DRAINING


def test_with_nobody_else_in_between_the_store_knows_better_than_the_clusters_older_copy(pair: Pair) -> None:
    drain = under_way(pair)
    pair.lock.owner = ""
    pair.one.start()
    pair.one.tick()
    assert pair.one.drain().revision >= drain.revision
    assert "recovered from the cluster" not in " ".join(
        line.seen for line in pair.one.store.journal(drain.id)
    )


def test_a_drain_that_the_cluster_never_took_gives_way_to_the_successors_of_the_same_osd(pair: Pair) -> None:
    pair.one.tick()
    mine = a_drain(0, id="osd.0-mine", state=S.APPROVED)
    pair.one.store.save_drain(mine)
    pair.lock.owner = ""
    pair.two.tick()
    theirs = pair.two.controller.requests.propose("osd.0", "operator", "test", pair.cluster.now)
    pair.lock.owner = ""
    pair.one.tick()
    assert {drain.id: drain.state for drain in pair.one.store.drains()} == {
        mine.id: S.CANCELLED,
        theirs.id: S.PROPOSED,
    }
    assert pair.kept(theirs).id == theirs.id


def test_a_leader_that_was_stopped_during_a_look_does_not_overwrite_its_successors_copy(pair: Pair) -> None:
    drain = under_way(pair)
    pair.lock.owner = ""
    pair.two.tick()
    pair.two.controller.requests.pause(drain.id, "operator", pair.cluster.now)
    left = pair.texts[name_of(drain)]
    stale = replace(drain, revision=drain.revision + 1, held_by=("Its own look.",))
    assert not pair.one.controller._copies.save(stale)
    assert pair.texts[name_of(drain)] == left


@dataclass
class Filling:
    """A store that may be read and not written while `full`, as on a full disk."""

    real: SqliteStore
    full: bool = False

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.real, name)
        if self.full and name in ("save_drain", "add_journal", "note", "set_halt", "add_outcome"):
            return self._refuse
        return found

    def _refuse(self, *_: object) -> None:
        raise StoreFull("the store store.db cannot be written (database or disk is full)")


def filling(pair: Pair) -> Filling:
    """The first one's store, which may fill up."""
    store = Filling(pair.one.store)
    pair.one.store = store  # type: ignore[assignment]
    pair.one.start()
    return store


def test_a_leader_that_cannot_write_its_store_releases_the_lease_and_the_next_leader_goes_on(
    pair: Pair,
) -> None:
    store = filling(pair)
    drain = under_way(pair)
    store.full = True
    with pytest.raises(StoreFull):
        pair.one.tick(9)
    assert pair.lock.owner == ""
    pair.two.tick()
    assert pair.lock.owner == "two"
    while pair.two.drain().state is not S.VERIFIED:
        pair.two.tick()
    assert pair.kept(drain).state is S.VERIFIED


def test_a_controller_asks_for_the_lease_again_once_its_store_can_be_written(pair: Pair) -> None:
    store = filling(pair)
    under_way(pair)
    store.full = True
    for _ in range(12):
        with suppress(StoreFull):
            pair.one.tick()
    with pytest.raises(StoreFull, match="disk is full"):
        pair.one.tick()
    assert pair.lock.owner == ""
    store.full = False
    pair.one.tick()
    assert pair.lock.owner == "one"


def test_a_word_that_the_store_cannot_take_ends_the_lead_too(pair: Pair) -> None:
    store = filling(pair)
    drain = under_way(pair)
    store.full = True
    with pytest.raises(StoreFull):
        pair.one.controller.requests.pause(drain.id, "operator", pair.cluster.now)
    assert pair.lock.owner == ""


def test_a_halt_that_the_store_cannot_take_stands_in_the_cluster_for_whoever_leads_next(pair: Pair) -> None:
    store = filling(pair)
    store.full = True
    with pytest.raises(StoreFull):
        pair.one.controller.halt("smoke")
    assert pair.two.controller.tick(pair.cluster.now, {}).halted == "smoke"


ACTS = st.tuples(
    st.sampled_from(["one", "two"]),
    st.sampled_from(["take over", "pause", "resume", "wake", "restart", "be cut off", "be back"]),
)


@pytest.mark.slow
@settings(max_examples=60)
@given(st.lists(ACTS, max_size=25))
def test_every_leader_knows_the_last_request_that_was_accepted(acts: list[tuple[str, str]]) -> None:
    """Also where who was stopped wakes up, believes that it leads, and writes what it was about to."""
    pair = Pair(SimulatedCluster(tiny_spec(), 1))
    drain = a_drain(0, state=S.HOLDING)
    pair.one.store.save_drain(drain)
    assert pair.one.controller.take_leadership(NOW) is None
    word = S.HOLDING
    for number, (name, act) in enumerate(acts):
        side = pair.one if name == "one" else pair.two
        now, ask = NOW + timedelta(seconds=number), side.controller.requests
        match act:
            case "take over":
                pair.lock.owner = ""
                if side.controller.take_leadership(now) is None:
                    assert (side.drain().state, pair.kept(drain).state) == (word, word)
                    seen_much(side)
            case "pause" | "resume":
                with suppress(NoSuchDrain, NotLeading, NotInTable):
                    word = (ask.pause if act == "pause" else ask.resume)(drain.id, "operator", now).state
            case "wake" if side.lease.has and side.store.drains():
                seen = side.drain()
                side.controller._copies.save(
                    replace(seen, revision=seen.revision + 1, held_by=(f"look {number}",))
                )
            case "restart":
                side.start()
            case _:
                side.keep.silent = act == "be cut off"
    pair.close()


def test_a_copy_that_was_never_this_stores_is_taken_as_it_is() -> None:
    keep, store = KeepInMemory(), SqliteStore(MEMORY)
    drain = a_drain(0)
    keep.texts = {name_of(drain): encode_drain_copy(drain), "steps": "7 somebody"}
    DrainReplication(store, keep).recover(NOW, outranked=True)
    assert store.drain(drain.id) == drain
    store.close()


def test_a_new_leader_sends_nothing_before_the_last_command_of_its_predecessor_can_be_seen(
    pair: Pair,
) -> None:
    def upmaps() -> dict[Any, Any]:
        return dict(pair.cluster.view().upmap_items)

    drain = under_way(pair)
    pair.one.tick(20)
    pair.two.tick(2)
    pair.one.controller.requests.cancel(drain.id, "operator", pair.cluster.now)
    before = upmaps()
    while upmaps() == before:
        pair.one.tick()
    left = upmaps()
    pair.one.controller.give_up()
    pair.cluster.advance(1.0)
    pair.two.controller.tick(pair.cluster.now, {})
    assert (pair.lock.owner, upmaps()) == ("two", left)
    pair.two.tick(3)
    assert upmaps() != left
