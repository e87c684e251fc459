"""A request at a controller that does not lead: the leader carries it out once, also when a controller is killed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest

from predrain.actions.cluster.cluster_port import ClusterUnreachable, Lease, LeaseHolder
from predrain.actions.cluster.lease_owner import parse_owner
from predrain.actions.cluster.signed_keys import SignedKeys
from predrain.actions.controller import plan_etags
from predrain.actions.controller.forwarded_requests import ANSWERS, REQUESTS, STANDS, ForwardedRequests
from predrain.actions.controller.person_request import PersonRequest, RequestKind
from predrain.actions.controller.request_execution import NotLeading
from predrain.actions.core.drain_policy import Policy
from predrain.actions.simulator import SimulatedCluster
from predrain.actions.simulator.cluster_spec import SIMULATED_CLUSTER
from predrain.data.drain import Drain, DrainState, OfOtherCluster
from predrain.data.ids import ClusterId
from predrain.data.log.memory_log import MemoryLog
from predrain.data.store.sqlite_store import SqliteStore
from predrain.data.store.store_faults import StoreFull
from predrain.data.store.store_port import AUDIT
from predrain.service.drains import other_controllers
from predrain.service.drains.drain_control import DrainControl
from predrain.service.drains.drain_requests import RefusedElsewhere, RequestUnanswered
from predrain.service.drains.live_cluster import LiveClusterParts
from predrain.service.fleet.drain_timeline import Timelines
from predrain.service.fleet.fleet import Fleet
from tests.actions.made import tiny_spec
from tests.actions.made_config_keys import KeepInMemory

S, CALLER = DrainState, "till"
OTHER_CLUSTER = "11111111-1111-4111-8111-111111111111"


class Killed(BaseException):
    """The end of a process by `kill -9`, seen from inside."""


@dataclass
class DyingKeep(KeepInMemory):
    """A config_key store whose process is killed after the next `calls` calls, before the one that follows."""

    calls: int = 10**9

    def _answer(self) -> None:
        super()._answer()
        self.calls -= 1
        if self.calls < 0:
            raise Killed


@dataclass
class Lock:
    owner: str = ""  # one lock for all controllers


@dataclass
class LeaseOfOne:
    """A controller's side of the lock."""

    lock: Lock
    name: str

    @property
    def why(self) -> str:
        return "" if self.is_held() else "Another controller holds the lease; it does the work, or stop it."

    @property
    def taken(self) -> bool:
        return self.lock.owner not in ("", self.name)

    def hold(self) -> bool:
        if not self.taken:
            self.lock.owner = self.name
        return self.is_held()

    def is_held(self) -> bool:
        return self.lock.owner == self.name

    def release(self) -> None:
        if self.is_held():
            self.lock.owner = ""

    def find_holder(self) -> LeaseHolder | None:
        return LeaseHolder(parse_owner(self.lock.owner), None) if self.lock.owner else None


@dataclass
class Company:
    """One cluster, what it keeps, and controllers with a store each."""

    cluster: SimulatedCluster = field(default_factory=lambda: SimulatedCluster(tiny_spec(), 1))
    texts: dict[str, str] = field(default_factory=dict)
    lock: Lock = field(default_factory=Lock)
    stores: list[SqliteStore] = field(default_factory=list)

    def controller(
        self, name: str, keep: KeepInMemory | None = None, lease: Lease | None = None
    ) -> DrainControl:
        store = SqliteStore(":memory:")
        self.stores.append(store)
        lease = lease or LeaseOfOne(self.lock, name)
        live = LiveClusterParts(self.cluster, (keep or KeepInMemory(self.texts)).signed, lease, name)
        return DrainControl(live, store, MemoryLog(), Policy(), Fleet(store), Timelines())

    def leader(self, name: str = "leader", keep: KeepInMemory | None = None) -> DrainControl:
        """A controller that has the lease and has looked long enough to act."""
        self.lock.owner = name
        made = self.controller(name, keep)
        for _ in range(5):
            self.step(made)
        return made

    def step(self, *controls: DrainControl) -> None:
        self.cluster.advance(10.0)
        for control in controls:
            control.run_tick(self.cluster.now)

    def follower(self, meanwhile: Callable[[], object]) -> DrainControl:
        """A controller beside the one that leads; `meanwhile` runs each time that it waits for an answer."""
        made = self.controller("follower")
        self.step(made)
        assert made._elsewhere is not None
        made._elsewhere.sleep = lambda _: meanwhile()
        return made

    def left(self) -> list[str]:
        """Requests and answers that still lie in the cluster."""
        return [name for name in self.texts if name.startswith((REQUESTS, ANSWERS))]

    def propose(self, control: DrainControl, target: str = "osd.0") -> Drain:
        return self.ask(control, RequestKind.PROPOSE, target=target, reason="noisy")

    def ask(
        self, control: DrainControl, kind: RequestKind, id_: str = "", seal: str = "", **said: Any
    ) -> Drain:
        """Make a person's request at a controller, in the name of `CALLER` if no other caller is given."""
        return control.execute_request(
            PersonRequest(kind, self.cluster.now, said.pop("caller", CALLER), id_, seal, **said)
        )

    def approve(self, control: DrainControl, drain: Drain) -> Drain:
        """The plan that is shown, approved."""
        return self.ask(control, RequestKind.APPROVE, drain.id, plan_etags.encode_plan_etag(drain))


def memory_of(control: DrainControl) -> KeepInMemory:
    """Return the store in memory that lies below the signatures of a controller's config_key store."""
    assert isinstance(control.live.keep, SignedKeys)
    assert isinstance(control.live.keep.keep, KeepInMemory)
    return control.live.keep.keep


@pytest.fixture
def company() -> Iterator[Company]:
    made = Company()
    yield made
    for store in made.stores:
        store.close()


@pytest.mark.slow
def test_a_drain_asked_for_beside_the_leader_is_the_leaders_and_its_progress_is_shown(
    company: Company,
) -> None:
    leader = company.leader()
    beside = company.follower(lambda: company.step(leader))
    drain = company.propose(beside)
    assert leader.store.drain(drain.id) == drain
    assert (drain.asked_by, drain.state) == (CALLER, S.PROPOSED)
    approved = company.approve(beside, drain)
    assert approved.state is S.APPROVED
    callers = [
        line.caller for line in leader.store.journal(drain.id) if line.decided in ("propose", "approve")
    ]
    assert callers == [CALLER, CALLER]
    moved, found = set(), approved
    for _ in range(500):
        company.step(leader, beside)
        (found,) = beside.store.drains()
        moved.add(found.progress.moved_pgs)
        if found.state is S.VERIFIED:
            break
    assert found.state is S.VERIFIED
    assert len(moved) > 2
    assert company.left() == []


def test_pause_resume_and_cancel_reach_the_leader_and_may_be_said_twice(company: Company) -> None:
    leader = company.leader()
    beside = company.follower(lambda: company.step(leader))
    drain = company.propose(beside)
    company.approve(beside, drain)
    for kind, states in (
        (RequestKind.PAUSE, {S.PAUSED}),
        (RequestKind.RESUME, {S.APPROVED, S.PREPARING, S.DRAINING}),
        (RequestKind.CANCEL, {S.CANCELLING, S.CANCELLED}),
    ):
        for _ in range(2):
            assert company.ask(beside, kind, drain.id).state in states
            (found,) = leader.store.drains()
            assert found.state in states
    asked = [line.decided for line in leader.store.journal(drain.id) if line.caller == CALLER]
    assert asked == ["propose", "approve", "pause", "resume", "cancel"]


def test_a_request_that_the_leader_refuses_comes_back_with_the_leaders_sentence(company: Company) -> None:
    leader = company.leader()
    beside = company.follower(lambda: company.step(leader))
    with pytest.raises(RefusedElsewhere, match=r"'osd\.99' is neither an OSD"):
        company.propose(beside, "osd.99")
    company.propose(leader)
    with pytest.raises(RefusedElsewhere, match=r"osd\.0 already has drain"):
        company.ask(beside, RequestKind.PROPOSE, target="osd.0", caller="another", reason="noisy")
    assert company.left() == []


def test_a_plan_that_moved_since_it_was_shown_is_not_approved_beside_the_leader(company: Company) -> None:
    leader = company.leader()
    beside = company.follower(lambda: company.step(leader))
    drain = company.propose(beside)
    with pytest.raises(plan_etags.PlanChanged):
        company.ask(beside, RequestKind.APPROVE, drain.id, '"WyJwcm9wb3NlZCJd"')


def test_a_leader_that_does_not_answer_is_told_of_and_hears_it_later(company: Company) -> None:
    leader = company.leader()
    beside = company.follower(lambda: None)
    with pytest.raises(RequestUnanswered, match=r"stands until \d\d:\d\d UTC"):
        company.propose(beside)
    assert not leader.store.drains()
    company.step(leader)
    assert [drain.state for drain in leader.store.drains()] == [S.PROPOSED]


def test_a_request_of_more_than_ten_minutes_ago_is_not_carried_out_and_the_answer_goes_in_time(
    company: Company,
) -> None:
    leader = company.leader()
    beside = company.follower(lambda: None)
    with pytest.raises(RequestUnanswered):
        company.propose(beside)
    company.cluster.advance(STANDS.total_seconds())
    company.step(leader)
    assert not leader.store.drains()
    (name,) = company.left()
    heard = ForwardedRequests(KeepInMemory(company.texts).signed).answer_to(name.removeprefix(ANSWERS))
    assert heard is not None
    assert "one is heard within 10 minutes" in heard.refused
    company.cluster.advance(STANDS.total_seconds())
    company.step(leader)
    assert company.left() == []


@pytest.mark.parametrize("text", ["", "{}", "[1]", "\x00", "x" * 20_000, '{"id": "other", "wish": "cancel"}'])
def test_a_text_that_is_no_request_is_answered_and_does_not_stop_the_next(
    company: Company, text: str
) -> None:
    leader = company.leader()
    KeepInMemory(company.texts).signed.write(f"{REQUESTS}0", text)
    beside = company.follower(lambda: company.step(leader))
    assert company.propose(beside).state is S.PROPOSED
    assert "cannot be read" in company.texts[f"{ANSWERS}0"]


def cancel_in(company: Company, cluster: str | None, drain: Drain) -> PersonRequest:
    """A cancel that lies in the cluster, as a controller of that cluster writes it."""
    request = PersonRequest(
        RequestKind.CANCEL, company.cluster.now, CALLER, drain.id,
        cluster=ClusterId(cluster) if cluster else None, id="5",
    )  # fmt: skip
    ForwardedRequests(KeepInMemory(company.texts).signed).submit_request(request)
    return request


def test_a_request_about_another_cluster_is_refused_with_both_fsids_and_changes_nothing(
    company: Company,
) -> None:
    """The key-value store of a cluster may have been restored from that of another one, where the drain has this id."""
    leader = company.leader()
    drain = company.propose(leader)
    cancel_in(company, OTHER_CLUSTER, drain)
    company.step(leader)
    heard = ForwardedRequests(KeepInMemory(company.texts).signed).answer_to("5")
    assert heard is not None
    assert (
        f"about cluster {OTHER_CLUSTER}, and this store is about cluster {SIMULATED_CLUSTER}" in heard.refused
    )
    assert leader.store.drain(drain.id) == drain


def test_a_request_about_another_cluster_is_refused_also_where_the_drain_is_as_it_asks(
    company: Company,
) -> None:
    leader = company.leader()
    drain = company.propose(leader)
    company.ask(leader, RequestKind.CANCEL, drain.id)
    request = cancel_in(company, OTHER_CLUSTER, drain)
    with pytest.raises(OfOtherCluster):
        leader._controller.requests.execute_once(request, company.cluster.now)


def test_a_request_without_a_cluster_is_about_the_one_that_the_leader_knows(company: Company) -> None:
    leader = company.leader()
    drain = company.propose(leader)
    cancel_in(company, None, drain)
    company.step(leader)
    cancelled = leader.store.drain(drain.id)
    assert cancelled is not None
    assert cancelled.state is S.CANCELLING


def test_a_request_whose_cluster_is_no_fsid_is_answered_with_a_sentence(company: Company) -> None:
    leader = company.leader()
    cancel_in(company, "ceph", company.propose(leader))
    company.step(leader)
    assert "cannot be read: its cluster is no fsid" in company.texts[f"{ANSWERS}5"]


def test_a_forwarded_request_carries_the_fsid_into_the_cluster_and_into_the_audit(company: Company) -> None:
    leader, written = company.leader(), list[str]()

    def hear() -> None:
        written.extend(text for name, text in company.texts.items() if name.startswith(REQUESTS))
        company.step(leader)

    company.propose(company.follower(hear))
    assert written
    assert f'"cluster":"{SIMULATED_CLUSTER}"' in written[0]
    (line,) = leader.store.journal(AUDIT)
    assert f'"cluster":"{SIMULATED_CLUSTER}"' in line.decided


def test_a_request_is_not_answered_before_the_cluster_has_taken_what_it_changed(company: Company) -> None:
    keep = KeepInMemory(company.texts)
    leader = company.leader(keep=keep)
    drain = company.propose(leader)
    request = PersonRequest(RequestKind.CANCEL, company.cluster.now, CALLER, drain.id, id="5")
    ForwardedRequests(KeepInMemory(company.texts).signed).submit_request(request)
    keep.full = "drain/"
    for _ in range(3):
        company.step(leader)
        assert company.left() == [f"{REQUESTS}5"]
    keep.full = None
    company.step(leader)
    assert company.left() == [f"{ANSWERS}5"]
    asked = [line for line in leader.store.journal(drain.id) if line.decided == "cancel"]
    assert len(asked) == 1


def test_a_request_that_the_leaders_store_cannot_take_is_carried_out_by_the_next_one(
    company: Company,
) -> None:
    leader, second = company.leader(), company.controller("second")
    drain = company.propose(leader)
    saves = leader.store.save_drain
    leader.store.save_drain = full  # type: ignore[method-assign]
    request = PersonRequest(RequestKind.PAUSE, company.cluster.now, CALLER, drain.id, id="5")
    ForwardedRequests(KeepInMemory(company.texts).signed).submit_request(request)
    with pytest.raises(StoreFull):
        company.step(leader)
    assert company.lock.owner == ""
    assert company.left() == [f"{REQUESTS}5"]
    company.step(second)
    assert second.store.drains()[0].state is S.PAUSED
    leader.store.save_drain = saves  # type: ignore[method-assign]
    company.step(leader)
    assert leader.store.drains()[0].state is S.PAUSED


def full(_: Drain) -> None:
    raise StoreFull("the store store.db cannot be written (database or disk is full)")


def test_where_the_lease_comes_free_while_one_waits_the_request_is_carried_out_here(company: Company) -> None:
    company.leader()
    beside = company.follower(lambda: setattr(company.lock, "owner", ""))
    drain = company.propose(beside)
    assert beside.store.drain(drain.id) == drain
    assert company.lock.owner == "follower"
    assert company.left() == []


def test_a_controller_that_takes_the_lease_for_a_request_first_reads_the_drains_kept_in_the_cluster(
    company: Company,
) -> None:
    leader = company.leader()
    idle = company.controller("idle")
    drain = company.propose(leader)
    company.approve(leader, drain)
    company.lock.owner = ""
    paused = company.ask(idle, RequestKind.PAUSE, drain.id)
    assert (paused.state, paused.resume_to) == (S.PAUSED, S.APPROVED)


def test_where_the_lease_is_refused_to_all_the_sentence_says_why(company: Company) -> None:
    class Poolless(LeaseOfOne):
        why = "There is no pool predrain to lock in."  # type: ignore[assignment]
        taken = False  # type: ignore[assignment]

        def hold(self) -> bool:
            return False

    control = company.controller("alone", lease=Poolless(company.lock, "alone"))
    with pytest.raises(NotLeading, match="There is no pool"):
        company.propose(control)
    assert company.left() == []


@pytest.mark.slow
def test_a_leader_killed_at_any_call_leaves_one_drain_and_one_answer(company: Company) -> None:
    """Between any two calls of the first leader to the cluster's keep; another one with a store of its own goes on."""
    killed = 0
    for calls in range(200):
        company.texts.clear()
        company.lock.owner = ""
        dying = DyingKeep(company.texts)
        first = company.leader("first", dying)
        request = PersonRequest(
            RequestKind.PROPOSE, company.cluster.now, CALLER, target="osd.0", reason="noisy", id="5"
        )
        ForwardedRequests(KeepInMemory(company.texts).signed).submit_request(request)
        dying.calls = calls
        with suppress(Killed):
            company.step(first)
            break
        killed += 1
        second = company.leader("second")
        (drain,) = second.store.drains()
        assert (drain.state, drain.asked_by) == (S.PROPOSED, CALLER)
        heard = ForwardedRequests(KeepInMemory(company.texts).signed).answer_to("5")
        assert heard is not None
        assert (heard.drain, heard.refused) == (drain.id, "")
        assert company.left() == [f"{ANSWERS}5"]
    assert killed > 5


def test_a_caller_killed_while_it_waits_asks_again_and_gets_the_same_drain(company: Company) -> None:
    leader = company.leader()

    def kill() -> None:
        raise Killed

    with suppress(Killed):
        company.propose(company.follower(kill))
    company.step(leader)
    (drain,) = leader.store.drains()
    again = company.propose(company.follower(lambda: company.step(leader)))
    assert again.id == drain.id
    company.cluster.advance((STANDS + timedelta(minutes=1)).total_seconds())
    company.step(leader)
    assert company.left() == []


def test_a_cluster_that_is_silent_to_the_caller_is_told_so(company: Company) -> None:
    leader = company.leader()
    beside = company.follower(lambda: company.step(leader))
    memory_of(beside).silent = True
    with pytest.raises(ClusterUnreachable):
        company.propose(beside)
    assert other_controllers.POLLS * other_controllers.POLL_SECONDS < 30


def test_a_halt_that_the_cluster_does_not_take_says_that_a_controller_with_another_store_goes_on(
    company: Company,
) -> None:
    beside = company.controller("beside")
    leader = company.leader()
    memory = memory_of(beside)
    memory.silent = True
    beside.set_halt("storm")
    assert beside.find_halt_reason() == "storm"
    assert leader.find_halt_reason() is None
    assert "a controller that keeps another store goes on" in beside.unreached_sentence
    company.step(beside)
    assert "a controller that keeps another store goes on" in beside.unreached_sentence
    again = DrainControl(beside.live, beside.store, MemoryLog(), Policy(), Fleet(beside.store), Timelines())
    assert "a controller that keeps another store goes on" in again.unreached_sentence
    memory.silent = False
    company.step(beside)
    assert beside.unreached_sentence == ""
    company.step(leader)
    assert leader.find_halt_reason() == "storm"
