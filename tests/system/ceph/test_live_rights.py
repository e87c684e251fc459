"""`predrain doctor` checks a key's rights on a real cluster: it names each missing right and changes nothing."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import pytest

from predrain.actions.cluster.rados_connection import Rados
from predrain.actions.controller.ceph_caps import CephUser, build_cephx_caps
from predrain.actions.controller.held_caps import probe_held_caps
from predrain.service.cli import main
from tests.system.ceph.conftest import Start
from tests.system.ceph.minicluster import MiniCluster

pytestmark = pytest.mark.release


@pytest.fixture(scope="module")
def kept(start: Start) -> MiniCluster:
    cluster = start()
    cluster.pool("predrain", pg_num=1, size=2)
    cluster.command("osd set-require-min-compat-client", version="luminous")
    return cluster


def test_the_printed_caps_are_held_one_that_is_taken_away_is_named_and_nothing_is_changed(
    kept: MiniCluster,
) -> None:
    def state() -> tuple[object, ...]:
        keys = kept.json("config-key dump", key="predrain/")
        return kept.json("config dump"), kept.json("osd dump")["epoch"], keys

    printed = build_cephx_caps().by_service()
    before = state()
    name = "client.doctored"
    kept.client(name, printed)
    with closing(Rados(kept.connection(name))) as channel:
        found = probe_held_caps(channel, name, CephUser.SERVICE, "predrain")
        assert (found.missing, found.wide) == ((), False)
    for taken, service, cap in (
        ("osd reweight", "mon", 'allow command "osd reweight"'),
        ("predrain/", "mon", 'allow command "config-key set" with key prefix predrain/'),
        ("osd_max_backfills", "mon", 'allow command "config set" with who=osd name=osd_max_backfills'),
        ("device", "mgr", 'allow command "device rm-life-expectancy"'),
        ("pool", "osd", "allow rwx pool=predrain"),
    ):
        less = {
            **printed,
            service: ", ".join(one for one in printed[service].split(", ") if one != cap) or "allow r",
        }
        assert less != printed, taken
        kept.command("auth caps", entity=name, caps=[word for pair in less.items() for word in pair])
        with closing(Rados(kept.connection(name))) as channel:
            found = probe_held_caps(channel, name, CephUser.SERVICE, "predrain")
            assert [one.cap for one in found.missing] == [cap]
    assert state() == before


def test_the_doctor_sees_a_real_cluster_with_the_printed_caps(
    kept: MiniCluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    least = kept.least()
    (tmp_path / "predrain.toml").write_text(
        f"[ceph]\nconf = '{least.conf}'\nkeyring = '{least.keyring}'\npython = {json.dumps(least.interpreter)}\n"
    )
    main(
        ["doctor", "--json", "--config", str(tmp_path / "predrain.toml"), "--state", str(tmp_path / "state")]
    )
    found = {one["what"]: one for one in json.loads(capsys.readouterr().out)}
    kinds = ("ceph release", "caps", "throttles", "mgr module", "clock, the cluster's mgr")
    assert found.keys() >= set(kinds), json.dumps(found)
    states = {what: found[what]["state"] for what in kinds}
    assert states == dict(zip(kinds, ("ok", "ok", "note", "note", "ok"), strict=True)), found
