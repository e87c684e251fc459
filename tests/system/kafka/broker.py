"""A real Kafka of one node on loopback: plain, TLS, mutual TLS and SCRAM over TLS, to be killed and started again."""

from __future__ import annotations

import base64
import os
import signal
import subprocess
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType

import pytest

from tests.deadlines import idle_seconds
from tests.ports import hold_port
from tests.processes import freeze_process, thaw_process
from tests.system.kafka.jars import classpath, missing

LISTENERS = ("PLAIN", "CONTROLLER", "TLS", "MTLS", "SCRAM")
USER, PASSWORD = "predrain", "the right one"
PROTOCOLS = "PLAIN:PLAINTEXT,CONTROLLER:PLAINTEXT,TLS:SSL,MTLS:SSL,SCRAM:SASL_SSL"
READY_SECONDS = 90.0
# C1 only: half the CPU of a start. pdeathsig: a killed test run leaves no broker behind.
JVM = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xms256m", "-Xmx384m", "-Djava.awt.headless=true")
PROPERTIES = """
process.roles=broker,controller
node.id=1
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAIN
listener.name.mtls.ssl.client.auth=required
sasl.enabled.mechanisms=SCRAM-SHA-512
listener.name.scram.scram-sha-512.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;
ssl.keystore.type=PEM
ssl.truststore.type=PEM
auto.create.topics.enable=true
offsets.topic.replication.factor=1
offsets.topic.num.partitions=5
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
broker.session.timeout.ms=4000
broker.heartbeat.interval.ms=500
log.cleaner.dedupe.buffer.size=8388608
num.network.threads=2
num.io.threads=4
"""
AUTHORIZED = """
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:ANONYMOUS
allow.everyone.if.no.acl.found=false
"""
"""A client without a name, over PLAIN, may do everything. All other clients may do what an ACL lets them."""
LOGGING = """
rootLogger.level=INFO
rootLogger.appenderRef.f.ref=f
appender.f.type=File
appender.f.name=f
appender.f.fileName={log}
appender.f.layout.type=PatternLayout
appender.f.layout.pattern=%d %p %c{{1}} %m%n
"""


class Broker:
    """Lies in `folder`. Start it from a thread that lives as long as it shall: it dies with that thread.

    more: properties beside PROPERTIES. users: who else may enter by SCRAM, with PASSWORD. proxied: further listeners
    without TLS, by name; each tells its clients to come to this port of loopback, where something forwards to it.
    """

    def __init__(
        self,
        folder: Path,
        more: str = "",
        users: Iterable[str] = (),
        proxied: Mapping[str, int] = MappingProxyType({}),
    ) -> None:
        self._folder, self._log, self._more, self._proxied = folder, folder / "server.log", more, proxied
        self._process: subprocess.Popen[bytes] | None = None
        names = (*LISTENERS, *proxied)
        self._ports = {name: hold_port() for name in names}
        self._classpath = classpath()
        _certificates(folder)
        self._configure()
        name = base64.urlsafe_b64encode(os.urandom(16)).decode().rstrip("=").replace("-", "a")
        known = (f"SCRAM-SHA-512=[name={user},password={PASSWORD}]" for user in (USER, *users))
        subprocess.run(
            [*self._java("kafka.tools.StorageTool"), "format", "-t", name, "-c", folder / "server.properties",
             *(word for user in known for word in ("--add-scram", user))],
            check=True, timeout=READY_SECONDS, capture_output=True,
        )  # fmt: skip

    def address(self, listener: str = "PLAIN") -> str:
        """`127.0.0.1:PORT` of a listener."""
        return f"127.0.0.1:{self.port(listener)}"

    def port(self, listener: str) -> int:
        """Return the port of a listener."""
        return self._ports[listener]

    @property
    def ca(self) -> Path:
        """PEM of who signed the broker's certificate."""
        return self._folder / "ca.crt"

    @property
    def certificate(self) -> Path:
        """PEM of a client that the broker trusts."""
        return self._folder / "client.crt"

    @property
    def key(self) -> Path:
        """PEM of that client's key."""
        return self._folder / "client.key"

    @property
    def stranger(self) -> Path:
        """PEM of an authority that signed nothing here."""
        return self._folder / "stranger.crt"

    def start(self) -> Broker:
        """Returns once it serves. Raises RuntimeError with its last words."""
        self._log.unlink(missing_ok=True)
        with (self._folder / "said").open("wb") as said:
            command = [*self._java("kafka.Kafka"), self._folder / "server.properties"]
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=said, stderr=subprocess.STDOUT
            )
        end = idle_seconds() + READY_SECONDS
        while idle_seconds() < end and self._process.poll() is None:
            if self._log.exists() and "Kafka Server started" in self._log.read_text(errors="replace"):
                return self
            time.sleep(0.1)
        self.kill()
        raise RuntimeError(f"the broker did not start: {(self._folder / 'said').read_text()[-2000:]}")

    @property
    def running(self) -> bool:
        """Return True if the broker was started and has not ended."""
        return self._process is not None and self._process.poll() is None

    def stop(self) -> None:
        """Ends it in order."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """Ends it as a power cut of its process would: SIGKILL."""
        self._end(signal.SIGKILL)

    def freeze(self, frozen: bool) -> None:
        """Stands still with its sockets open, or goes on."""
        if self._process is not None:
            (freeze_process if frozen else thaw_process)(self._process.pid)

    def move(self, port: int) -> None:
        """From its next start on it is at another port for PLAIN."""
        self._ports["PLAIN"] = port
        self._configure()

    def _end(self, how: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(how)
            try:
                self._process.wait(20)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._process = None

    def _java(self, main: str) -> list[str | Path]:
        logging = f"-Dlog4j2.configurationFile={self._folder / 'log4j2.properties'}"
        return ["setpriv", "--pdeathsig", "KILL", "java", *JVM, logging, "-cp", self._classpath, main]

    def _configure(self) -> None:
        listeners = ",".join(f"{name}://127.0.0.1:{port}" for name, port in self._ports.items())
        advertised = ",".join(
            f"{name}://127.0.0.1:{self._proxied.get(name, port)}"
            for name, port in self._ports.items()
            if name != "CONTROLLER"
        )
        protocols = ",".join((PROTOCOLS, *(f"{name}:PLAINTEXT" for name in self._proxied)))
        lines = (
            PROPERTIES,
            self._more,
            f"controller.quorum.voters=1@127.0.0.1:{self._ports['CONTROLLER']}",
            f"listener.security.protocol.map={protocols}",
            f"listeners={listeners}",
            f"advertised.listeners={advertised}",
            f"log.dirs={self._folder / 'data'}",
            f"ssl.keystore.location={self._folder / 'server.pem'}",
            f"ssl.truststore.location={self._folder / 'ca.crt'}",
        )
        (self._folder / "server.properties").write_text("\n".join(lines))
        (self._folder / "log4j2.properties").write_text(LOGGING.format(log=self._log))


@contextmanager
def running_broker(folder: Path) -> Iterator[Broker]:
    """A broker for as long as the block runs. Where none can run the test is skipped; under CI it fails."""
    if why := missing():
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(why)
    broker = Broker(folder)
    try:
        yield broker.start()
    finally:
        broker.stop()


def _certificates(folder: Path) -> None:
    """An authority, a server's and a client's certificate from it, and an authority that signed neither."""
    (folder / "ext").write_text("subjectAltName=IP:127.0.0.1\nextendedKeyUsage=serverAuth,clientAuth\n")
    for authority in ("ca", "stranger"):
        _openssl(
            folder, "req", "-x509", "-days", "30", "-subj", f"/CN=test-{authority}",
            "-addext", "basicConstraints=critical,CA:TRUE", "-out", f"{authority}.crt", key=authority,
        )  # fmt: skip
    for who in ("server", "client"):
        _openssl(folder, "req", "-subj", f"/CN={who}", "-out", f"{who}.csr", key=who)
        _openssl(
            folder, "x509", "-req", "-in", f"{who}.csr", "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial",
            "-days", "30", "-extfile", "ext", "-out", f"{who}.crt",
        )  # fmt: skip
    parts = ("server.key", "server.crt", "ca.crt")
    (folder / "server.pem").write_text("".join((folder / part).read_text() for part in parts))


def _openssl(folder: Path, *arguments: str, key: str | None = None) -> None:
    new = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", f"{key}.key")
    command = ["openssl", *arguments, *(new if key else ())]
    subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=60)
