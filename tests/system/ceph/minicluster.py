"""A throw-away, real Ceph cluster on 127.0.0.1: a mon, a mgr, hosts x per_host OSDs, cephx on.

    with MiniCluster("reef", hosts=4, per_host=2) as cluster:
        cluster.pool("rep", size=3)
        written = cluster.write("rep", objects=200)
        cluster.wait_clean()
        cluster.json("osd df")

`store`: "file" (BlueStore on a sparse file), "loop" (on a loop device: the OSD has a real device with an id and
SMART), "memstore". `modules`: folders of mgr modules from outside the release. It ends with its context, or with the
process that started it. The same from a shell: `python -m tests.system.ceph --help`.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import signal
import subprocess
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from predrain.actions.cluster.rados_connection import Connection
from predrain.actions.controller.ceph_caps import build_cephx_caps
from tests.deadlines import idle_seconds
from tests.processes import freeze_process, thaw_process
from tests.system.ceph import roots
from tests.system.ceph.agent import Agent
from tests.system.ceph.conf import CONF, keyring, new_key
from tests.system.ceph.daemons import Daemons, keep_watch, sweep
from tests.system.ceph.devices import Devices, write_programs
from tests.system.ceph.mgr_modules import link_modules
from tests.system.ceph.ports import reserve_port


class CommandError(RuntimeError):
    """A command that a daemon refused."""

    def __init__(self, command: object, rc: int, err: str) -> None:
        super().__init__(f"{command}: {os.strerror(abs(rc))} ({rc}): {err}")
        self.rc, self.err = rc, err


class Where(NamedTuple):
    """How a client finds the cluster, as its interpreter sees the files."""

    conf: str
    keyring: str
    name: str


class MiniCluster:
    """One cluster. Safe from several threads."""

    def __init__(
        self, release: str = "pacific", folder: str | Path = "", hosts: int = 4, per_host: int = 1,
        store: str = "file", scheduler: str = "wpq", size_gib: float = 4, conf: str = "",
        modules: tuple[str | Path, ...] = (), *, watched: bool = True,
    ) -> None:  # fmt: skip
        self.release, self.hosts, self.per_host = release, hosts, per_host
        self.store, self.scheduler, self.size_gib, self.conf = store, scheduler, size_gib, conf
        self.modules = tuple(Path(module).absolute() for module in modules)
        self.folder = Path(folder or tempfile.mkdtemp(prefix="predrain-ceph-")).absolute()
        self.inside = roots.inside(release, self.folder)
        self._watched, self._watch = watched, None
        self._ports: list[TextIO] = []
        self._agent: Agent | None = None
        self._agent_turn = threading.Lock()
        self.daemons, self.devices = Daemons(self.folder), Devices(self.folder)

    @classmethod
    def attach(cls, folder: str | Path) -> MiniCluster:
        """The cluster that another process started in `folder`."""
        return cls(**json.loads(Path(folder, "cluster.json").read_text()), folder=folder, watched=False)

    def __enter__(self) -> MiniCluster:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    # -- life --------------------------------------------------------------------------------------------------------
    def start(self) -> MiniCluster:
        """Make it and bring it up: about 5 s for 4 OSDs, 15 s for 12."""
        roots.make(self.release)
        if self.folder.exists() and any(self.folder.iterdir()):
            raise RuntimeError(f"{self.folder} is not empty: take down what is in it first")
        self.folder.mkdir(parents=True, exist_ok=True)
        if self._watched:
            self._watch = keep_watch(self.folder)
        try:
            self._bootstrap()
        except BaseException as error:
            words = "".join(each.read_text(errors="replace")[-600:] for each in self.folder.glob("log/*.out"))
            self.stop()
            error.add_note(words)
            raise
        return self

    def _bootstrap(self) -> None:
        for name in ("run", "log", "osd", "mgr", "crash", "udev/data", "bin", "smart", "modules"):
            (self.folder / name).mkdir(parents=True)
        kept = ("release", "hosts", "per_host", "store", "scheduler", "size_gib", "conf")
        settings = {k: getattr(self, k) for k in kept}
        settings["modules"] = [str(module) for module in self.modules]
        (self.folder / "cluster.json").write_text(json.dumps(settings))
        link_modules(self.release, self.folder / "modules", self.modules)
        write_programs(self.folder, self.inside)
        port = self.reserve_port()
        fsid, osds = str(uuid.uuid4()), range(self.hosts * self.per_host)
        text = CONF.format(
            fsid=fsid, port=port, v1=port + 1, inside=self.inside, scheduler=self.scheduler, extra=self.conf,
            store="memstore" if self.store == "memstore" else "bluestore", block=int(self.size_gib * 2**30),
        )  # fmt: skip
        text += "".join(
            f"[osd.{n}]\ncrush_location = root=default host={self.host_of(f'osd.{n}')}\n" for n in osds
        )
        (self.folder / "ceph.conf").write_text(text)
        keys = {entity: new_key(self.release) for entity in ("mon.", "client.admin", "mgr.x")}
        for entity, file in {"mon.": "mon.a", "client.admin": "client.admin", "mgr.x": "mgr.x"}.items():
            self._path("keyring." + file).write_text(keyring(entity, keys[entity]))
        all_of_it = dict.fromkeys(("mon", "mgr", "osd", "mds"), "allow *")
        mgrs = {"mon": "allow profile mgr", "osd": "allow *", "mds": "allow *"}
        granted = {"mon.": {"mon": "allow *"}, "client.admin": all_of_it, "mgr.x": mgrs}
        self._path("first.keyring").write_text("".join(keyring(e, keys[e], granted[e]) for e in keys))
        monmap, address = str(self.inside / "monmap"), f"[v2:127.0.0.1:{port},v1:127.0.0.1:{port + 1}]"
        self.run("monmaptool", "--create", "--addv", "a", address, "--fsid", fsid, monmap)
        first = str(self.inside / "first.keyring")
        self.run("ceph-mon", "--mkfs", "-i", "a", *self._conf, "--monmap", monmap, "--keyring", first)
        self.spawn("mon.a")
        self.spawn("mgr.x")
        makers: list[subprocess.Popen[bytes]] = []
        try:
            makers.extend(self._make_osd(n) for n in osds)
            for maker in makers:
                _, said = maker.communicate()
                if maker.returncode:
                    raise RuntimeError(f"ceph-osd --mkfs ended with {maker.returncode}: {said[-2000:]!r}")
        finally:
            for maker in makers:
                with maker:
                    maker.kill()
        for n in osds:
            self.spawn(f"osd.{n}")
        self._all_up(len(osds))
        self.wait_for_mgr()
        for module in self.modules:
            self.wait(
                lambda m=module: self.try_command("mgr module enable", module=m.name)[0] == 0,
                60,
                f"{module.name}",
            )

    def wait_for_mgr(self) -> None:
        """Wait until the mgr answers. Start it again if it crashed (seen with Pacific), as systemd does."""

        def is_available() -> bool:
            if not self.alive("mgr.x"):
                self.spawn("mgr.x")
            return bool(self.json("mgr stat")["available"])

        self.wait(is_available, 120, "the mgr available")

    def _all_up(self, osds: int) -> None:
        """Wait until all OSDs are up. Restart an OSD that the monitor never lets in (seldom, seen with Pacific)."""
        with contextlib.suppress(TimeoutError):
            self.wait(lambda: len(self.osds()) == osds, 60, "all OSDs up")
        for osd in set(range(osds)) - set(self.osds()):
            self.restart(f"osd.{osd}", signal.SIGKILL)
        self.wait(lambda: len(self.osds()) == osds, 60, "all OSDs up")

    def _make_osd(self, osd: int) -> subprocess.Popen[bytes]:
        """Register the OSD and start the making of its store."""
        ident, key = str(uuid.uuid4()), new_key(self.release)
        self._path("osd", str(osd)).mkdir()
        self.command("osd new", uuid=ident, id=osd, inbuf=json.dumps({"cephx_secret": key}).encode())
        self._path(f"keyring.osd.{osd}").write_text(keyring(f"osd.{osd}", key))
        extra: list[str] = []
        if self.store == "loop":
            extra = ["--bluestore-block-path", self.devices.attach(osd, int(self.size_gib * 2**30))]
            self.fake_device(osd)
        argv = self.enter(["ceph-osd", "--mkfs", "-i", str(osd), *self._conf, "--osd-uuid", ident, *extra])
        return subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=roots.CLEAN)

    def leave(self) -> None:
        """Let our own client go; the cluster runs on."""
        if self._agent:
            self._agent.close()
            self._agent = None

    def stop(self) -> None:
        """End every process, free the loop devices, remove the folder."""
        self.leave()
        sweep(self.folder)
        if self._watch:
            self._watch.communicate()
        for lock in self._ports:
            lock.close()

    # -- processes ---------------------------------------------------------------------------------------------------
    @property
    def _conf(self) -> tuple[str, str]:
        return "-c", str(self.inside / "ceph.conf")

    def _path(self, *parts: str) -> Path:
        return self.folder.joinpath(*parts)

    def enter(self, argv: list[str], host: str = "minihost") -> list[str]:
        """A command wrapped so that it runs with the release's programs; the cluster's folder is at `inside`."""
        binds = {module: self._path("modules", module.name) for module in self.modules}
        return roots.enter(self.release, self.folder, argv, host, binds)

    def run(self, *argv: str, check: bool = True, stdin: bytes | None = None) -> bytes:
        """A program of the release, for instance run("osdmaptool", "--print", str(cluster.inside / "osdmap"))."""
        done = subprocess.run(
            self.enter(list(argv)), input=stdin, capture_output=True, env=roots.CLEAN, check=False
        )
        if check and done.returncode:
            raise RuntimeError(f"{argv}: {done.returncode}: {done.stderr.decode()[-2000:]}")
        return done.stdout

    def host_of(self, daemon: str) -> str:
        """The host name that a daemon sees."""
        return f"host{int(daemon[4:]) // self.per_host}" if daemon.startswith("osd.") else "minihost"

    def spawn(self, daemon: str) -> None:
        """Start a daemon."""
        kind, ident = daemon.split(".", 1)
        argv = [
            "env",
            f"PATH={self.inside}/bin:{roots.CLEAN['PATH']}",
            f"ceph-{kind}",
            "-f",
            "-i",
            ident,
            *self._conf,
        ]
        self.daemons.spawn(daemon, self.enter(argv, self.host_of(daemon)))

    def alive(self, daemon: str) -> bool:
        """Return True if the daemon runs."""
        return bool(self.daemons.pid(daemon))

    def kill(self, daemon: str, how: signal.Signals = signal.SIGKILL) -> None:
        """End it, and wait until it has ended."""
        self.daemons.kill(daemon, how)

    def freeze(self, daemon: str) -> None:
        """The daemon keeps its sockets open and answers nothing."""
        if pid := self.daemons.pid(daemon):
            freeze_process(pid)

    def thaw(self, daemon: str) -> None:
        """A frozen daemon goes on."""
        if pid := self.daemons.pid(daemon):
            thaw_process(pid)

    def restart(self, daemon: str, how: signal.Signals = signal.SIGTERM) -> None:
        """End it and start it again."""
        self.kill(daemon, how)
        self.spawn(daemon)

    # -- clients -----------------------------------------------------------------------------------------------------
    def interpreter(self) -> tuple[str, ...]:
        """The start of a command line that runs a Python with this release's rados."""
        return (roots.PYTHON,) if roots.root_of(self.release) is None else tuple(self.enter([roots.PYTHON]))

    def where(self, name: str = "client.admin") -> Where:
        """Return the ceph.conf, keyring and name with which that interpreter reaches the cluster as this client."""
        return Where(str(self.inside / "ceph.conf"), str(self.inside / f"keyring.{name}"), name)

    def connection(self, name: str = "client.admin") -> Connection:
        """The same for predrain's channel: `Rados(cluster.connection())`."""
        conf, keyring, _ = self.where(name)
        return Connection(conf=conf, name=name, keyring=keyring, interpreter=self.interpreter())

    def least(self) -> Connection:
        """As predrain's own user, with exactly the caps that `predrain ceph auth` prints."""
        self.client("client.predrain", build_cephx_caps().by_service())
        return self.connection("client.predrain")

    def client(self, name: str, allowed: Mapping[str, str]) -> Path:
        """A user with exactly these caps (service: caps); its keyring, as seen from here. The key is the release's."""
        listed = [part for service, granted in allowed.items() if granted for part in (service, granted)]
        if self.try_command("auth get", entity=name)[0] == 0:
            self.command("auth caps", entity=name, caps=listed)
        key = self.command("auth get-or-create-key", entity=name, caps=listed).decode().strip()
        self._path(f"keyring.{name}").write_text(keyring(name, key))
        return self._path(f"keyring.{name}")

    def agent(self, name: str = "client.admin", seconds: int = 60) -> Agent:
        """A client process of one's own, for instance as a least-privilege user."""
        return Agent(tuple(self.enter([roots.PYTHON])), self.inside / "ceph.conf", name, seconds)

    def _admin(self) -> Agent:
        with self._agent_turn:
            if self._agent is None or not self._agent.alive():
                self._agent = self.agent()
            return self._agent

    # -- commands ----------------------------------------------------------------------------------------------------
    def try_command(
        self, prefix: str, to: str = "mon", inbuf: bytes = b"", timeout: int = 60, **args: Any
    ) -> tuple[int, bytes, str]:
        """One command as client.admin: (rc, output, error text)."""
        command = {"prefix": prefix, **args}
        return self._admin().ask(
            op="command", to=to, cmd=command, inbuf=base64.b64encode(inbuf).decode(), timeout=timeout
        )

    def command(self, prefix: str, **args: Any) -> bytes:
        """Its output. Raises CommandError."""
        rc, out, err = self.try_command(prefix, **args)
        if rc:
            raise CommandError((prefix, args), rc, err)
        return out

    def json(self, prefix: str, **args: Any) -> Any:
        """Its output, parsed."""
        return json.loads(self.command(prefix, format="json", **args))

    def wait(self, condition: Callable[[], Any], seconds: float, what: str) -> Any:
        """Ask until it holds; what it said. Raises TimeoutError."""
        until = idle_seconds() + seconds
        while True:
            with contextlib.suppress(CommandError, RuntimeError, KeyError, json.JSONDecodeError):
                if found := condition():
                    return found
            if idle_seconds() > until:
                raise TimeoutError(f"{what}: not in {seconds:.0f} s")
            time.sleep(0.2)

    def osds(self, *, up_only: bool = True) -> list[int]:
        """OSD numbers."""
        return [osd["osd"] for osd in self.json("osd dump")["osds"] if osd["up"] or not up_only]

    def flush(self, seconds: float = 30) -> None:
        """After this, mgr and mon know of the PGs all that the OSDs knew when it was called."""
        wanted = {osd: int(self.command("flush_pg_stats", to=f"osd.{osd}")) for osd in self.osds()}
        for osd, number in wanted.items():
            seen = lambda osd=osd: int(self.command("osd last-stat-seq", id=osd))  # noqa: E731
            self.wait(lambda seen=seen, number=number: seen() >= number, seconds, f"statistics of osd.{osd}")

    def pgs(self) -> list[dict[str, Any]]:
        """`pg dump pgs`, whichever shape the release gives it."""
        reply = self.json("pg dump", dumpcontents=["pgs"])
        return reply["pg_stats"] if isinstance(reply, dict) else reply

    def wait_clean(self, seconds: float = 300, flush: bool = True) -> None:
        """Until every PG is active+clean (remapped ones included)."""
        if flush:
            self.flush()
        clean = lambda: (found := self.pgs()) and all(pg["state"].startswith("active+clean") for pg in found)  # noqa: E731
        self.wait(clean, seconds, "every PG active+clean")

    # -- pools, objects, devices ---------------------------------------------------------------------------------------
    def pool(
        self, name: str, pg_num: int = 32, size: int = 3, k: int = 0, m: int = 0, domain: str = "host"
    ) -> None:
        """A pool with its PGs clean: replicated `size`, or erasure coded k + m."""
        made: dict[str, Any] = {"pool": name, "pg_num": pg_num, "pgp_num": pg_num}
        if k:
            profile = [f"k={k}", f"m={m}", f"crush-failure-domain={domain}"]
            self.command("osd erasure-code-profile set", name=f"p_{name}", profile=profile)
            self.command("osd pool create", **made, pool_type="erasure", erasure_code_profile=f"p_{name}")
        else:
            self.command("osd pool create", **made, pool_type="replicated")
            self.command("osd pool set", pool=name, var="size", val=str(size))
        self.command("osd pool application enable", pool=name, app="test", yes_i_really_mean_it=True)
        self.wait_clean()

    def reserve_port(self) -> int:
        """A free port, this one and the next, that no other cluster takes before this one is gone.

        A mon that is killed and started again binds to its port of the monmap. If another cluster's mon has that port,
        the OSDs try to sign in there, are refused, and try again without a pause: they take both cores.
        """
        port, lock = reserve_port()
        self._ports.append(lock)
        return port

    def write(self, pool: str, objects: int = 100, size: int = 65536, start: int = 0) -> dict[str, str]:
        """Objects that all differ; checksum by name."""
        return self._objects(op="write", pool=pool, objects=objects, size=size, start=start)

    def read_back(self, pool: str) -> dict[str, str]:
        """Every object of the pool read whole; checksum by name."""
        return self._objects(op="read back", pool=pool)

    def find_wrong_objects(
        self, pool: str, written: dict[str, str]
    ) -> dict[str, tuple[str | None, str | None]]:
        """The checksums, as written and as read back, of each object that differs, is missing or was never written."""
        read = self.read_back(pool)
        return {
            name: (written.get(name), read.get(name))
            for name in sorted(written.keys() | read.keys())
            if written.get(name) != read.get(name)
        }

    def _objects(self, **request: Any) -> dict[str, str]:
        rc, out, err = self._admin().ask(**request)
        if rc:
            raise CommandError(request, rc, err)
        return json.loads(out)

    def fake_device(
        self, osd: int, model: str = "MINI HDD4T", serial: str = "", smart: dict[str, Any] | None = None
    ) -> None:
        """Set the answers that udev and smartctl give about the OSD's loop device from now on."""
        self.devices.describe(osd, model, serial, smart)
