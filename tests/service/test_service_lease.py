"""The services on one store: one is active, and one that was replaced while it stood still does nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import pytest

from predrain.data.drain import Drain, DrainState
from predrain.data.log.log_port import Record, Topic
from predrain.data.log.memory_log import MemoryLog
from predrain.data.store.sqlite_store import SqliteStore
from predrain.service.app.active_log import ActiveServiceLog
from predrain.service.app.application import Application, ApplicationPorts
from predrain.service.app.life_cycle_schedule import note_failures
from predrain.service.app.roles import CONTROLLING, SERVING, SHARING, ServiceRoles
from predrain.service.config.settings import Settings
from predrain.service.drains.live_cluster import LiveClusterParts
from predrain.service.forecasting import worker
from predrain.service.notifications.notification_log import Message
from predrain.service.notifications.notifier import Notifier
from predrain.service.runtime.lease_decision import LEASE_SECONDS, OWN_SECONDS, RENEWAL_SECONDS, LeaseRank
from predrain.service.runtime.service_lease import NotActive, ServiceLease, ServiceRole
from tests.actions.made_config_keys import KeepInMemory
from tests.service.conftest import Serve, SetClock, shut
from tests.service.notifications.test_notifier import Ear, a_sick_fleet, live
from tests.service.person_requests import approve_drain, propose_drain
from tests.service.test_drains import ClusterClock, seated
from tests.service.test_requests_elsewhere import LeaseOfOne, Lock


@dataclass
class Machine:
    """A clock of its own that no other machine has, and a lease on the store that all share."""

    folder: Path
    name: str
    seconds: float = 0.0
    lease: ServiceLease = field(init=False)

    def __post_init__(self) -> None:
        store = SqliteStore(self.folder / "store.db")
        self.lease = ServiceLease(store, self.name, SetClock(), lambda: self.seconds, f"http://{self.name}")

    def step(self, seconds: float = 0.0, rank: LeaseRank = LeaseRank.ACTS) -> bool:
        self.seconds += seconds
        self.lease.step(rank)
        return self.lease.is_active()


@dataclass
class Pair:
    """Two machines; the second one's clock shows another time."""

    one: Machine
    other: Machine

    def pass_time(self, seconds: float, *running: Machine) -> None:
        """The time passes on both machines, and those that run step."""
        for _ in range(round(seconds / RENEWAL_SECONDS)):
            self.one.seconds += RENEWAL_SECONDS
            self.other.seconds += RENEWAL_SECONDS
            for machine in running:
                machine.step()


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    made = Pair(Machine(tmp_path, "v2/a/1/-/-/-/x"), Machine(tmp_path, "v2/b/2/-/-/-/y", 5e6))
    yield made
    for machine in (made.one, made.other):
        machine.lease.store.close()


def test_the_first_service_is_active_and_the_second_one_knows_which(pair: Pair) -> None:
    assert pair.one.step()
    assert not pair.other.step()
    state = pair.other.lease.find_state()
    assert state.role is ServiceRole.STANDBY
    assert state.active is not None
    assert (state.active.name, state.active.url) == (pair.one.name, f"http://{pair.one.name}")
    assert str(state).startswith("This service is the standby; the active one is a (process 1), at http://")


def test_an_active_service_that_renews_stays_active(pair: Pair) -> None:
    pair.one.step()
    pair.pass_time(10 * LEASE_SECONDS, pair.one, pair.other)
    assert (pair.one.lease.is_active(), pair.other.lease.is_active()) == (True, False)
    assert pair.one.lease.own_term == 1


def test_a_standby_takes_over_when_the_time_of_the_lease_is_over_and_not_before(pair: Pair) -> None:
    pair.one.step()
    pair.other.step()
    pair.pass_time(LEASE_SECONDS - RENEWAL_SECONDS, pair.other)
    assert not pair.other.lease.is_active()
    pair.pass_time(RENEWAL_SECONDS, pair.other)
    assert pair.other.lease.is_active()
    assert pair.other.lease.own_term == 2


def test_a_service_that_ends_in_order_gives_the_lease_back(pair: Pair) -> None:
    pair.one.step()
    pair.other.step()
    pair.one.lease.release()
    assert not pair.one.lease.is_active()
    assert pair.other.step()


def test_a_service_that_stood_still_is_not_active_when_it_goes_on(pair: Pair) -> None:
    pair.one.step()
    pair.one.seconds += OWN_SECONDS
    assert not pair.one.lease.is_active()
    with pytest.raises(NotActive):
        pair.one.lease.confirm()


def test_a_service_that_was_replaced_finds_out_by_the_store_although_its_clock_stood_still(
    pair: Pair,
) -> None:
    pair.one.step()
    pair.other.step()
    for _ in range(5):
        pair.other.step(RENEWAL_SECONDS)
    assert pair.one.lease.is_active()  # a hypervisor stopped the machine with its clock
    with pytest.raises(NotActive, match=r"the active one is b \(process 2\)"):
        pair.one.lease.confirm()
    assert not pair.one.lease.is_active()


def test_a_service_that_was_replaced_writes_no_notes(pair: Pair) -> None:
    pair.one.step()
    pair.other.step(rank=LeaseRank.LEADS)
    pair.other.lease.write_notes("told:mail", {"disk": b"new"})
    with pytest.raises(NotActive):
        pair.one.lease.write_notes("told:mail", {"disk": b"old"})
    assert pair.one.lease.read_notes("told:mail") == {"disk": b"new"}


def test_a_standby_does_not_take_over_because_the_store_was_away(pair: Pair) -> None:
    pair.one.step()
    pair.other.step()
    pair.pass_time(10 * LEASE_SECONDS)  # nobody can read or renew
    assert not pair.other.step()
    assert pair.one.step()
    assert pair.one.lease.own_term == 1


def test_the_holder_of_the_clusters_lease_becomes_the_active_service(pair: Pair) -> None:
    pair.one.step()
    assert pair.other.step(rank=LeaseRank.LEADS)
    assert not pair.one.step()


def test_fields_of_a_later_release_do_not_keep_a_lease_from_being_taken(pair: Pair) -> None:
    pair.one.step()
    store, room = pair.one.lease.store, "service lease"
    written = store.read_notes(room)["active"]
    store.write_notes(room, {"active": written.replace(b'{"name"', b'{"rack":"r1","name"')})
    pair.other.step()
    pair.pass_time(LEASE_SECONDS, pair.other)
    assert pair.other.lease.is_active()


def test_readings_in_the_log_of_a_machine_are_for_the_active_service(pair: Pair) -> None:
    log = ActiveServiceLog(MemoryLog(), pair.one.lease)
    with pytest.raises(NotActive):
        log.append(Topic.READINGS, [Record("disk", b"1")])
    pair.one.step()
    log.append(Topic.READINGS, [Record("disk", b"1")])
    assert len(log.read(Topic.READINGS, worker.GROUP, 10)) == 1
    pair.other.step(rank=LeaseRank.LEADS)
    pair.one.step()
    assert log.read(Topic.READINGS, worker.GROUP, 10) == ()
    log.append(Topic.ACTIONS, [Record("drain", b"1")])
    before = log.read_assignment_version(Topic.READINGS, worker.GROUP)
    pair.one.step(rank=LeaseRank.LEADS)
    assert len(log.read(Topic.READINGS, worker.GROUP, 10)) == 1
    assert log.read_assignment_version(Topic.READINGS, worker.GROUP) > before


def make_application(
    machine: Machine, parts: ServiceRoles, cluster: LiveClusterParts | None = None
) -> Application:
    ports = ApplicationPorts(
        MemoryLog(),
        machine.lease.store,
        machine.lease.clock if cluster is None else ClusterClock(cluster.cluster),  # type: ignore[arg-type]
        lambda: pytest.fail("nothing is scored"),
        cluster,
        lease=machine.lease,
    )
    return Application(ports, Settings().policy.to_policy(), Settings(), parts=parts)


@pytest.mark.parametrize(
    ("parts", "rank"),
    [(SERVING, LeaseRank.SHOWS), (CONTROLLING, LeaseRank.ACTS), (SHARING, LeaseRank.ACTS)],
)
def test_a_process_has_the_rank_of_its_roles(parts: ServiceRoles, rank: LeaseRank, pair: Pair) -> None:
    application = make_application(pair.one, parts)
    assert application._rank() is rank
    shut(application)


def test_a_standby_records_no_failures_and_an_active_service_does(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    monkeypatch.setattr(
        "predrain.service.app.life_cycle_schedule.find_failed_disks", lambda *_: seen.append("looked") or ()
    )
    standby = make_application(pair.other, SHARING)
    pair.one.step()
    standby.step_lease()
    note_failures(standby)
    assert seen == []
    pair.one.lease.release()
    standby.step_lease()
    note_failures(standby)
    assert seen == ["looked"]
    shut(standby)


@dataclass
class HandingOver(Ear):
    """A channel during whose first delivery the process stands still, until another service has taken the lease."""

    other: Machine | None = None

    def deliver(self, message: Message) -> None:
        super().deliver(message)
        if self.other is not None:
            self.other.step(rank=LeaseRank.LEADS)


def test_a_service_that_was_replaced_sends_no_message(pair: Pair) -> None:
    ear, fleet = Ear(), a_sick_fleet()
    old = Notifier(pair.one.lease, [ear], confirm=pair.one.lease.confirm)
    pair.one.step()
    pair.other.step(rank=LeaseRank.LEADS)
    with pytest.raises(NotActive):
        live(old, fleet, timedelta(minutes=10))
    assert ear.tried == 0


def test_a_service_that_stood_still_in_a_delivery_has_sent_that_message_and_sends_no_other(
    pair: Pair,
) -> None:
    ear, fleet = HandingOver(other=pair.other), a_sick_fleet()
    fleet.halted = "smoke"
    old = Notifier(pair.one.lease, [ear], confirm=pair.one.lease.confirm)
    pair.one.step()
    with pytest.raises(NotActive):
        live(old, fleet, timedelta(minutes=10))
    (sent,) = ear.heard
    after = Ear()
    live(Notifier(pair.other.lease, [after], confirm=pair.other.lease.confirm), fleet, timedelta(minutes=10))
    assert [one.id for one in after.heard].count(sent.id) == 1
    fleet.sicken(17)
    with pytest.raises(NotActive):
        live(old, fleet, timedelta(minutes=20))
    assert len(ear.heard) == 1


def test_the_standby_says_over_rest_which_service_is_active(pair: Pair, serve: Serve) -> None:
    standby = make_application(pair.other, SHARING)
    pair.one.step()
    standby.step_lease()
    site = serve(standby)
    refused = site.client.get("/activez")
    assert (refused.status_code, refused.headers["Retry-After"]) == (503, "10")
    told = refused.json()["active"]
    assert (told["host"], told["pid"], told["url"]) == ("a", 1, f"http://{pair.one.name}")
    state = site.client.get("/api/v1/status").json()["service"]
    assert (state["role"], state["active"]) == ("standby", told)
    pair.one.lease.release()
    standby.step_lease()
    assert site.client.get("/activez").json()["role"] == "active"
    assert site.client.get("/api/v1/status").json()["service"]["role"] == "active"


def test_a_drain_under_way_goes_on_where_the_active_service_went_away(pair: Pair, tmp_path: Path) -> None:
    cluster, texts, lock = seated(), dict[str, str](), Lock()
    first, second = (
        make_application(
            machine,
            CONTROLLING,
            LiveClusterParts(cluster, KeepInMemory(texts).signed, LeaseOfOne(lock, name), name),
        )
        for machine, name in ((pair.one, "first"), (pair.other, "second"))
    )

    def run(*applications: Application, until: Callable[[Drain], bool]) -> Drain:
        for _ in range(2_000):
            cluster.advance(10.0)
            pair.one.seconds += 10.0
            pair.other.seconds += 10.0
            for application in applications:
                application.step_controller()
                application.step_lease()
            if (drains := second.store.drains()) and until(drains[0]):
                return drains[0]
        raise AssertionError("it does not come to that")

    for _ in range(5):
        cluster.advance(10.0)
        for application in (first, second):
            application.step_controller()
            application.step_lease()
    assert (first.service_state.role, second.service_state.role) == (ServiceRole.ACTIVE, ServiceRole.STANDBY)
    approve_drain(first, propose_drain(first, "osd.0", "till"), "till")
    begun = run(first, second, until=lambda one: one.progress.moved_pgs > 0)
    lock.owner = ""  # the lock of a process that is gone runs out
    ended = run(second, until=lambda one: one.state is DrainState.VERIFIED)
    assert ended.id == begun.id
    assert second.service_state.role is ServiceRole.ACTIVE
    assert second.lease is not None
    assert second.lease.own_term == 2
    for application in (first, second):
        shut(application)
