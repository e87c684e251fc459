"""Processes of their own on one log and one store: who scores, who acts and who shows, and that none sees half."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import pytest

from predrain.actions.controller.requests import NotLeading
from predrain.actions.core.policy import Policy
from predrain.actions.simulator import SimulatedCluster
from predrain.data.drain import Drain, DrainState, Intent
from predrain.data.ids import DeviceId, OsdId
from predrain.data.log.memory import MemoryLog
from predrain.data.outcome import Fate
from predrain.data.reading import Reading
from predrain.data.store.sqlite import SqliteStore
from predrain.service import live_cluster as live
from predrain.service.application import House, Ports
from predrain.service.changes import ChangeKind
from predrain.service.cli import main
from predrain.service.drains import plan_etags as seals
from predrain.service.drains.drain_requests import Unheard
from predrain.service.drains.onlooking import NeverMine, onlooking
from predrain.service.live_cluster import Live
from predrain.service.roles import CONTROLLING, SERVING, SHARING, ServiceRoles
from predrain.service.scoring import succession
from predrain.service.scoring.bundled import BundledForecaster
from predrain.service.settings import Settings
from tests.actions.made_keep import KeepInMemory
from tests.service.conftest import Place, Serve, shut, smart_reading, week_of
from tests.service.test_drains import ClusterClock, seated
from tests.service.test_requests_elsewhere import LeaseOfOne, Lock
from tests.service.test_worker import work

DISK = DeviceId("ST4000DM000_A")


@dataclass
class Premises:
    """What all processes share, and the houses on it."""

    folder: Path
    forecaster: BundledForecaster
    log: MemoryLog = field(default_factory=MemoryLog)
    cluster: SimulatedCluster = field(default_factory=seated)
    texts: dict[str, str] = field(default_factory=dict)
    lock: Lock = field(default_factory=Lock)
    houses: list[House] = field(default_factory=list)

    def house(self, parts: ServiceRoles, name: str = "") -> House:
        """A process with a connection of its own to the store."""
        seen = None
        if name:
            seen = Live(self.cluster, KeepInMemory(self.texts).signed, LeaseOfOne(self.lock, name), name)
            seen = seen if parts.acts else onlooking(seen)
        store = SqliteStore(self.folder / "store.db")
        ports = Ports(self.log, store, ClusterClock(self.cluster), lambda: self.forecaster, seen)
        made = House(ports, Policy(), Settings(), parts=parts)
        self.houses.append(made)
        return made

    def worker(self) -> House:
        """One that scores and has no cluster."""
        made = self.house(SHARING)
        made.start()
        return made

    def tick(self, *houses: House, times: int = 1) -> None:
        """Ten seconds, and a turn of each."""
        for _ in range(times):
            self.cluster.advance(10.0)
            for house in houses:
                house.step_others()
                house.step_controller()

    def sick(self) -> list[Reading]:
        """A week of the disk under osd.0, the last day and a half of it bad: nobody doubts it."""
        now = self.cluster.now
        return [
            *week_of("A", now - timedelta(hours=36)),
            *(smart_reading("A", now - timedelta(hours=h), pending=400) for h in (30, 20, 10, 0)),
        ]


@pytest.fixture
def premises(tmp_path: Path, forecaster: BundledForecaster) -> Iterator[Premises]:
    made = Premises(tmp_path, forecaster)
    yield made
    for house in made.houses:
        shut(house)


def test_a_page_shows_what_a_worker_in_another_process_scored_and_tells_who_listens(
    premises: Premises,
) -> None:
    page, worker = premises.house(SERVING), premises.worker()
    page.ingest(premises.sick())
    seen = page.changes.number
    page.step_others()
    assert (page.sight().outlooks, page.changes.number, page.bundle_name) == ({}, seen, None)
    work(worker)
    page.step_others()
    assert page.sight().outlooks == worker.store.latest_outlooks() != {}
    assert page.sight().readings == worker.store.latest_readings()
    assert page.bundle_name == worker.bundle_name
    assert page.announcements.newest() == worker.announcements.newest() != ()
    _, kinds = page.changes.since(seen)
    assert {ChangeKind.OSDS, ChangeKind.OUTLOOKS, ChangeKind.DEVICES, ChangeKind.ALERTS} <= kinds
    seen = page.changes.number
    page.step_others()
    assert page.changes.number == seen


def test_who_scores_too_is_told_nothing_of_what_it_stored_itself(premises: Premises) -> None:
    worker, other = premises.worker(), premises.worker()
    worker.ingest(premises.sick())
    work(worker)
    seen = worker.changes.number
    worker.step_others()
    assert worker.changes.number == seen
    other.step_others()
    assert other.sight().outlooks == worker.sight().outlooks


def test_a_halt_said_elsewhere_is_told(premises: Premises) -> None:
    page, other = premises.house(SERVING), premises.house(SERVING)
    other.halt("smoke", "till")
    seen = page.changes.number
    page.step_others()
    assert page.halted() == "smoke"
    assert ChangeKind.HALT in page.changes.since(seen)[1]


def test_a_controller_proposes_by_what_workers_scored_and_the_page_shows_it(premises: Premises) -> None:
    controller, page = premises.house(CONTROLLING, "first"), premises.house(SERVING, "page")
    premises.tick(controller, page, times=5)
    worker = premises.worker()
    worker.ingest(premises.sick())
    work(worker)
    seen = page.changes.number
    premises.tick(controller, page, times=3)
    (drain,) = page.sight().drains
    assert (drain.state, drain.device) == (DrainState.PROPOSED, DISK)
    assert ChangeKind.DRAINS in page.changes.since(seen)[1]
    assert len(page.sight().view.osds) == 12  # type: ignore[union-attr]
    assert (controller.controlling(), premises.lock.owner) == ("running", "first")
    assert page.controlling() == "in another process; this one shows"


def test_what_a_person_approves_at_a_page_is_begun_by_the_controller_and_its_curve_is_shown(
    premises: Premises,
) -> None:
    controller, page = premises.house(CONTROLLING, "first"), premises.house(SERVING, "page")
    premises.tick(controller, page, times=5)
    asking(page, lambda: premises.tick(controller))
    drain = page.propose("osd.0", "till", "noisy", Intent.REPLACE)
    approved = approve(page, drain)
    assert approved.state is DrainState.APPROVED
    for _ in range(100):
        premises.tick(controller, page)
        if page.timelines.of(drain.id) and page.sight().drains[0].progress.moved_pgs:
            break
    assert page.timelines.of(drain.id)
    assert page.sight().drains[0].progress.moved_pgs
    assert premises.lock.owner == "first"


def test_a_page_never_leads_and_a_request_that_no_controller_hears_is_kept_for_one(
    premises: Premises,
) -> None:
    page = premises.house(SERVING, "page")
    premises.tick(page, times=5)
    asking(page, lambda: None)
    with pytest.raises(Unheard):
        page.propose("osd.0", "till", "noisy", Intent.REPLACE)
    assert (premises.lock.owner, page.store.drains()) == ("", ())
    controller = premises.house(CONTROLLING, "first")
    premises.tick(controller, page, times=5)
    assert [drain.asked_by for drain in page.sight().drains] == ["till"]


def test_without_a_keep_to_lay_requests_in_a_page_says_that_it_only_shows(premises: Premises) -> None:
    page = premises.house(SERVING, "page")
    assert isinstance(page.control.live.lease, NeverMine)
    page.control._elsewhere = None
    premises.tick(page, times=2)
    with pytest.raises(NotLeading, match="never acts on it"):
        page.propose("osd.0", "till", "noisy", Intent.REPLACE)


def test_of_several_controllers_the_one_that_leads_says_that_an_osd_is_down(premises: Premises) -> None:
    first, second = premises.house(CONTROLLING, "first"), premises.house(CONTROLLING, "second")
    premises.tick(first, second, times=3)
    premises.cluster.stop_osd(OsdId(0))
    premises.tick(first, second, times=3)
    told = [one for one in first.store.outcomes() if one.fate is Fate.SUSPECTED]
    assert len(told) == 1


def test_a_bundle_that_workers_changed_keeps_the_controller_of_another_process_quiet(
    premises: Premises,
) -> None:
    controller = premises.house(CONTROLLING, "first")
    premises.tick(controller)
    assert controller.control._controller.bundle_since is None
    now = premises.cluster.now
    for fingerprint in ("one", "two"):
        succession.since(premises.worker().store, fingerprint, now)
    premises.tick(controller)
    assert controller.control._controller.bundle_since == now


def test_a_page_is_ready_without_a_forecaster_and_says_which_parts_run_where(
    premises: Premises, place: Place, serve: Serve
) -> None:
    page = premises.house(SERVING)
    page.settings = place.settings
    site = serve(page)
    assert site.client.get("/readyz").status_code == 200
    parts = site.client.get("/healthz").json()["parts"]
    assert (parts["page"], parts["scoring"], parts["controller"]) == (
        "here",
        "in other processes",
        "in other processes",
    )
    assert parts["bundles"].endswith("not compared")
    assert site.client.get("/api/v1/status").json()["controller"].startswith("holding: no cluster")
    assert not page.lineup.champion


@pytest.mark.parametrize("command", ["serve", "control", "work"])
def test_a_part_of_its_own_needs_a_log_and_a_store_that_are_shared(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "predrain.toml"
    config.write_text('[kafka]\nbootstrap = ["127.0.0.1:1"]\n')
    assert main([command, "--config", str(config), "--state", str(tmp_path / "state")]) == 1
    assert "set bootstrap of [kafka] and url of [store]" in capsys.readouterr().err


def test_a_controller_of_its_own_needs_a_cluster_and_no_hand(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CEPH_CONF", raising=False)
    monkeypatch.setattr(live, "ETC", tmp_path)
    config = tmp_path / "predrain.toml"
    both = '[kafka]\nbootstrap = ["127.0.0.1:1"]\n[store]\nurl = "postgresql://127.0.0.1:1/x"\n'
    for ceph, told in (("", "set conf of [ceph]"), ('conf = "c"\nhand_key = "k"\n', "run `predrain up`")):
        config.write_text(f"{both}[ceph]\n{ceph}")
        assert main(["control", "--config", str(config), "--state", str(tmp_path / "state")]) == 1
        assert told in capsys.readouterr().err


def asking(page: House, meanwhile: object) -> None:
    """What happens each time that the page waits for an answer."""
    elsewhere = page.control._elsewhere
    assert elsewhere is not None
    elsewhere.sleep = lambda _: meanwhile()  # type: ignore[operator]


def approve(page: House, drain: Drain) -> Drain:
    return page.ask(lambda control, now: control.approve(drain.id, seals.seal(drain), "till", now))
