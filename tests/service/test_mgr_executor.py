"""Draining by the mgr executor: the real REST, the module's own code on the other side, a simulated cluster below."""

from __future__ import annotations

import errno
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from predrain.actions.ceph_mgr.predrain.service_report import drains_of, osds_of, state_of
from predrain.actions.ceph_mgr.predrain.service_requests import Service, UnusableAnswer, send_service_request
from predrain.actions.ceph_mgr.predrain.signed_steps import RequestedStep, sign_step, text_of
from predrain.actions.ceph_mgr.predrain.step_executor import StepExecutor as MgrHand
from predrain.actions.cluster.cluster_port import (
    ClusterUnreachable,
    CommandResult,
    DeviceLight,
    Reweight,
    SetFlag,
)
from predrain.actions.core.claimed_settings import command_for
from predrain.actions.simulator import SimulatedCluster
from predrain.data.ids import DeviceId, OsdId
from predrain.data.setting import read_setting
from predrain.data.store.store_port import AUDIT
from predrain.service.access.tokens import Caller, Scope
from predrain.service.cli import main
from predrain.service.drains.mgr_executor import (
    PATIENCE_SECONDS,
    MgrExecutor,
    MgrExecutorCluster,
    NoMgrExecutorKey,
    make_step_recorder,
)
from predrain.service.terminal.service_connection import CliClient
from tests.actions.checkers import Watched
from tests.actions.run import Run
from tests.actions.test_mechanics_retire import SPEC, S, moved_off, places, removed
from tests.service.conftest import NOON, Place, Serve, Site, shut
from tests.service.test_drains import ClusterClock, World, ask_drain, proposed, seated
from tests.settings_by_text import by_setting

KEY = "a-key-for-steps-of-more-than-32-letters"
HAND_TOKEN = "hand-token-0123456789abcdef-0123456789ab"
STEP = RequestedStep("id1", "-", 0, 1, 0.0, "osd.0/reweight", "0.5")


@dataclass
class SimulatedMgr:
    """The calls of the module to its mgr, answered from the simulated cluster."""

    cluster: SimulatedCluster | Watched
    halt: str | None = None
    store: dict[str, str] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    def get(self, data_name: str) -> Any:
        view = self.cluster.view()
        if data_name == "osd_map":
            return {
                "epoch": view.epoch,
                "flags": ",".join(view.flags),
                "osds": [
                    {"osd": osd.id, "up": osd.up, "weight": osd.reweight, "primary_affinity": osd.primary_affinity,
                     "down_at": 0} for osd in view.osds.values()
                ],
                "pools": [{"pool": pool.id, "pg_num": pool.pg_num} for pool in view.pools.values()],
                "pg_upmap_items": [
                    {"pgid": pg, "mappings": [{"from": a, "to": b} for a, b in pairs]}
                    for pg, pairs in view.upmap_items.items()
                ],
            }  # fmt: skip
        if data_name == "osd_map_tree":
            return {
                "nodes": [
                    {"id": o.id, "type": "osd", "crush_weight": o.crush_weight} for o in view.osds.values()
                ]
            }
        return {"all": {"active+clean": len(view.pgs)}}

    def get_store(self, key: str) -> str | None:
        return self.store.get(key)

    def set_store(self, key: str, val: str | None) -> None:
        self.store[key] = val or ""

    def mon_command(self, cmd_dict: dict[str, Any]) -> tuple[int, str, str]:
        prefix = cmd_dict["prefix"]
        if prefix == "config-key get":
            return (-errno.ENOENT, "", "") if self.halt is None else (0, self.halt, "")
        if prefix == "osd stat":
            return 0, json.dumps({"epoch": self.cluster.view().epoch}), ""
        if prefix == "osd ok-to-stop":
            return 0, "{}", ""
        self.asked.append(prefix)
        key, value = _written(cmd_dict)
        answer = self.cluster.apply(command_for(read_setting(key), value))
        return (0 if answer.ok else -errno.EINVAL), "", answer.text


def _written(command: dict[str, Any]) -> tuple[str, str]:
    """The text of the setting, and the value, of a mon command."""
    prefix = command["prefix"]
    if "upmap" in prefix:
        ids = command.get("id", [])
        pairs = " ".join(f"{a}>{b}" for a, b in zip(ids[::2], ids[1::2], strict=True))
        return f"upmap/{command['pgid']}", pairs
    if prefix == "osd reweight":
        return f"osd.{command['id']}/reweight", repr(command["weight"])
    if prefix == "osd crush reweight":
        return f"{command['name']}/crush_weight", repr(command["weight"])
    if prefix in ("osd set", "osd unset"):
        return f"flag/{command['key']}", "on" if prefix == "osd set" else "off"
    if prefix.startswith("balancer"):
        return "balancer", prefix.split()[1]
    if prefix.startswith("config"):
        return f"option/{command['name']}", command.get("value", "-")
    raise AssertionError(command)


@pytest.fixture
def world(place: Place) -> Iterator[World]:
    cluster = seated()
    clock = ClusterClock(cluster)
    hand = MgrExecutor(KEY, clock)  # type: ignore[arg-type]
    reach = MgrExecutorCluster(cluster, hand, lambda: application.store.drains())
    application = replace(place, clock=clock).application(cluster=reach)  # type: ignore[arg-type]
    application.start()
    yield World(application, cluster, reach)  # type: ignore[arg-type]
    shut(application)


@pytest.fixture
def site(world: World, serve: Serve) -> Site:
    world.tick(5)
    return serve(world.application)


@pytest.fixture
def service(site: Site) -> Service:
    return Service(str(site.client.base_url).rstrip("/"), site.token)


class AtOnce(MgrExecutor):
    """The way to the module without REST between: its own hand judges and carries out at once."""

    def __init__(self, mgr: SimulatedMgr, clock: ClusterClock) -> None:
        super().__init__(KEY, clock)  # type: ignore[arg-type]
        self.module, self.clock = MgrHand(mgr), clock
        self.answers: list[CommandResult] = []

    def explain_absence(self) -> str:
        return ""

    def carry_out_step(self, step: RequestedStep) -> CommandResult:
        now = self.clock.now().timestamp()
        text = text_of(replace(step, expires_at=now + PATIENCE_SECONDS))
        _, said = self.module.execute_step(KEY, text, sign_step(KEY, text), now, 3)
        assert said is not None, f"the hand waits over {text}"
        self.answers.append(CommandResult(said.ok, said.text, said.epoch))
        return self.answers[-1]


class Module:
    """The module's hand, asking again and again as in ceph-mgr."""

    def __init__(self, world: World, service: Service) -> None:
        self.mgr = SimulatedMgr(world.cluster)
        self.hand, self._world, self._service = MgrHand(self.mgr), world, service
        self._over, self.troubles = threading.Event(), []
        self._thread = threading.Thread(target=self._run)

    def round(self) -> None:
        self.hand.execute_waiting_steps(self._service, KEY, self._world.cluster.now.timestamp(), 3)

    def __enter__(self) -> Module:
        self.round()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._over.wait(0.002):
            try:
                self.round()
            except UnusableAnswer as trouble:
                self.troubles.append(str(trouble))


@pytest.mark.slow
def test_a_whole_drain_goes_through_the_hand(world: World, site: Site, service: Service) -> None:
    with Module(world, service) as module:
        drain = proposed(site)
        assert ask_drain(site, drain, "approve", **{"If-Match": drain["etag"]}).status_code == 200  # type: ignore[attr-defined]
        for _ in range(2000):
            world.tick()
            now = site.client.get(f"/api/v1/drains/{drain['id']}").json()
            if now["state"] in ("verified", "failed", "cancelled"):
                break
    journal = site.client.get(f"/api/v1/drains/{drain['id']}/journal").json()["items"]
    assert now["state"] == "verified", journal[-3:]
    assert world.cluster.truth().used_bytes[0] == 0
    assert {"osd pg-upmap-items", "osd reweight"} <= set(module.mgr.asked)
    assert module.troubles == []


@pytest.mark.slow
def test_a_disk_that_goes_for_good_is_removed_through_the_hand_as_without_it() -> None:
    with Run(SPEC) as run:
        hand = AtOnce(SimulatedMgr(run.watched), ClusterClock(run.cluster))
        record = make_step_recorder(run.store, ClusterClock(run.cluster))  # type: ignore[arg-type]
        run.started(MgrExecutorCluster(run.watched, hand, run.store.drains, record))
        before = places(run)
        mine = {id_ for id_, members in before.items() if 0 in members}
        drain = run.until(removed(run), S.VERIFIED, S.FAILED)
        assert [answer.text for answer in hand.answers if not answer.ok] == []
        assert drain.state is S.VERIFIED
        assert run.cluster.view().osds[OsdId(0)].crush_weight == 0.0
        assert not run.cluster.view().flags
        assert moved_off(run, before) == mine
        lines = run.store.journal(AUDIT)
        assert len(lines) == len(hand.answers), "every step by the hand is on record"
        assert {(line.caller, line.answered.split(":")[0]) for line in lines} == {("controller", "done")}
        assert sum(f'"drain":"{drain.id}"' in line.decided for line in lines) > 1
        assert run.store.verify_audit().broken is None


def test_a_step_that_no_map_shows_is_refused_by_the_mgr_executor_in_a_sentence() -> None:
    with Run(SPEC) as run:
        reach = MgrExecutorCluster(
            run.watched, AtOnce(SimulatedMgr(run.watched), ClusterClock(run.cluster)), run.store.drains
        )
        reach.view()
        answer = reach.apply(DeviceLight(DeviceId("ST4000DM000_A"), on=True))
        assert not answer.ok
        assert "light/ST4000DM000_A to 'on' is not on the list" in answer.text


def test_the_mgr_module_reads_status_osds_and_drains_as_rest_reports_them(
    world: World, site: Site, service: Service
) -> None:
    drain = proposed(site)
    state = state_of(send_service_request(service, "GET", "status").body)
    osds = osds_of(send_service_request(service, "GET", "osds").body)
    (told,) = drains_of(send_service_request(service, "GET", "drains").body)
    assert state.mode == "propose"
    assert len(osds) == 12
    assert osds[0].drain == told.id == drain["id"]
    assert told.etag == drain["etag"]


def test_a_halt_in_the_cluster_halts_the_service_and_hands_out_no_step(
    world: World, site: Site, service: Service
) -> None:
    module = Module(world, service)
    module.mgr.halt = "switch maintenance"
    module.round()
    assert site.client.get("/api/v1/halt").json()["halted"] == "in the cluster: switch maintenance"


def test_flags_that_a_step_set_are_cleared_by_the_hand_under_a_halt_of_the_cluster_too(
    world: World, service: Service
) -> None:
    with Module(world, service) as module:
        world.reach.view()
        assert world.reach.apply(SetFlag("norebalance", on=True)).ok
        assert world.reach.apply(SetFlag("nobackfill", on=True)).ok
        assert world.reach.apply(SetFlag("nobackfill", on=False)).ok
        module.mgr.halt = "switch maintenance"
        assert world.reach.apply(SetFlag("norebalance", on=False)).ok
    assert not world.cluster.view().flags


def test_a_halt_of_a_service_that_may_only_read_says_that_the_hand_is_not_halted(
    site: Site, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made = site.client.post("/api/v1/halt", json={"reason": "storm"}, headers=site.acting).json()
    assert made["halted"] == "storm"
    assert "cluster's own key is not set" in made["unreached"]
    assert "`ceph predrain halt`" in made["unreached"]
    assert site.client.get("/api/v1/halt").json()["unreached"] == made["unreached"]
    client = CliClient(str(site.client.base_url).rstrip("/"), site.token)
    monkeypatch.setattr(CliClient, "from_settings", lambda _: client)
    assert main(["unhalt"]) == 3
    said = capsys.readouterr()
    assert said.out.endswith("not halted\n")
    assert "only here: A halt in the cluster itself, if there is one, stands" in said.err


def test_a_step_is_answered_in_the_hands_own_words_and_only_once(world: World, service: Service) -> None:
    hand = world.reach.hand  # type: ignore[attr-defined]
    with Module(world, service):
        assert hand.carry_out_step(replace(STEP, id="a", expects="0.9")).text.startswith(
            "the mgr executor refuses it: osd.0/reweight"
        )
        done = hand.carry_out_step(replace(STEP, id="b", expects="1.0"))
    assert done.ok
    assert world.cluster.view().osds[OsdId(0)].reweight == 0.5
    with pytest.raises(Exception, match="no step b waits"):
        send_service_request(service, "POST", "executor/steps/b/result", {"ok": True, "text": "again"})


def test_without_a_module_nothing_is_sent_and_a_drain_under_way_holds(world: World, site: Site) -> None:
    world.reach.view()
    with pytest.raises(ClusterUnreachable, match="has not asked for steps yet"):
        world.reach.apply(Reweight(OsdId(0), 0.5))
    drain = proposed(site)
    ask_drain(site, drain, "approve", **{"If-Match": drain["etag"]})
    world.tick(5)
    assert "has not asked for steps" in site.client.get("/api/v1/status").json()["controller"]
    assert world.cluster.view().upmap_items == {}


def test_a_module_that_takes_a_step_and_falls_silent_is_given_up_on(world: World) -> None:
    hand = MgrExecutor(KEY, world.application.clock, patience=0.05)
    hand.fetch_waiting_steps()
    with pytest.raises(ClusterUnreachable, match="gave no answer"):
        hand.carry_out_step(STEP)
    assert hand.fetch_waiting_steps() == ()


def test_steps_are_for_the_scope_hand_alone(site: Site) -> None:
    assert site.client.get("/api/v1/executor/steps").status_code == 401
    assert site.client.get("/api/v1/executor/steps", headers=site.ingesting).status_code == 403
    answer = site.client.post(
        "/api/v1/executor/steps/x/result", json={"ok": True, "text": ""}, headers=site.ingesting
    )
    assert answer.status_code == 403


def test_the_scope_hand_takes_steps_and_may_do_nothing_else() -> None:
    caller = Caller("mgr", frozenset({Scope.EXECUTE}))
    assert [scope for scope in Scope if caller.has_scope(scope)] == [Scope.EXECUTE]


def test_a_service_that_acts_by_itself_has_no_steps(place: Place, serve: Serve) -> None:
    application = place.application(cluster=SimulatedCluster(seated().spec, 1, NOON))
    site = serve(application)
    answer = site.client.get("/api/v1/executor/steps", headers=site.acting)
    assert answer.status_code == 409
    assert "executor_key" in answer.json()["detail"]
    shut(application)


def test_a_step_names_the_drain_whose_ledger_holds_it(world: World, site: Site) -> None:
    sealed: list[RequestedStep] = []
    hand = world.reach.hand  # type: ignore[attr-defined]
    hand.carry_out_step = lambda step: (sealed.append(step), CommandResult(True, ""))[1]
    hand.fetch_waiting_steps()
    drain = proposed(site)
    stored = world.application.store.drain(drain["id"])
    assert stored is not None
    owned = replace(stored, ours=by_setting({"osd.0/reweight": "0.5"}), revision=stored.revision + 1)
    world.application.store.save_drain(owned)
    world.reach.view()
    world.reach.apply(Reweight(OsdId(0), 0.5))
    world.reach.apply(Reweight(OsdId(0), 0.25))
    assert [(step.drain, step.revision) for step in sealed] == [(owned.id, owned.revision), ("-", 0)]
    assert [step.expects for step in sealed] == ["1.0", "0.5"]


def test_a_key_file_that_holds_no_key_says_how_to_make_one(tmp_path: Path, world: World) -> None:
    (tmp_path / "key").write_text("short\n")
    with pytest.raises(NoMgrExecutorKey, match="openssl rand"):
        MgrExecutor.with_key_of(tmp_path / "key", world.application.clock)
    with pytest.raises(NoMgrExecutorKey, match="cannot be read"):
        MgrExecutor.with_key_of(tmp_path / "none", world.application.clock)
