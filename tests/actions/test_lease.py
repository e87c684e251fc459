"""The lease: taken, renewed, given up before the lock expires, and never believed for longer than that."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from predrain.actions.cluster.lease import OWN_SHARE, RadosLease
from tests.actions.made_channel import MonInMemory


@dataclass
class Hand:
    """A clock that a test turns."""

    at: float = 100.0

    def __call__(self) -> float:
        return self.at


def world() -> tuple[Hand, MonInMemory, RadosLease, RadosLease]:
    hand = Hand()
    mon = MonInMemory(now=hand)
    return hand, mon, RadosLease(mon, "one", hand), RadosLease(mon, "two", hand)


def test_one_holds_it_and_the_other_is_told_so() -> None:
    _, _, one, two = world()
    assert one.hold()
    assert one.is_held()
    assert one.why == ""
    assert not two.hold()
    assert not two.is_held()
    assert "Another controller holds the lease" in two.why


def test_it_is_not_believed_to_the_end_of_the_lock() -> None:
    hand, mon, one, two = world()
    one.hold()
    hand.at += OWN_SHARE * one.seconds
    assert not one.is_held()
    assert "ran out" in one.why
    assert mon.expires > hand.at
    assert not two.hold()


def test_a_controller_stopped_past_the_expiry_does_not_hold_the_lease_and_the_next_one_does() -> None:
    hand, _, one, two = world()
    one.hold()
    hand.at += one.seconds + 1
    assert not one.is_held()
    assert two.hold()
    assert not one.hold()
    assert not one.is_held()


def test_renewed_in_time_it_goes_on_and_taken_anew_after_it_expired_unclaimed() -> None:
    hand, _, one, _ = world()
    for _ in range(10):
        assert one.hold()
        hand.at += one.seconds / 3
        assert one.is_held()
    hand.at += 10 * one.seconds
    assert not one.is_held()
    assert one.hold()


def test_given_back_it_is_free_at_once() -> None:
    _, _, one, two = world()
    one.hold()
    one.release()
    assert not one.is_held()
    assert two.hold()


def test_a_silent_cluster_takes_it_away_only_when_our_own_time_is_over() -> None:
    hand, mon, one, _ = world()
    one.hold()
    mon.calls_left = 0
    assert one.hold()
    hand.at += one.seconds
    assert not one.hold()
    assert "cannot be renewed" in one.why
    one.release()


def test_the_lock_of_a_process_that_has_ended_is_broken_at_once_and_no_other() -> None:
    hand, mon, one, _ = world()
    gone: set[str] = set()
    heir = RadosLease(mon, "heir", hand, has_ended=lambda owner: owner.name in gone)
    one.hold()
    assert not heir.hold()
    holder = heir.find_holder()
    assert holder is not None
    assert holder.owner.name == "one"
    gone.add("one")
    assert heir.find_holder() is None
    assert heir.hold()
    assert mon.owner == "heir"
    assert not one.hold()


def test_a_lock_that_another_controller_took_meanwhile_is_not_broken() -> None:
    _, mon, one, two = world()
    one.hold()
    (seen,) = mon.list_lockers("predrain", "lease")
    one.release()
    two.hold()
    assert not mon.break_lock("predrain", "lease", seen).ok
    assert two.is_held()
    assert mon.owner == "two"


def test_without_its_pool_the_cure_is_said() -> None:
    hand, _, _, _ = world()
    lease = RadosLease(MonInMemory(now=hand, pools=frozenset()), "one", hand)
    assert not lease.hold()
    assert "ceph osd pool create predrain 1" in lease.why


@given(st.lists(st.tuples(st.sampled_from(["one", "two", "three"]), st.floats(0, 50), st.booleans())))
def test_no_two_ever_hold_it(acts: list[tuple[str, float, bool]]) -> None:
    hand = Hand()
    mon = MonInMemory(now=hand)
    leases = {name: RadosLease(mon, name, hand) for name in ("one", "two", "three")}
    for name, passes, gives in acts:
        hand.at += passes
        if gives:
            leases[name].release()
        else:
            leases[name].hold()
        assert sum(lease.is_held() for lease in leases.values()) <= 1
