"""Processes of their own on one log and one store: who scores, who acts and who shows, and that none sees half."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import pytest

from predrain.actions.controller.request_execution import NotLeading
from predrain.actions.core.drain_policy import Policy
from predrain.actions.simulator import SimulatedCluster
from predrain.data.drain import Drain, DrainState
from predrain.data.ids import DeviceId, OsdId
from predrain.data.log.memory_log import MemoryLog
from predrain.data.outcome import DriveFate
from predrain.data.reading import Reading
from predrain.data.store.sqlite_store import SqliteStore
from predrain.service.app.application import Application, ApplicationPorts
from predrain.service.app.changes import ChangeKind
from predrain.service.app.roles import CONTROLLING, SERVING, SHARING, ServiceRoles
from predrain.service.cli import main
from predrain.service.config.settings import Settings
from predrain.service.drains import live_cluster
from predrain.service.drains.drain_requests import RequestUnanswered
from predrain.service.drains.live_cluster import LiveClusterParts
from predrain.service.drains.view_only_cluster import NeverHeldLease, make_view_only_cluster
from predrain.service.forecasting import model_succession
from predrain.service.forecasting.bundle_choice import BundledForecaster
from tests.actions.made_config_keys import KeepInMemory
from tests.service.conftest import Place, Serve, shut, smart_reading, week_of
from tests.service.person_requests import approve_drain, propose_drain
from tests.service.test_drains import ClusterClock, seated
from tests.service.test_requests_elsewhere import LeaseOfOne, Lock
from tests.service.test_worker import work

DISK = DeviceId("ST4000DM000_A")


@dataclass
class Premises:
    """The parts that all processes share, and the applications that use them."""

    folder: Path
    forecaster: BundledForecaster
    log: MemoryLog = field(default_factory=MemoryLog)
    cluster: SimulatedCluster = field(default_factory=seated)
    texts: dict[str, str] = field(default_factory=dict)
    lock: Lock = field(default_factory=Lock)
    applications: list[Application] = field(default_factory=list)

    def application(self, parts: ServiceRoles, name: str = "") -> Application:
        """A process with a connection of its own to the store."""
        seen = None
        if name:
            seen = LiveClusterParts(
                self.cluster, KeepInMemory(self.texts).signed, LeaseOfOne(self.lock, name), name
            )
            seen = seen if parts.acts else make_view_only_cluster(seen)
        store = SqliteStore(self.folder / "store.db")
        ports = ApplicationPorts(self.log, store, ClusterClock(self.cluster), lambda: self.forecaster, seen)
        made = Application(ports, Policy(), Settings(), parts=parts)
        self.applications.append(made)
        return made

    def worker(self) -> Application:
        """One that scores and has no cluster."""
        made = self.application(SHARING)
        made.start()
        return made

    def tick(self, *applications: Application, times: int = 1) -> None:
        """Ten seconds, and a turn of each."""
        for _ in range(times):
            self.cluster.advance(10.0)
            for application in applications:
                application.step_others()
                application.step_controller()

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
    for application in made.applications:
        shut(application)


def test_a_page_shows_what_a_worker_in_another_process_scored_and_tells_who_listens(
    premises: Premises,
) -> None:
    page, worker = premises.application(SERVING), premises.worker()
    page.ingest(premises.sick())
    seen = page.changes.number
    page.step_others()
    assert (page.get_snapshot().outlooks, page.changes.number, page.bundle_name) == ({}, seen, None)
    work(worker)
    page.step_others()
    assert page.get_snapshot().outlooks == worker.store.latest_outlooks() != {}
    assert page.get_snapshot().readings == worker.store.latest_readings()
    assert page.bundle_name == worker.bundle_name
    assert page.announcements.list_newest_alerts() == worker.announcements.list_newest_alerts() != ()
    _, kinds = page.changes.find_changes_since(seen)
    assert {ChangeKind.OSDS, ChangeKind.OUTLOOKS, ChangeKind.DEVICES, ChangeKind.ALERTS} <= kinds
    seen = page.changes.number
    page.step_others()
    assert page.changes.number == seen


def test_a_worker_reports_no_second_change_for_outlooks_that_it_stored_itself(premises: Premises) -> None:
    worker, other = premises.worker(), premises.worker()
    worker.ingest(premises.sick())
    work(worker)
    seen = worker.changes.number
    worker.step_others()
    assert worker.changes.number == seen
    other.step_others()
    assert other.get_snapshot().outlooks == worker.get_snapshot().outlooks


def test_a_halt_said_elsewhere_is_told(premises: Premises) -> None:
    page, other = premises.application(SERVING), premises.application(SERVING)
    other.halt("smoke", "till")
    seen = page.changes.number
    page.step_others()
    assert page.find_halt_reason() == "smoke"
    assert ChangeKind.HALT in page.changes.find_changes_since(seen)[1]


def test_a_controller_proposes_by_what_workers_scored_and_the_page_shows_it(premises: Premises) -> None:
    controller, page = premises.application(CONTROLLING, "first"), premises.application(SERVING, "page")
    premises.tick(controller, page, times=5)
    worker = premises.worker()
    worker.ingest(premises.sick())
    work(worker)
    seen = page.changes.number
    premises.tick(controller, page, times=3)
    (drain,) = page.get_snapshot().drains
    assert (drain.state, drain.device) == (DrainState.PROPOSED, DISK)
    assert ChangeKind.DRAINS in page.changes.find_changes_since(seen)[1]
    assert len(page.get_snapshot().view.osds) == 12  # type: ignore[union-attr]
    assert (controller.describe_controller(), premises.lock.owner) == ("running", "first")
    assert page.describe_controller() == "in another process; this one shows"


def test_a_drain_approved_on_a_page_is_begun_by_the_controller_and_its_curve_is_shown(
    premises: Premises,
) -> None:
    controller, page = premises.application(CONTROLLING, "first"), premises.application(SERVING, "page")
    premises.tick(controller, page, times=5)
    asking(page, lambda: premises.tick(controller))
    drain = propose_drain(page, "osd.0", "till")
    approved = approve(page, drain)
    assert approved.state is DrainState.APPROVED
    for _ in range(100):
        premises.tick(controller, page)
        if page.timelines.list_samples(drain.id) and page.get_snapshot().drains[0].progress.moved_pgs:
            break
    assert page.timelines.list_samples(drain.id)
    assert page.get_snapshot().drains[0].progress.moved_pgs
    assert premises.lock.owner == "first"


def test_a_page_never_leads_and_a_request_that_no_controller_hears_is_kept_for_one(
    premises: Premises,
) -> None:
    page = premises.application(SERVING, "page")
    premises.tick(page, times=5)
    asking(page, lambda: None)
    with pytest.raises(RequestUnanswered):
        propose_drain(page, "osd.0", "till")
    assert (premises.lock.owner, page.store.drains()) == ("", ())
    controller = premises.application(CONTROLLING, "first")
    premises.tick(controller, page, times=5)
    assert [drain.asked_by for drain in page.get_snapshot().drains] == ["till"]


def test_without_a_keep_to_lay_requests_in_a_page_says_that_it_only_shows(premises: Premises) -> None:
    page = premises.application(SERVING, "page")
    assert isinstance(page.control.live.lease, NeverHeldLease)
    page.control._elsewhere = None
    premises.tick(page, times=2)
    with pytest.raises(NotLeading, match="never acts on it"):
        propose_drain(page, "osd.0", "till")


def test_of_several_controllers_the_one_that_leads_says_that_an_osd_is_down(premises: Premises) -> None:
    first, second = premises.application(CONTROLLING, "first"), premises.application(CONTROLLING, "second")
    premises.tick(first, second, times=3)
    premises.cluster.stop_osd(OsdId(0))
    premises.tick(first, second, times=3)
    told = [one for one in first.store.outcomes() if one.fate is DriveFate.SUSPECTED]
    assert len(told) == 1


def test_a_bundle_that_workers_changed_keeps_the_controller_of_another_process_quiet(
    premises: Premises,
) -> None:
    controller = premises.application(CONTROLLING, "first")
    premises.tick(controller)
    assert controller.control._controller.bundle_since is None
    now = premises.cluster.now
    for fingerprint in ("one", "two"):
        model_succession.record_deployment(premises.worker().store, fingerprint, now)
    premises.tick(controller)
    assert controller.control._controller.bundle_since == now


def test_a_page_is_ready_without_a_forecaster_and_says_which_parts_run_where(
    premises: Premises, place: Place, serve: Serve
) -> None:
    page = premises.application(SERVING)
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
    assert not page.deployed_models.champion


@pytest.mark.parametrize("command", ["serve", "control", "work"])
def test_a_part_of_its_own_needs_a_log_and_a_store_that_are_shared(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "predrain.toml"
    config.write_text('[kafka]\nbootstrap_servers = ["127.0.0.1:1"]\n')
    assert main([command, "--config", str(config), "--state", str(tmp_path / "state")]) == 1
    assert "set bootstrap_servers of [kafka] and url of [store]" in capsys.readouterr().err


def test_a_controller_of_its_own_needs_a_cluster_and_no_hand(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CEPH_CONF", raising=False)
    monkeypatch.setattr(live_cluster, "ETC", tmp_path)
    config = tmp_path / "predrain.toml"
    both = '[kafka]\nbootstrap_servers = ["127.0.0.1:1"]\n[store]\nurl = "postgresql://127.0.0.1:1/x"\n'
    for ceph, told in (("", "set conf of [ceph]"), ('conf = "c"\nexecutor_key = "k"\n', "run `predrain up`")):
        config.write_text(f"{both}[ceph]\n{ceph}")
        assert main(["control", "--config", str(config), "--state", str(tmp_path / "state")]) == 1
        assert told in capsys.readouterr().err


def asking(page: Application, meanwhile: object) -> None:
    """Let `meanwhile()` run each time that the page waits for an answer."""
    elsewhere = page.control._elsewhere
    assert elsewhere is not None
    elsewhere.sleep = lambda _: meanwhile()  # type: ignore[operator]


def approve(page: Application, drain: Drain) -> Drain:
    return approve_drain(page, drain, "till")
