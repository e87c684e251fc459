"""The printed caps on a real cluster: with exactly these the engine works, and what could harm is refused."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from predrain.actions.cluster.cluster_port import (
    Balancer,
    ClusterUnreachable,
    Command,
    CrushReweight,
    DeviceLight,
    PrimaryAffinity,
    PublishLife,
    RemoveUpmap,
    Reweight,
    SetFlag,
    SetOption,
    SetUpmap,
    WithdrawLife,
)
from predrain.actions.cluster.cluster_view import PROPOSE_INTERVAL
from predrain.actions.cluster.config_key_store import PIECE_BYTES, ConfigKeys
from predrain.actions.cluster.dumps.view_questions import PG_BRIEF, QUESTIONS, running_scheduler, whole_rows
from predrain.actions.cluster.lease import RadosLease
from predrain.actions.cluster.live_ceph import LiveCluster, to_ceph_commands
from predrain.actions.cluster.rados_connection import Rados
from predrain.actions.controller.ceph_caps import CephUser, build_cephx_caps
from predrain.actions.core.held_throttles import OPTIONS, PROFILE
from predrain.actions.mechanics.crush_removal import FLAGS
from predrain.data.ids import DeviceId, OsdId, PgId
from tests.system.ceph.conftest import Start
from tests.system.ceph.minicluster import MiniCluster

EACCES = -13
NOW = datetime(2030, 1, 1, tzinfo=UTC)
pytestmark = pytest.mark.release


@pytest.fixture(scope="module")
def world(start: Start) -> MiniCluster:
    """Four OSDs with devices, a pool with data, the pool of the lease, and an OSD that is out."""
    cluster = start(store="loop", size_gib=2)
    cluster.pool("rep", pg_num=8, size=2)
    cluster.pool("predrain", pg_num=1, size=2)
    cluster.command("osd set-require-min-compat-client", version="luminous")
    cluster.wait(lambda: len(cluster.json("device ls")) == 4, 60, "four devices")
    return cluster


def _channel(world: MiniCluster, name: str, allowed: dict[str, str]) -> Rados:
    world.client(name, allowed)
    return Rados(world.connection(name))


@pytest.fixture(scope="module")
def ours(world: MiniCluster) -> Iterator[Rados]:
    """The service's own user."""
    channel = _channel(world, "client.predrain", build_cephx_caps().by_service())
    yield channel
    channel.close()


def test_every_question_is_answered(ours: Rados) -> None:
    asked = (*QUESTIONS, PG_BRIEF, whole_rows(OsdId(0)), running_scheduler(OsdId(0)))
    replies = {q.name: ours.ask(q.to, q.prefix, q.arguments) for q in asked}
    # Without an orchestrator its upgrade status is refused for that reason; a missing right would be EACCES.
    refused = {name: reply.err for name, reply in replies.items() if not reply.ok}
    assert set(refused) <= {"orch_upgrade_status"}
    assert EACCES not in {reply.rc for reply in replies.values()}
    assert ours.ask("mon", "osd getmap").ok
    assert ours.ask("mgr", "osd perf", {"format": "json"}).ok


def _commands(world: MiniCluster) -> list[Command]:
    pool = next(p["pool"] for p in world.json("osd dump")["pools"] if p["pool_name"] == "rep")
    row = next(pg for pg in world.pgs() if pg["pgid"].startswith(f"{pool}."))
    pg, here = PgId(row["pgid"]), row["up"]
    other = next(osd for osd in world.osds() if osd not in here)
    device = DeviceId(world.json("device ls")[0]["devid"])
    weight = next(n["crush_weight"] for n in world.json("osd tree")["nodes"] if n["name"] == "osd.1")
    options = [SetOption(name, "balanced" if name == PROFILE else "2") for name in OPTIONS]
    return [
        SetUpmap(pg, ((here[0], other),), tuple(here)),
        RemoveUpmap(pg),
        Reweight(OsdId(1), 0.9),
        Reweight(OsdId(1), 1.0),
        CrushReweight(OsdId(1), weight / 2),
        CrushReweight(OsdId(1), weight),
        PrimaryAffinity(OsdId(1), 0.5),
        PrimaryAffinity(OsdId(1), 1.0),
        *(SetFlag(flag, on) for flag in FLAGS for on in (True, False)),
        *options,
        *(SetOption(name, None) for name in OPTIONS),
        SetOption(PROPOSE_INTERVAL, "0.5", "mon"),
        SetOption(PROPOSE_INTERVAL, None, "mon"),
        Balancer(on=False),
        Balancer(on=True),
        Balancer(on=None),
        PublishLife(device, NOW, NOW),
        WithdrawLife(device),
    ]


def _settings_of_daemons(world: MiniCluster) -> list[Any]:
    return [row for row in world.json("config dump") if row["section"] in ("osd", "mon")]


def test_every_command_of_the_engine_is_carried_out(world: MiniCluster, ours: Rados) -> None:
    before = _settings_of_daemons(world)
    refused = []
    for command in _commands(world):
        replies = ours.ask_all(to_ceph_commands(command))
        refused += [(command, reply.rc, reply.err) for reply in replies if not reply.ok]
    assert refused == []
    assert _settings_of_daemons(world) == before
    assert world.json("osd dump")["pg_upmap_items"] == []


def test_a_balancer_that_was_on_by_default_works_again_with_no_row_of_its_own(
    world: MiniCluster, ours: Rados
) -> None:
    world.command("config rm", who="mgr", name="mgr/balancer/active")
    live = LiveCluster(ours, lambda: datetime.now(UTC))
    assert live.apply(Balancer(on=False)).ok
    assert live.apply(Balancer(on=None)).ok
    assert world.json("balancer status", to="mgr")["active"] is True
    assert "mgr/balancer/active" not in {row["name"] for row in world.json("config dump")}


def test_texts_are_kept_and_the_lease_is_held(world: MiniCluster, ours: Rados) -> None:
    keep, text = ConfigKeys(ours), "ü" * PIECE_BYTES
    keep.write("drain/osd.7", text)
    assert keep.read("drain/osd.7") == text
    assert keep.names() == ("drain/osd.7",)
    keep.remove("drain/osd.7")
    assert keep.names() == ()
    lease = RadosLease(ours, "one", time.monotonic, seconds=60)
    assert lease.hold(), lease.why
    lease.release()
    assert ours.probe("predrain", "probe", 4096) > 0


FORBIDDEN: list[tuple[str, str, dict[str, Any]]] = [
    ("mon", "osd set", {"key": "pause"}),
    ("mon", "osd set", {"key": "noout"}),
    ("mon", "osd unset", {"key": "noout"}),
    ("mon", "osd out", {"ids": ["0"]}),
    ("mon", "osd down", {"ids": ["0"]}),
    ("mon", "osd purge", {"id": 0, "yes_i_really_mean_it": True}),
    ("mon", "osd destroy", {"id": 0, "yes_i_really_mean_it": True}),
    ("mon", "osd blocklist", {"blocklistop": "add", "addr": "127.0.0.1:0/123456", "expire": 5.0}),
    ("mon", "osd pool delete", {"pool": "rep", "pool2": "rep", "yes_i_really_really_mean_it": True}),
    ("mon", "osd pool set", {"pool": "rep", "var": "size", "val": "1"}),
    ("mon", "config set", {"who": "osd", "name": "debug_osd", "value": "1"}),
    ("mon", "config set", {"who": "global", "name": "osd_max_backfills", "value": "9"}),
    ("mon", "config set", {"who": "osd.0", "name": "osd_max_backfills", "value": "9"}),
    ("mon", "config rm", {"who": "osd", "name": "debug_osd"}),
    ("mon", "config-key set", {"key": "other/x", "val": "me"}),
    ("mon", "config-key get", {"key": "mgr/devicehealth/x"}),
    ("mon", "config-key rm", {"key": "other/x"}),
    ("mon", "config-key dump", {"key": "mgr/"}),
    ("mon", "auth ls", {}),
    ("mon", "auth get", {"entity": "client.admin"}),
    ("mon", "mgr module disable", {"module": "iostat"}),
    ("mon", "mgr fail", {"who": "x"}),
    ("mgr", "balancer mode", {"mode": "none"}),
    ("mgr", "device light", {"enable": "on", "devid": "X"}),
    ("mgr", "orch osd rm", {"osd_id": ["0"]}),
    ("osd.0", "flush_pg_stats", {}),
    ("osd.0", "config set", {"var": "osd_max_backfills", "val": ["9"]}),
]


@pytest.mark.parametrize(("to", "prefix", "arguments"), FORBIDDEN, ids=lambda part: str(part)[:50])
def test_a_command_that_could_do_harm_is_refused(
    ours: Rados, to: str, prefix: str, arguments: dict[str, Any]
) -> None:
    assert ours.ask(to, prefix, arguments).rc == EACCES


def test_no_object_of_another_pool_can_be_touched(ours: Rados) -> None:
    assert ours.lock("rep", "x", "me", 5).rc in (EACCES, -1)


def test_a_service_that_acts_through_the_mgr_module_cannot_change_the_map(world: MiniCluster) -> None:
    channel = _channel(world, "client.reading", build_cephx_caps(CephUser.READING).by_service())
    try:
        assert all(channel.ask(q.to, q.prefix, q.arguments).rc != EACCES for q in QUESTIONS)
        keep, admin = ConfigKeys(channel), Rados(world.connection())
        keep.write("halt", "why")
        with pytest.raises(
            ClusterUnreachable, match="may set a halt and not lift one; `ceph predrain unhalt`"
        ):
            keep.remove("halt")
        assert ConfigKeys(admin).read("halt") == "why"
        ConfigKeys(admin).remove("halt")
        admin.close()
        keep.write("requests/5", "{}")
        assert keep.read("requests/5") == "{}"
        keep.remove("requests/5")
        keep.remove("answers/5")
        for name in ("drain/osd.7", "ended", "steps", "lives", "heard", "answers/5"):
            assert (
                channel.ask("mon", "config-key set", {"key": f"predrain/{name}"}, given=b"x").rc == EACCES
            ), name
        assert channel.ask("mon", "config-key rm", {"key": "predrain/steps"}).rc == EACCES
        for command in _commands(world):
            assert {reply.rc for reply in channel.ask_all(to_ceph_commands(command))} == {EACCES}, command
    finally:
        channel.close()


def test_the_second_key_may_ask_for_the_light_and_not_for_the_map(world: MiniCluster) -> None:
    channel = _channel(world, "client.hands", build_cephx_caps(CephUser.HANDS).by_service())
    try:
        device = DeviceId(world.json("device ls")[0]["devid"])
        (light,) = channel.ask_all(to_ceph_commands(DeviceLight(device, on=True)))
        assert light.rc != EACCES  # there is no orchestrator to do it
        assert channel.ask("mgr", "orch osd rm", {"osd_id": ["0"]}).rc not in (0, EACCES)
        assert channel.ask_all(to_ceph_commands(Reweight(OsdId(1), 0.5)))[0].rc == EACCES
    finally:
        channel.close()
