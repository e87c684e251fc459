"""`predrain collect`: combine the disks, OSDs, spool and sink of one host. Imports neither pydantic nor web
packages.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import ssl
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from random import Random

import structlog

from predrain.collector.agent import Agent, Intervals
from predrain.collector.delivery import (
    BadAddress,
    LogSink,
    Shipper,
    Sink,
    Spool,
    SpoolLimits,
    WebSink,
    read_spool_status,
)
from predrain.collector.delivery.collector_metrics import CollectorTally, format_metrics, write_metrics_file
from predrain.collector.disk_requests.request_memory import MemoryUnusable, RequestMemory
from predrain.collector.disk_requests.request_runner import RequestRunner
from predrain.collector.disk_requests.slot_light import SlotLight
from predrain.collector.disk_requests.work_loop import WorkLoop
from predrain.collector.disks import DiskScan, DiskWatch, DiskWatchLimits, Smartctl
from predrain.collector.latency import LatencyWatch, admin_sockets
from predrain.collector.osd_devices import OsdDeviceMap, TimeoutRunner, VolumeTags, named_disks, seat_map
from predrain.collector.osd_devices.kernel_errors import KernelErrors
from predrain.data.clock import Clock, SystemClock
from predrain.data.ids import DeviceId, HostName, OsdKey
from predrain.data.log.log_port import Log
from predrain.data.reading import OsdDevice, Reading, Role, Unreadable
from predrain.data.refusal import Refusal
from predrain.service.access import tokens
from predrain.service.config.collector_table import (
    BadCollectorSettings,
    CollectorKafkaTable,
    CollectorSettings,
)
from predrain.service.config.secret_file import read_secret_file
from predrain.service.runtime.periodic_threads import PeriodicThreads

METRICS_SECONDS = 15.0
ENDING_SECONDS = 1.0
"""Seconds that running steps get at the end; what they leave undone is done after the next start."""

_SUDO = "/usr/bin/sudo"


@dataclass(frozen=True, slots=True)
class ReadOnceResult:
    """The result of one read of every disk. `troubles` are sentences."""

    host: HostName
    readings: tuple[Reading, ...]
    places: Mapping[str, DeviceId]
    """The place of each disk that was read: `/dev/sda`, `/dev/bus/0 megaraid,8`."""
    asleep: tuple[str, ...]
    """Places whose disk sleeps and was not woken."""
    troubles: tuple[str, ...]
    tally: CollectorTally


def read_disks_once(settings: CollectorSettings) -> ReadOnceResult:
    """Read every disk now, without spooling, sending or remembering anything."""
    began = time.monotonic()
    host = CollectorHost(settings, Random(), tell=lambda _: None, spread_seconds=0.0)
    with closing(host):
        scan = host.rescan()
        readings = tuple(host.read_disks())
        troubles = tuple(dict.fromkeys((*scan.trouble, *scan.refused, *host.nameless, *host.map.trouble)))
    unreadable = sum(isinstance(reading.seen, Unreadable) for reading in readings)
    spool = read_spool_status(_spool_path(settings))
    tally = CollectorTally(
        len(readings), len(readings), unreadable, len(host.nameless), 0, time.monotonic() - began, None, spool
    )
    return ReadOnceResult(
        host.name,
        readings,
        host.disks.places,
        tuple(spot.place for spot in host.disks.asleep),
        troubles,
        tally,
    )


def run_collector(settings: CollectorSettings, tell: Callable[[str], None]) -> None:
    """Read, sample and deliver until SIGTERM or SIGINT. Raises Refusal if it cannot begin."""
    random, over = Random(), threading.Event()
    # Kafka's client logs an absent broker line after line; the shipper reports it once, with the cure.
    logging.getLogger("kafka").setLevel(logging.CRITICAL)
    sink, destination = _build_sink(settings)
    table = settings.collector
    round_seconds = table.reading_interval_minutes * 60.0
    # Hosts that start together do not wait for each other: each spreads its disks over half a minute per
    # hour.
    spread = min(30.0, round_seconds / 120.0)
    host = CollectorHost(
        settings, random, tell=_log_unreadable, spread_seconds=spread, names=settings.state / "disks.json"
    )
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
        Shipper(spool, sink, clock, random),
        clock=clock,
        monotonic=time.monotonic,
        random=random,
        intervals=Intervals(round=round_seconds, sample=table.sample_seconds),
        stopping=over.is_set,
    )
    loops = PeriodicThreads(lambda: None)

    def end(*_: object) -> None:
        over.set()
        loops.request_stop()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, end)
    tell(f"collecting on {host.name}, delivering to {destination}")
    loops.start_loop("disks", lambda: loops.wait(agent.poll_disks()))
    loops.start_loop("latencies", lambda: loops.wait(_measure_latencies(host, agent)))
    loops.start_loop("delivery", lambda: loops.wait(agent.deliver()))
    if (work := _build_work_loop(settings, host, clock, random, over)) is not None:
        loops.start_loop("requests", lambda: loops.wait(work.step()))
    while True:
        _write_metrics_file(table.metrics_file, agent.build_tally(), host.name)
        if over.wait(METRICS_SECONDS):
            break
    loops.join(ENDING_SECONDS)
    _write_metrics_file(table.metrics_file, agent.build_tally(), host.name)
    # Spool and sink stay open: a thread that still uses them ends with the process, as at a kill -9.


def enrol_this_host(settings: CollectorSettings, token: str) -> Path:
    """Exchange a one-time token for this host's own token; return the file that holds it from now on.

    Raises AlreadyEnrolled, Away, NotEnrolled, BadCollectorSettings, BadAddress.
    """
    file = _token_file(settings)
    sink = _build_web_sink(settings, lambda: "")
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        # Created before the exchange, since a one-time token must not be spent if the result cannot be
        # stored.
        handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        raise AlreadyEnrolled(f"{file} is there already; remove it to enrol this host again") from None
    try:
        with os.fdopen(handle, "w") as kept:
            enrolled = sink.enrol(token, settings.collector.host or socket.gethostname())
            kept.write(enrolled.token + "\n")
            kept.flush()
            os.fsync(kept.fileno())
    except BaseException:
        file.unlink()
        raise
    if enrolled.request_key:
        _write_request_key(_request_key_file(settings), enrolled.request_key)
    return file


def _write_request_key(file: Path, key: str) -> None:
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    file.unlink(missing_ok=True)  # that of an earlier enrolment
    handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(handle, "w") as kept:
        kept.write(key + "\n")
        kept.flush()
        os.fsync(kept.fileno())


class AlreadyEnrolled(Refusal):
    """This host already has a token."""


class CollectorHost:
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
        self.map = OsdDeviceMap()
        self._patience = TimeoutRunner()
        self.kernel = KernelErrors()
        self._tell = tell
        self._told: set[str] = set()
        self.sudo = table.sudo or (None if os.geteuid() == 0 else _SUDO)
        self.smartctl = Smartctl(table.smartctl, self.sudo)
        self._tags = VolumeTags(self.sudo)
        self.disks = DiskWatch(
            self.smartctl,
            clock,
            self.name,
            find_osds_on=self._find_osds_on,
            kernel_errors=self.kernel.since_last,
            random=random,
            limits=DiskWatchLimits(table.parallel, table.smartctl_timeout_seconds, spread_seconds),
            state=names,
        )
        self.latencies = LatencyWatch(admin_sockets, self._data_disks, clock, self.name)

    @property
    def nameless(self) -> tuple[str, ...]:
        """A sentence for each disk that was seen and has no identity."""
        return self.disks.nameless

    def read_disks(self) -> Iterator[Reading]:
        """Read every disk once. Each disk without an identity is logged once."""
        yield from self.disks.read_disks()
        self._warn(self.nameless)

    def reread_disks(self, devices: Collection[DeviceId]) -> Iterator[Reading]:
        """Read these disks once more."""
        yield from self.disks.reread_disks(devices)

    def rescan(self) -> DiskScan:
        """Scan for disks and OSDs that were added or removed."""
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

    def report_sample_troubles(self) -> None:
        """Log each trouble of the last sample once."""
        self._warn(self.latencies.trouble.values())

    def close(self) -> None:
        """Close the kernel's log."""
        self.kernel.close()

    def _find_osds_on(self, device: str) -> tuple[OsdDevice, ...]:
        return self.map.find_osds_on(device)

    def _mapped(self) -> OsdDeviceMap:
        """Return the map of OSDs and devices on this host.

        LVM is asked if there are signs of OSDs that no directory names. If there are more admin sockets of a number
        than OSDs, the OSDs behind them are asked themselves.
        """
        found = seat_map(patience=self._patience)
        told = self._tags.read_lvm_tags(found.doubts)
        if told is not None:
            found = seat_map(volumes=told, patience=self._patience)
        try:
            sockets = admin_sockets()
        except Refusal:
            return found  # the latency watch reports it
        known, there = Counter(one.osd for one in found.osds), Counter(one.osd for one in sockets.values())
        unknown = {path: one for path, one in sockets.items() if there[one.osd] > known[one.osd]}
        if not unknown:
            return found
        return seat_map(volumes=told, named=named_disks(unknown), patience=self._patience)

    def _data_disks(self, osd: OsdKey) -> tuple[str, ...]:
        return tuple(disk for role, disk in self.map.list_osd_disks(osd) if role is Role.DATA)

    def _warn(self, sentences: Iterable[str]) -> None:
        for sentence in sentences:
            if sentence not in self._told:
                self._told.add(sentence)
                self._tell(sentence)


def _log_unreadable(sentence: str) -> None:
    structlog.get_logger().warning("not everything can be read", reason=sentence)


def _measure_latencies(host: CollectorHost, agent: Agent) -> float:
    host.kernel.poll_log()
    pause = agent.sample_latencies()
    host.report_sample_troubles()
    return pause


def _write_metrics_file(file: Path | None, tally: CollectorTally, host: HostName) -> None:
    if file is None:
        return
    try:
        write_metrics_file(file, format_metrics(tally, host))
    except OSError as error:
        structlog.get_logger().warning("metrics not written", file=str(file), reason=error.strerror)


def _spool_path(settings: CollectorSettings) -> Path:
    return settings.collector.spool or settings.state / "collector.sqlite"


def _build_sink(settings: CollectorSettings) -> tuple[Sink, str]:
    """Return the sink of readings and its name for people. Raises BadCollectorSettings, BadAddress."""
    table, kafka = settings.collector, settings.kafka
    if kafka.bootstrap_servers:
        return LogSink(lambda: _open_kafka_log(kafka)), f"Kafka at {', '.join(kafka.bootstrap_servers)}"
    token_file = _token_file(settings)
    return _build_web_sink(settings, lambda: tokens.read_token_file(token_file)), table.url


def _token_file(settings: CollectorSettings) -> Path:
    return settings.collector.token_file or settings.state / "token"


def _request_key_file(settings: CollectorSettings) -> Path:
    return settings.state / "request_key"


def _build_work_loop(
    settings: CollectorSettings, host: CollectorHost, clock: Clock, random: Random, over: threading.Event
) -> WorkLoop | None:
    """Build the loop that asks the service for work, or None if this host has no token of the service.

    A host that delivers to Kafka asks too once it is enrolled. A service that runs on this machine, with the
    collector's token file as its own, is asked as well.
    """
    table, token_file, key_file = settings.collector, _token_file(settings), _request_key_file(settings)
    if settings.kafka.bootstrap_servers and not token_file.exists():
        return None

    def read_key() -> str | None:
        try:
            return tokens.read_token_file(key_file)
        except (OSError, Refusal):
            return None

    try:
        memory = RequestMemory(settings.state / "requests.json", clock.now())
        sink = _build_web_sink(settings, lambda: tokens.read_token_file(token_file))
    except (MemoryUnusable, BadAddress) as unusable:
        structlog.get_logger().error("no work is asked for", reason=str(unusable))
        return None
    runner = RequestRunner(
        host.name,
        host.disks,
        host.smartctl,
        SlotLight(table.ledctl, host.sudo),
        memory,
        clock,
        allow=table.allow,
        key=read_key,
    )
    return WorkLoop(
        host.name,
        runner,
        memory,
        host.disks,
        sink.ask_for_work,
        random,
        allow=table.allow,
        has_key=lambda: read_key() is not None,
        stopping=over.is_set,
    )


def _build_web_sink(settings: CollectorSettings, token: Callable[[], str]) -> WebSink:
    """Build the sink that delivers to the service of the settings. Raises BadCollectorSettings, BadAddress."""
    table, tls = settings.collector, None
    if table.ca is not None:
        try:
            tls = ssl.create_default_context(cafile=table.ca)
        except OSError as error:
            raise BadCollectorSettings(
                f"`ca` of [collector], {table.ca}, is no certificate that can be read ({error}): name a PEM file"
            ) from error
    return WebSink(table.url, token, tls)


def _open_kafka_log(table: CollectorKafkaTable) -> Log:
    """Open the Kafka log; the client is imported only when it is used. Raises Refusal."""
    from predrain.data.log.kafka import Broker, KafkaLog

    password = (
        read_secret_file(table.password_file, "password_file of [kafka]") if table.password_file else ""
    )
    return KafkaLog(
        Broker(
            table.bootstrap_servers,
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
