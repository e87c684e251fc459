"""From the first symptom to an empty disk, on a real cluster, with a key that may do no more than the engine needs."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from predrain.actions.controller.ceph_caps import CephUser, build_cephx_caps
from predrain.actions.core.drain_policy import Mode, Policy
from predrain.data.clock import SystemClock
from predrain.data.drain import DrainState
from predrain.data.ids import DeviceId, HostName
from predrain.data.log.sqlite_log import SqliteLog
from predrain.data.reading import Attribute, Counters, Identity, Protocol, Reading, Smart
from predrain.data.store.sqlite_store import SqliteStore
from predrain.service.app.application import Application, ApplicationPorts
from predrain.service.config.settings import CephTable, ServiceTable, Settings
from predrain.service.drains.live_cluster import make_live_cluster
from predrain.service.processes.up import forecaster_of
from tests.actions.made_config_keys import SIGNING_KEY
from tests.deadlines import idle_seconds
from tests.service.person_requests import approve_drain
from tests.system.ceph.conftest import Start
from tests.system.ceph.minicluster import MiniCluster

CONF = """mgr_stats_period = 1
osd_min_pg_log_entries = 4
osd_max_pg_log_entries = 8
osd_pg_log_trim_min = 1
osd_target_pg_log_entries_per_osd = 1
"""
"""Statistics every second; logs so short that a new member is backfilled, as in pools older than their logs."""
ROOT = Path(__file__).resolve().parents[3]
SUSPECT = 2
OBJECTS, SIZE = 200, 65_536


@dataclass(frozen=True)
class Pools:
    """The members of a PG, by pool id: `size` counts all of them, `data` those that the bytes are split over."""

    size: dict[int, int]
    data: dict[int, int]

    @classmethod
    def of(cls, cluster: MiniCluster) -> Pools:
        found = cluster.json("osd dump")["pools"]
        data = {p["pool"]: 2 if p["pool_name"] == "ec" else 1 for p in found}
        return cls({p["pool"]: p["size"] for p in found}, data)

    def shard(self, pg: dict[str, Any]) -> int:
        return int(pg["stat_sum"]["num_bytes"]) // self.data[_pool(pg)]


@dataclass
class Sampler:
    """Watches the PGs from outside, four times a second, for what a drain must never do."""

    cluster: MiniCluster
    pools: Pools
    hurt: list[str] = field(default_factory=list)
    came: list[str] = field(default_factory=list)
    copied: int = 0
    peering_most: int = 0
    _held: dict[str, set[int]] = field(default_factory=dict)
    _end: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def __enter__(self) -> Sampler:
        self._look()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        assert self._thread is not None
        self._thread.join()

    def _watch(self) -> None:
        while not self._end.wait(0.25):
            self._look()

    def _look(self) -> None:
        peering = 0
        for pg in self.cluster.pgs():
            id_, states = pg["pgid"], set(pg["state"].split("+"))
            if "unknown" in states:
                continue  # the mgr has no report of it now: no fresh sample
            members, size = pg["acting"], self.pools.size[_pool(pg)]
            if states & {"degraded", "undersized", "inactive", "incomplete", "stale"}:
                self.hurt.append(f"{id_} {pg['state']}")
            if len(set(members)) != size or len(members) != size:
                self.hurt.append(f"{id_} acting {members}")
            peering += "active" not in states
            came = set(members) - self._held.get(id_, set(members))
            self.copied += len(came) * self.pools.shard(pg)
            self.came += [f"{id_} {sorted(self._held[id_])} + {sorted(came)}"] if came else []
            self._held.setdefault(id_, set()).update(members)
        self.peering_most = max(self.peering_most, peering)


def _pool(pg: dict[str, Any]) -> int:
    return int(pg["pgid"].partition(".")[0])


@pytest.fixture(scope="module")
def whole(start: Start) -> MiniCluster:
    """Four hosts of two disks; a replicated and an erasure-coded pool with data, and the pool of lease and probe."""
    cluster = start(hosts=4, per_host=2, store="loop", conf=CONF)
    cluster.command("osd set-require-min-compat-client", version="luminous")
    cluster.pool("rep", pg_num=16, size=3)
    cluster.pool("ec", pg_num=16, k=2, m=1)
    cluster.pool("predrain", pg_num=8, size=3)
    cluster.client("client.predrain", build_cephx_caps(CephUser.SERVICE).by_service())
    return cluster


@pytest.fixture(scope="module")
def written(whole: MiniCluster) -> dict[str, dict[str, str]]:
    """Write objects into the pools; return the checksums of those in `rep` and `ec`. Every pool is older than its logs:
    a younger pool is filled from the log, which Ceph shows as degraded (`test_traps` has that case)."""
    whole.write("predrain", objects=OBJECTS, size=4096)
    found = {pool: whole.write(pool, objects=OBJECTS, size=SIZE) for pool in ("rep", "ec")}
    whole.wait_clean()
    return found


def ceph_table(cluster: MiniCluster) -> CephTable:
    conf, keyring, name = cluster.where("client.predrain")
    return CephTable(conf=Path(conf), keyring=Path(keyring), name=name, python=cluster.interpreter())


@pytest.fixture
def application(whole: MiniCluster, tmp_path: Path) -> Iterator[Application]:
    """The service as `predrain up` composes it, with a policy for a small cluster."""
    settings = Settings(service=ServiceTable(state=tmp_path), ceph=ceph_table(whole))
    store = SqliteStore(tmp_path / "store.sqlite")
    cluster = make_live_cluster(settings.ceph, store, lambda: SIGNING_KEY)
    ports = ApplicationPorts(
        SqliteLog(tmp_path / "log.sqlite"), store, SystemClock(), forecaster_of(None), cluster
    )
    policy = replace(Policy(), mode=Mode.PROPOSE, mgr_stats_period_seconds=1.0, out_share_max=0.3)
    made = Application(ports, policy, settings)
    made.start()
    yield made
    made.stop()
    assert cluster is not None
    cluster.close()


def failing(device: str, host: str, at: datetime) -> Reading:
    """A drive whose own verdict is FAILED."""
    serial = device.rpartition("_")[2]
    seen = Smart(
        protocol=Protocol.ATA,
        identity=Identity(model="MINI HDD4T", serial=serial, capacity_bytes=4 * 10**12, rotation_rpm=7200),
        passed=False,
        counters=Counters(reallocated=4000, pending=120),
        attributes={5: Attribute("Reallocated_Sector_Ct", 4000), 197: Attribute("Pending", 120)},
        power_on_hours=20_000,
        temperature_c=30,
    )
    return Reading(DeviceId(device), HostName(host), at, at, seen)


def ticked(application: Application, seconds: float, *states: DrainState) -> Any:
    """Tick every second until the one drain is in one of `states`."""
    until = idle_seconds() + seconds
    while True:
        application.step_controller()
        drains = application.store.drains()
        if drains and drains[0].state in states:
            return drains[0]
        told = [(one.state, one.held_by, one.progress) for one in drains]
        assert idle_seconds() < until, f"{told}; {application.describe_controller()}"
        time.sleep(1.0)


def test_a_disk_that_turns_bad_is_drained_before_it_fails_and_nobody_misses_a_byte(
    whole: MiniCluster, written: dict[str, dict[str, str]], application: Application
) -> None:
    before = whole.json("config dump")
    device = next(d["devid"] for d in whole.json("device ls") if f"osd.{SUSPECT}" in d["daemons"])
    now = datetime.now(UTC)
    for hours in (3.0, 1.5, 0.0):
        application.ingest([failing(device, "host1", now - timedelta(hours=hours))])
    while application.step_worker().taken:
        pass
    proposed = ticked(application, 60, DrainState.PROPOSED)
    assert proposed.device == device
    assert proposed.osds == (SUSPECT,)
    assert not proposed.plan.refusals
    pgs = whole.pgs()
    pools = Pools.of(whole)
    on_it = sum(pools.shard(pg) for pg in pgs if SUSPECT in pg["acting"])
    said = proposed.plan.bytes
    approve_drain(application, proposed, "operator")
    with Sampler(whole, pools) as seen:
        done = ticked(application, 500, DrainState.VERIFIED, DrainState.FAILED)
    journal = "\n".join(f"{e.seen} | {e.decided} | {e.answered}" for e in application.store.journal(done.id))
    assert done.state is DrainState.VERIFIED, journal
    assert seen.hurt == [], journal
    whole.flush()
    assert not [pg for pg in whole.pgs() if SUSPECT in pg["acting"] or SUSPECT in pg["up"]]
    assert whole.json("osd safe-to-destroy", ids=[str(SUSPECT)])["safe_to_destroy"] == [SUSPECT]
    assert seen.copied <= 1.1 * on_it, f"{seen.came}\n{journal}"
    assert abs(said - seen.copied) <= 0.1 * seen.copied
    assert seen.peering_most <= application.policy.peering_max
    assert {pool: whole.read_back(pool) for pool in written} == written
    assert whole.json("config dump") == before
    # An upmap item keeps a PG elsewhere if the OSD of CRUSH's own choice was full or reported no size.
    kept = sum(map(int, re.findall(r"(\d+) PGs? kept in place by new upmap items", journal)))
    assert len(whole.json("osd dump")["pg_upmap_items"]) <= kept, journal


def test_the_command_line_drains_straight_on_the_cluster_and_says_how_it_went(
    whole: MiniCluster, written: dict[str, dict[str, str]], tmp_path: Path
) -> None:
    ceph = ceph_table(whole)
    python = ", ".join(json.dumps(word) for word in ceph.python)
    settings = tmp_path / "predrain.toml"
    settings.write_text(
        f'[ceph]\nconf = "{ceph.conf}"\nkeyring = "{ceph.keyring}"\nname = "{ceph.name}"\npython = [{python}]\n'
        "[policy]\ntick_seconds = 1\nmgr_stats_period_seconds = 1\nout_share_max = 0.5\n"
    )
    command = [str(Path(sys.executable).with_name("predrain")), "drain"]
    words = ["--config", str(settings), "--state", str(tmp_path / "state")]
    planned = subprocess.run(
        [*command, "plan", "osd.5", "--json", *words], cwd=ROOT, capture_output=True, text=True, check=True
    )
    plan = json.loads(planned.stdout)
    assert not plan["refusals"]
    keyless = subprocess.run(
        [*command, "apply", "osd.5", "--yes", "--wait", *words],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert keyless.returncode == 3
    assert "--signing-key FILE" in keyless.stderr
    key = tmp_path / "signing_key"
    key.touch(mode=0o600)
    key.write_text(f"{SIGNING_KEY}\n")
    applied = subprocess.run(
        [*command, "apply", "osd.5", "--yes", "--wait", "--reason", "a test", "--signing-key", str(key), *words],
        cwd=ROOT, capture_output=True, text=True, check=False, env={**os.environ, "COLUMNS": "200"},
    )  # fmt: skip
    assert applied.returncode == 0, applied.stderr
    assert "verified" in applied.stdout
    assert f"{plan['pgs']} of {plan['pgs']} PGs" in applied.stderr
    whole.flush()
    assert not [pg for pg in whole.pgs() if 5 in pg["acting"] or 5 in pg["up"]]
    assert {pool: whole.read_back(pool) for pool in written} == written
