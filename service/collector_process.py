"""`predrain collect`: one host's disks, OSDs, spool and sink put together. Neither pydantic nor the web is imported."""

from __future__ import annotations

import logging
import os
import signal
import socket
import ssl
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from random import Random

import structlog

from predrain.collector.agent import Agent, Intervals
from predrain.collector.delivery import Courier, LogSink, Sink, Spool, SpoolLimits, WebSink, look
from predrain.collector.delivery.selfmetrics import CollectorTally, exposition, write
from predrain.collector.disks import DiskWatch, DiskWatchLimits, Scan, Smartctl
from predrain.collector.latency import LatencyWatch, admin_sockets
from predrain.collector.osd_devices import Patience, SeatMap, VolumeTags, named_disks, seat_map
from predrain.collector.osd_devices.kernel import KernelErrors
from predrain.data.clock import SystemClock
from predrain.data.ids import DeviceId, HostName, OsdId
from predrain.data.log.port import Log
from predrain.data.reading import Reading, Role, Seat, Unreadable
from predrain.data.refusal import Refusal
from predrain.service import tokens
from predrain.service.periodic_threads import Loops
from predrain.service.tables.collector import BadCollectorSettings, CollectorKafkaTable, CollectorSettings
from predrain.service.tables.secret import secret

METRICS_SECONDS = 15.0
ENDING_SECONDS = 1.0
"""For what is under way when the end has come; what it does not get done is done after the next start."""

_SUDO = "/usr/bin/sudo"


@dataclass(frozen=True, slots=True)
class Once:
    """One look at every disk. `troubles` are sentences."""

    host: HostName
    readings: tuple[Reading, ...]
    places: Mapping[str, DeviceId]
    """Where each disk was read: `/dev/sda`, `/dev/bus/0 megaraid,8`."""
    asleep: tuple[str, ...]
    """Places whose disk sleeps and was not woken."""
    troubles: tuple[str, ...]
    tally: CollectorTally


def once(settings: CollectorSettings) -> Once:
    """Read every disk now. Nothing is spooled, sent or remembered."""
    began = time.monotonic()
    host = Host(settings, Random(), tell=lambda _: None, spread_seconds=0.0)
    with closing(host):
        scan = host.rescan()
        readings = tuple(host.round())
        troubles = tuple(dict.fromkeys((*scan.trouble, *scan.refused, *host.nameless, *host.map.trouble)))
    unreadable = sum(isinstance(reading.seen, Unreadable) for reading in readings)
    spool = look(_spool_path(settings))
    tally = CollectorTally(
        len(readings), len(readings), unreadable, len(host.nameless), 0, time.monotonic() - began, None, spool
    )
    return Once(
        host.name,
        readings,
        host.disks.places,
        tuple(spot.place for spot in host.disks.asleep),
        troubles,
        tally,
    )


def collect(settings: CollectorSettings, tell: Callable[[str], None]) -> None:
    """Read, sample and deliver until SIGTERM or SIGINT. Raises Refusal when it cannot begin."""
    random, over = Random(), threading.Event()
    # The client tells of a broker that is away line after line; the courier tells of it once, with the cure.
    logging.getLogger("kafka").setLevel(logging.CRITICAL)
    sink, destination = _sink(settings)
    table = settings.collector
    round_seconds = table.round_minutes * 60.0
    # Hosts that start together need not wait for each other: their disks are spread over half a minute of an hour.
    spread = min(30.0, round_seconds / 120.0)
    host = Host(settings, random, tell=_warn, spread_seconds=spread, names=settings.state / "disks.json")
    clock = SystemClock()
    spool = Spool(
        _spool_path(settings),
        host.name,
        random,
        SpoolLimits(int(table.spool_megabytes * 1e6), table.spool_days),
    )
    agent = Agent(
        host,
        host.latencies,
        spool,
        Courier(spool, sink, clock, random),
        clock=clock,
        monotonic=time.monotonic,
        random=random,
        intervals=Intervals(round=round_seconds, sample=table.sample_seconds),
        stopping=over.is_set,
    )
    loops = Loops(lambda: None)

    def end(*_: object) -> None:
        over.set()
        loops.end()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, end)
    tell(f"collecting on {host.name}, delivering to {destination}")
    loops.begin("disks", lambda: loops.wait(agent.look()))
    loops.begin("latencies", lambda: loops.wait(_measured(host, agent)))
    loops.begin("delivery", lambda: loops.wait(agent.deliver()))
    while True:
        _publish(table.metrics_file, agent.tally(), host.name)
        if over.wait(METRICS_SECONDS):
            break
    loops.join(ENDING_SECONDS)
    _publish(table.metrics_file, agent.tally(), host.name)
    # Neither spool nor sink is closed: whoever is still within them ends with the process, as at a kill -9.


def enrol(settings: CollectorSettings, token: str) -> Path:
    """Exchange a one-time token for this host's own; returns the file that has it from now on.

    Raises AlreadyEnrolled, Away, NotEnrolled, BadCollectorSettings, BadAddress.
    """
    file = _token_file(settings)
    sink = _web(settings, lambda: "")
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        # Made before the exchange: a one-time token is not to be spent on what then cannot be kept.
        handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        raise AlreadyEnrolled(f"{file} is there already; remove it to enrol this host anew") from None
    try:
        with os.fdopen(handle, "w") as kept:
            kept.write(sink.enrol(token, settings.collector.host or socket.gethostname()) + "\n")
            kept.flush()
            os.fsync(kept.fileno())
    except BaseException:
        file.unlink()
        raise
    return file


class AlreadyEnrolled(Refusal):
    """This host has a token."""


class Host:
    """The disks and OSDs of this machine."""

    def __init__(
        self,
        settings: CollectorSettings,
        random: Random,
        *,
        tell: Callable[[str], None],
        spread_seconds: float,
        names: Path | None = None,
    ) -> None:
        table, clock = settings.collector, SystemClock()
        self.name = HostName(table.host or socket.gethostname())
        self.map = SeatMap()
        self._patience = Patience()
        self.kernel = KernelErrors()
        self._tell = tell
        self._told: set[str] = set()
        sudo = table.sudo or (None if os.geteuid() == 0 else _SUDO)
        self._tags = VolumeTags(sudo)
        self.disks = DiskWatch(
            Smartctl(table.smartctl, sudo),
            clock,
            self.name,
            seats=self._seats,
            kernel_errors=self.kernel.since_last,
            random=random,
            limits=DiskWatchLimits(table.parallel, table.smartctl_seconds, spread_seconds),
            state=names,
        )
        self.latencies = LatencyWatch(admin_sockets, self._data_disks, clock, self.name)

    @property
    def nameless(self) -> tuple[str, ...]:
        """Sentences: disks that were seen and have no identity."""
        return self.disks.nameless

    def round(self) -> Iterator[Reading]:
        """One look at every disk; what could not be told is logged once."""
        yield from self.disks.round()
        self._warn(self.nameless)

    def reread_disks(self, devices: Collection[DeviceId]) -> Iterator[Reading]:
        """Read these disks once more."""
        yield from self.disks.reread_disks(devices)

    def rescan(self) -> Scan:
        """Look for disks and OSDs that came and went."""
        self.map = self._mapped()
        scan = self.disks.rescan()
        self._warn(
            (
                *self.map.trouble,
                *self._tags.trouble,
                *self.kernel.trouble,
                *scan.gone,
                *scan.refused,
                *scan.trouble,
            )
        )
        return scan

    def sampled(self) -> None:
        """What the last sample could not be told is logged once."""
        self._warn(self.latencies.trouble.values())

    def close(self) -> None:
        """Let the kernel's log go."""
        self.kernel.close()

    def _seats(self, device: str) -> tuple[Seat, ...]:
        return self.map.of(device)

    def _mapped(self) -> SeatMap:
        """The map of this host. LVM is asked where something speaks for OSDs that no folder tells; an OSD that is still
        not known is asked itself, if it has a socket here."""
        found = seat_map(patience=self._patience)
        told = self._tags.told(found.doubts)
        if told is not None:
            found = seat_map(volumes=told, patience=self._patience)
        try:
            sockets = {osd: path for osd, path in admin_sockets().items() if osd not in found.osds}
        except Refusal:
            return found  # the latency watch tells of it
        if not sockets:
            return found
        return seat_map(volumes=told, named=named_disks(sockets), patience=self._patience)

    def _data_disks(self, osd: OsdId) -> tuple[str, ...]:
        return tuple(disk for role, disk in self.map.disks(osd) if role is Role.DATA)

    def _warn(self, sentences: Iterable[str]) -> None:
        for sentence in sentences:
            if sentence not in self._told:
                self._told.add(sentence)
                self._tell(sentence)


def _warn(sentence: str) -> None:
    structlog.get_logger().warning("not everything can be read", why=sentence)


def _measured(host: Host, agent: Agent) -> float:
    host.kernel.look()
    pause = agent.measure()
    host.sampled()
    return pause


def _publish(file: Path | None, tally: CollectorTally, host: HostName) -> None:
    if file is None:
        return
    try:
        write(file, exposition(tally, host))
    except OSError as error:
        structlog.get_logger().warning("metrics not written", file=str(file), why=error.strerror)


def _spool_path(settings: CollectorSettings) -> Path:
    return settings.collector.spool or settings.state / "collector.sqlite"


def _sink(settings: CollectorSettings) -> tuple[Sink, str]:
    """Where readings go, and its name for people. Raises BadCollectorSettings, BadAddress."""
    table, kafka = settings.collector, settings.kafka
    if kafka.bootstrap:
        return LogSink(lambda: _kafka(kafka)), f"Kafka at {', '.join(kafka.bootstrap)}"
    token_file = _token_file(settings)
    return _web(settings, lambda: tokens.read(token_file)), table.url


def _token_file(settings: CollectorSettings) -> Path:
    return settings.collector.token_file or settings.state / "token"


def _web(settings: CollectorSettings, token: Callable[[], str]) -> WebSink:
    """The service of the settings. Raises BadCollectorSettings, BadAddress."""
    table, tls = settings.collector, None
    if table.ca is not None:
        try:
            tls = ssl.create_default_context(cafile=table.ca)
        except OSError as error:
            raise BadCollectorSettings(
                f"`ca` of [collector], {table.ca}, is no certificate that can be read ({error}): name a PEM file"
            ) from error
    return WebSink(table.url, token, tls)


def _kafka(table: CollectorKafkaTable) -> Log:
    """Raises Refusal; the client is imported only where it is used."""
    from predrain.data.log.kafka import Broker, KafkaLog

    password = secret(table.password_file, "password_file of [kafka]") if table.password_file else ""
    return KafkaLog(
        Broker(
            table.bootstrap,
            security=table.security,
            ca=table.ca,
            certificate=table.certificate,
            key=table.key,
            user=table.user,
            password=password,
            prefix=table.prefix,
            timeout_seconds=table.timeout_seconds,
        )
    )
