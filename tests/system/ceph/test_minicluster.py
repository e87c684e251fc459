"""The promises of a throw-away cluster to the tests that use it."""

from __future__ import annotations

import os
import platform
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.deadlines import idle_seconds
from tests.system.ceph.daemons import born
from tests.system.ceph.minicluster import CommandError, MiniCluster
from tests.system.ceph.ports import reserve_port

SYS_EXIT = {"x86_64": 60, "aarch64": 93}
WORDS = {"pacific": "16.2", "reef": "18.2", "tentacle": "20."}


@pytest.mark.release
def test_a_cluster_of_the_release_is_up_with_one_osd_a_host(cluster: MiniCluster) -> None:
    (version,) = cluster.json("versions")["overall"]
    assert version.startswith(f"ceph version {WORDS[cluster.release]}")
    hosts = [node["name"] for node in cluster.json("osd tree")["nodes"] if node["type"] == "host"]
    assert sorted(hosts) == ["host0", "host1", "host2", "host3"]


@pytest.mark.release
@pytest.mark.parametrize("shape", [{"size": 3}, {"k": 2, "m": 1}], ids=["replicated", "erasure coded"])
def test_written_objects_are_read_back_and_a_changed_object_is_detected(
    cluster: MiniCluster, shape: dict[str, Any]
) -> None:
    name = "".join(shape)
    cluster.pool(name, pg_num=8, **shape)
    written = cluster.write(name, objects=20, size=5000)
    assert len(set(written.values())) == 20
    assert cluster.read_back(name) == written
    cluster.write(name, objects=1, size=4999)
    changed = cluster.read_back(name)
    assert {key for key in written if changed[key] != written[key]} == {"object-000000"}


def test_an_osd_that_is_killed_is_gone_and_comes_back(cluster: MiniCluster) -> None:
    cluster.kill("osd.3")
    assert not cluster.alive("osd.3")
    cluster.command("osd down", ids=["3"])
    assert cluster.osds() == [0, 1, 2]
    cluster.spawn("osd.3")
    cluster.wait(lambda: cluster.osds() == [0, 1, 2, 3], 60, "osd.3 back")
    cluster.wait_clean()


def test_a_mgr_that_crashed_is_started_anew(cluster: MiniCluster) -> None:
    cluster.kill("mgr.x")
    cluster.command("mgr fail", who="x")
    cluster.wait_for_mgr()
    assert cluster.alive("mgr.x")


def test_a_client_has_its_caps_and_no_more(cluster: MiniCluster) -> None:
    cluster.client("client.small", {"mon": "allow r"})
    agent = cluster.agent("client.small")
    try:
        assert agent.ask(op="command", to="mon", cmd={"prefix": "osd stat"}, timeout=10)[0] == 0
        refused = {"prefix": "osd set", "key": "noout"}
        assert agent.ask(op="command", to="mon", cmd=refused, timeout=10)[0] == -13
    finally:
        agent.close()


def test_the_interpreter_sees_the_cluster_where_it_is_told(cluster: MiniCluster) -> None:
    code = (
        "import rados, sys; conf, keyring, name = sys.argv[1:]; "
        "it = rados.Rados(name=name, conffile=conf, conf={'keyring': keyring}); it.connect(); print(it.get_fsid()); "
        "it.shutdown()"
    )
    argv = [*cluster.interpreter(), "-c", code, *cluster.where()]
    said = subprocess.run(argv, capture_output=True, text=True, check=True).stdout.strip()
    assert said == cluster.command("fsid").decode().strip()


def test_a_refused_command_says_why(cluster: MiniCluster) -> None:
    with pytest.raises(CommandError, match="No such file"):
        cluster.command("osd pool get", pool="nowhere", var="size")


def test_a_process_lives_until_its_last_thread_has_ended() -> None:
    """`SYS_exit` ends the first thread alone, which is a zombie from then on; a second thread ends the process."""
    code = (
        "import ctypes, os, sys, threading\n"
        "threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0))).start()\n"
        f"ctypes.CDLL(None).syscall({SYS_EXIT[platform.machine()]}, 0)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE) as process:
        stat = Path(f"/proc/{process.pid}/stat")
        until = idle_seconds() + 10
        while not stat.read_text().rsplit(")", 1)[1].startswith(" Z"):
            assert idle_seconds() < until, stat.read_text()
            time.sleep(0.01)
        assert born(process.pid) is not None
        assert process.stdin is not None
        process.stdin.close()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert born(process.pid) is None


def test_two_clusters_never_share_a_port() -> None:
    (one, held), (two, other) = reserve_port(), reserve_port()
    held.close()
    other.close()
    assert two >= one + 2


def test_a_port_of_a_cluster_is_kept_while_nobody_listens_there(cluster: MiniCluster) -> None:
    mine = cluster.reserve_port()
    other, lock = reserve_port()
    lock.close()
    assert other != mine


@pytest.mark.slow
def test_nothing_is_left_of_a_cluster_whose_owner_was_killed(release: str, tmp_path: Path) -> None:
    code = (
        "import sys, time; from tests.system.ceph.minicluster import MiniCluster\n"
        f"c = MiniCluster({release!r}, {str(tmp_path / 'c')!r}, hosts=1, store='loop', size_gib=1).start()\n"
        "print(c.daemons.pid('osd.0'), c.devices.attached()[0], flush=True); time.sleep(600)"
    )
    owner = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[3]
    )
    assert owner.stdout
    pid, loop = owner.stdout.readline().split()
    assert born(int(pid)) is not None
    assert loop in _loops()
    os.kill(owner.pid, signal.SIGKILL)
    owner.communicate()
    until = idle_seconds() + 30
    while (tmp_path / "c").exists() and idle_seconds() < until:
        time.sleep(0.1)
    assert not (tmp_path / "c").exists()
    assert born(int(pid)) is None
    assert loop not in _loops()


def _loops() -> str:
    return subprocess.run(
        ["losetup", "--noheadings", "--output", "NAME,BACK-FILE"], capture_output=True, text=True
    ).stdout
