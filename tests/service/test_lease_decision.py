"""Which service is the active one: the pure decision, as properties over rows, ranks and times."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hypothesis import given
from hypothesis import strategies as st

from predrain.service.runtime.lease_decision import (
    LEASE_SECONDS,
    OWN_SECONDS,
    RENEWAL_SECONDS,
    UNSEEN_SECONDS,
    ActiveService,
    LeaseBeat,
    LeaseRank,
    LeaseRows,
    LeaseStep,
    ObservedLease,
    decide_lease_step,
    observe_lease,
)
from tests.service.conftest import NOON

RANKS = st.sampled_from(LeaseRank)
SECONDS = st.floats(0, 1e6)


def rows(name: str, rank: LeaseRank = LeaseRank.ACTS, *, term: int = 3, count: int = 7) -> LeaseRows:
    return LeaseRows(ActiveService(name, term, NOON), LeaseBeat(term, count, rank))


@given(SECONDS, RANKS, RANKS)
def test_the_holder_renews_at_any_time_and_rank(age: float, rank: LeaseRank, noted: LeaseRank) -> None:
    seen = ObservedLease(rows("a", noted), 0.0, age)
    assert decide_lease_step(seen, "a", rank) is LeaseStep.RENEW


@given(st.sampled_from([LeaseRows(), rows("")]), RANKS, SECONDS)
def test_a_lease_that_is_free_is_taken_at_once(free: LeaseRows, rank: LeaseRank, now: float) -> None:
    assert decide_lease_step(observe_lease(None, free, now), "b", rank) is LeaseStep.TAKE


@given(st.floats(0, 2 * LEASE_SECONDS), st.sampled_from([LeaseRank.SHOWS, LeaseRank.ACTS]))
def test_a_standby_of_the_same_rank_waits_for_the_whole_time_of_the_lease(
    age: float, rank: LeaseRank
) -> None:
    step = decide_lease_step(ObservedLease(rows("a", rank), 0.0, age), "b", rank)
    assert step is (LeaseStep.TAKE if age >= LEASE_SECONDS else LeaseStep.WAIT)


@given(RANKS, st.floats(0, LEASE_SECONDS, exclude_max=True))
def test_the_holder_of_the_clusters_lease_becomes_the_active_service(noted: LeaseRank, age: float) -> None:
    seen = ObservedLease(rows("a", noted), 0.0, age)
    assert decide_lease_step(seen, "b", LeaseRank.LEADS) is LeaseStep.TAKE


def test_a_page_gives_way_to_a_service_that_can_act_and_not_the_other_way_round() -> None:
    page, service = (ObservedLease(rows("a", rank), 0.0, 0.0) for rank in (LeaseRank.SHOWS, LeaseRank.ACTS))
    assert decide_lease_step(page, "b", LeaseRank.ACTS) is LeaseStep.TAKE
    assert decide_lease_step(service, "b", LeaseRank.SHOWS) is LeaseStep.WAIT


@given(st.lists(st.floats(0, 4 * UNSEEN_SECONDS), min_size=1, max_size=30))
def test_a_standby_counts_no_time_in_which_it_did_not_read(pauses: list[float]) -> None:
    seen, now, watched = observe_lease(None, rows("a"), 0.0), 0.0, 0.0
    for pause in pauses:
        now += pause
        watched = watched + pause if now - seen.read_at <= UNSEEN_SECONDS else 0.0
        seen = observe_lease(seen, rows("a"), now)
    assert abs(seen.read_at - seen.since - watched) < 1e-6
    assert max(pauses) > UNSEEN_SECONDS or seen.since == 0.0


def test_a_standby_starts_to_count_again_with_each_renewal() -> None:
    seen = observe_lease(observe_lease(None, rows("a", count=7), 0.0), rows("a", count=8), 3.0)
    assert seen.since == 3.0


@dataclass(frozen=True)
class _Process:
    """A process of the play: its last view of the lease, and until when it trusts its own renewal."""

    name: str
    seen: ObservedLease | None = None
    until: float = -1.0


@given(st.lists(st.tuples(st.sampled_from("abc"), st.floats(0, 3 * LEASE_SECONDS)), max_size=60))
def test_two_services_never_trust_their_lease_at_one_time(turns: list[tuple[str, float]]) -> None:
    """Any of three processes may stand still for any time: each turn is a whole step of one of them."""
    store, now = LeaseRows(), 0.0
    processes = {name: _Process(name) for name in "abc"}
    for name, pause in turns:
        now += pause
        me = processes[name]
        seen = observe_lease(me.seen, store, now)
        step = decide_lease_step(seen, name, LeaseRank.ACTS)
        if step is LeaseStep.WAIT:
            processes[name] = replace(me, seen=seen, until=-1.0)
            continue
        term = (store.active.term if store.active else 0) + (step is LeaseStep.TAKE)
        count = store.beat.count + 1 if store.beat else 0
        store = LeaseRows(ActiveService(name, term, NOON), LeaseBeat(term, count, LeaseRank.ACTS))
        processes[name] = replace(me, seen=seen, until=now + OWN_SECONDS)
        trusting = [one.name for one in processes.values() if one.until > now]
        assert trusting == [name]


def test_an_active_service_stops_to_trust_its_lease_before_another_may_take_it() -> None:
    assert OWN_SECONDS < LEASE_SECONDS
    assert 2 * RENEWAL_SECONDS < UNSEEN_SECONDS < LEASE_SECONDS
    assert 3 * RENEWAL_SECONDS < OWN_SECONDS
