"""Life expectancy in a real mgr: published where it moves nothing, withdrawn where it would; the light."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from predrain.actions.cluster.cluster_port import DeviceLight, PublishLife
from predrain.actions.cluster.config_key_store import ConfigKeys
from predrain.actions.cluster.live_ceph import LiveCluster
from predrain.actions.cluster.rados_connection import Rados
from predrain.actions.cluster.signed_keys import SignedKeys
from predrain.actions.controller.controller import Controller
from predrain.actions.controller.hand_over import Orchestrator, detect_orchestrator
from predrain.actions.core.decision_answers import TickReport
from predrain.data.ids import DeviceId
from predrain.data.outlook import Outlook, Status
from predrain.data.store.sqlite_store import SqliteStore
from tests.actions.made import bad_outlook
from tests.actions.made_config_keys import SIGNING_KEY
from tests.system.ceph.minicluster import MiniCluster
from tests.system.ceph.runner import POLICY

MINUTES = timedelta(minutes=4)
"""After so long a command that was sent must show, or is sent again."""


class World:
    """A controller on a cluster of two OSDs with devices of their own, at a time that the test sets."""

    def __init__(self, cluster: MiniCluster, folder: Path) -> None:
        self.cluster = cluster
        self.channel = Rados(cluster.connection())
        self.keep = SignedKeys(ConfigKeys(self.channel), SIGNING_KEY)
        self.now = datetime.now(UTC)
        self.store = SqliteStore(folder / "store.db")
        self.start()
        view = LiveCluster(self.channel, lambda: self.now).view()
        self.device = next(osd.device for osd in view.osds.values() if osd.device is not None)

    def start(self) -> None:
        """A new process."""
        self.live = LiveCluster(self.channel, lambda: self.now)
        self.controller = Controller(self.live, self.store, POLICY, keep=self.keep)

    def tick(self, status: Status | None) -> TickReport:
        """A look, minutes after the last one, with the device judged so."""
        self.now += MINUTES
        outlooks: dict[DeviceId, Outlook] = {}
        if status is not None:
            outlooks = {
                self.device: bad_outlook(0, at=self.now, device=self.device, status=status, readings=0)
            }
        return self.controller.tick(self.now, outlooks)

    @property
    def life(self) -> tuple[str, str] | None:
        """Return the two dates of the device's life expectancy in `ceph device ls`; None if the list has none."""
        for device in self.cluster.json("device ls", to="mgr"):
            if device["devid"] == self.device and device.get("life_expectancy_max"):
                return device["life_expectancy_min"][:10], device["life_expectancy_max"][:10]
        return None

    def self_heal(self, *, on: bool) -> None:
        self.cluster.command(
            "config set", who="mgr", name="mgr/devicehealth/self_heal", value=str(on).lower()
        )


@pytest.fixture(scope="module")
def disks(release: str) -> Iterator[MiniCluster]:
    with MiniCluster(release, hosts=2, per_host=1, size_gib=1, store="loop") as running:
        running.fake_device(0, serial="S0")
        running.fake_device(1, serial="S1")
        yield running


@pytest.fixture
def world(disks: MiniCluster, tmp_path: Path) -> Iterator[World]:
    made = World(disks, tmp_path)
    yield made
    for name in made.keep.names():
        made.keep.remove(name)
    disks.try_command("device rm-life-expectancy", to="mgr", devid=made.device)
    disks.command("config rm", who="mgr", name="mgr/devicehealth/self_heal")
    made.channel.close()
    made.store.close()


@pytest.mark.release
def test_it_is_published_only_while_the_mgr_does_not_act_on_it_and_withdrawn_when_it_would(
    world: World,
) -> None:
    report = world.tick(Status.BAD)
    assert "ceph config set mgr mgr/devicehealth/self_heal false" in report.advice
    assert world.life is None
    world.self_heal(on=False)
    assert world.tick(Status.BAD).advice == ""
    today = world.now.date()
    assert world.life == (f"{today}", f"{today + timedelta(days=14)}")
    world.cluster.command("device check-health", to="mgr")
    dump = world.cluster.json("osd dump")
    assert all(osd["in"] and osd["primary_affinity"] == 1 for osd in dump["osds"])
    world.self_heal(on=True)
    assert "self_heal is on" in world.tick(Status.BAD).advice
    assert world.life is None


@pytest.mark.release
def test_the_next_process_withdraws_ours_when_the_disk_is_better_and_leaves_other_peoples_word(
    world: World,
) -> None:
    world.self_heal(on=False)
    world.tick(Status.WARNING)
    assert world.life is not None
    world.start()
    world.tick(Status.GOOD)
    assert world.life is None
    theirs = (datetime(2030, 1, 1, tzinfo=UTC), datetime(2030, 2, 1, tzinfo=UTC))
    world.live.apply(PublishLife(world.device, *theirs))
    for status in (Status.BAD, Status.GOOD):
        world.tick(status)
        assert world.life == ("2030-01-01", "2030-02-01")


def test_a_cluster_without_an_orchestrator_says_so_and_refuses_the_light(world: World) -> None:
    assert detect_orchestrator(world.channel) is Orchestrator.NONE
    answer = world.live.apply(DeviceLight(world.device, on=True))
    assert not answer.ok
    assert "rchestrator" in answer.text
