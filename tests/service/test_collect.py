"""`predrain collect` as a process of its own: fake drives that answer as real ones did, a real service."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest

from predrain.collector.delivery import Spool, read_spool_status
from predrain.collector.latency import LatencyWatch, SocketsUnreadable
from predrain.collector.osd_devices import VolumeTags, seat_map
from predrain.data.clock import SystemClock
from predrain.data.ids import ClusterId, HostName, OsdId, OsdKey
from predrain.data.log.log_port import Topic
from predrain.data.reading import OsdDevice, Reading, Role
from predrain.data.wire import decode_envelope
from predrain.data.wire.wire_bodies import READING
from predrain.service.app.application import Application
from predrain.service.config import collector_table, kafka_table
from predrain.service.config.collector_table import (
    OF_THE_SERVICE,
    TABLES,
    BadCollectorSettings,
    CollectorKafkaTable,
    load_collector_settings,
)
from predrain.service.config.settings import Settings
from predrain.service.processes.collector_process import CollectorHost
from tests.collector.fake_smartctl import FakeSmartctl, every_kind
from tests.collector.osd_devices.fake_host import FakeHost
from tests.service.conftest import INGEST_TOKEN, Place, Serve, SetClock, Site, shut

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = ROOT / "tests/collector/osd_devices/samples"
PREDRAIN = (sys.executable, "-c", "from predrain.service.cli import run; run()")


@dataclass
class Rig:
    """An OSD host with fake drives, and the settings of its collector."""

    folder: Path
    fake: FakeSmartctl

    @property
    def state(self) -> Path:
        return self.folder / "state"

    @property
    def spool(self) -> Path:
        return self.state / "collector.sqlite"

    def configure(self, url: str = "http://127.0.0.1:1", **collector: Any) -> Path:
        """The settings file."""
        token = self.folder / "ingest-token"
        token.write_text(INGEST_TOKEN)
        token.chmod(0o600)
        keys: dict[str, Any] = {
            "url": url, "token_file": str(token), "smartctl": self.fake.program, "host": "stor-01",
            "smartctl_timeout_seconds": 5, "parallel": 8, "reading_interval_minutes": 1, **collector,
        }  # fmt: skip
        lines = [f"{key} = {json.dumps(value)}" for key, value in keys.items()]
        file = self.folder / "predrain.toml"
        file.write_text("\n".join([f'[service]\nstate = "{self.state}"\n[collector]', *lines]))
        return file

    def run(self, *arguments: str, columns: int = 200) -> subprocess.CompletedProcess[str]:
        """A command that ends by itself."""
        return subprocess.run(
            [*PREDRAIN, "collect", "--config", str(self.folder / "predrain.toml"), *arguments],
            cwd=ROOT, capture_output=True, text=True, env={**os.environ, "COLUMNS": str(columns)}, check=False,
        )  # fmt: skip

    @contextmanager
    def collecting(self) -> Iterator[subprocess.Popen[str]]:
        """The collector at work."""
        process = subprocess.Popen(
            [*PREDRAIN, "collect", "--config", str(self.folder / "predrain.toml")],
            cwd=ROOT, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        try:
            yield process
        finally:
            process.kill()
            process.communicate()


def once_true(what: Callable[[], object]) -> None:
    """Wait until `what` holds; the test's own time limit ends it."""
    while not what():
        time.sleep(0.05)


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    made = Rig(tmp_path, FakeSmartctl(tmp_path / "fake", every_kind()))
    made.configure()
    return made


@pytest.fixture
def begin(place: Place, serve: Serve) -> Iterator[Callable[[], Site]]:
    """Starts a service whose clock is this machine's, as the drives' is."""
    applications: list[Application] = []

    def beginning() -> Site:
        application = replace(place, clock=SetClock(datetime.now(UTC))).application()
        application.start()
        applications.append(application)
        return serve(application)

    yield beginning
    for application in applications:
        shut(application)


@pytest.mark.slow
def test_once_prints_what_every_disk_said_the_sick_first_and_keeps_nothing(rig: Rig) -> None:
    ran = rig.run("--once")
    rows = [line for line in ran.stdout.splitlines() if "FAKE0" in line]
    assert len(rows) == 22  # drives behind cciss and areca are in no list
    assert ["FAILED" in row for row in rows] == sorted(("FAILED" in row for row in rows), reverse=True)
    assert "FAILED" in rows[0]
    assert "stor-01: 22 disks" in ran.stdout
    (hidden,) = (row for row in rows if "FAKE0016" in row)
    assert hidden.split()[:2] == ["bus/0", "WD4000FYYX_FAKE0016"]  # its slot stands in the next line
    assert not rig.spool.exists()
    assert ran.returncode == (3 if ran.stderr else 0)


@pytest.mark.slow
def test_a_narrow_terminal_gets_every_serial_whole_and_says_who_sleeps(rig: Rig) -> None:
    sleeper = rig.fake.disks[3]
    rig.fake.plug(replace(sleeper, how="asleep"))
    ran = rig.run("--once", columns=80)
    rows = ran.stdout.splitlines()
    assert max(map(len, rows)) <= 80
    told = "".join(row[12:38].strip() for row in rows)
    awake = [disk for disk in rig.fake.disks if disk.listed and disk.how == "answer"]
    assert all(str(disk.serial) in told for disk in awake)
    assert f"asleep and not woken: {sleeper.path}" in ran.stdout


@pytest.mark.slow
def test_once_as_json_gives_a_reading_a_line_and_the_collectors_own_last(rig: Rig) -> None:
    *lines, own = rig.run("--once", "--json").stdout.splitlines()
    readings = [READING.read(line.encode()) for line in lines]
    assert {reading.host for reading in readings} == {"stor-01"}
    told = json.loads(own)["collector"]
    assert (told["readings"], told["disks"], told["unreadable"]) == (22, 22, 0)
    assert told["round_seconds"] > 0


@pytest.mark.slow
def test_readings_are_dated_in_utc_wherever_the_host_is(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    began = datetime.now(UTC) - timedelta(seconds=1)  # smartctl counts whole seconds
    monkeypatch.setenv("TZ", "Pacific/Kiritimati")
    *lines, _ = rig.run("--once", "--json").stdout.splitlines()
    times = [json.loads(line)["taken_at"] for line in lines]
    assert times
    assert all(time.endswith("Z") for time in times)
    assert all(began <= datetime.fromisoformat(time) <= datetime.now(UTC) for time in times)


@pytest.mark.slow
def test_once_says_by_its_exit_code_that_some_could_not_be_read(rig: Rig) -> None:
    sata = next(disk for disk in rig.fake.disks if disk.path == "/dev/sda")
    rig.fake.plug(replace(sata, how="garbage"))
    ran = rig.run("--once")
    assert ran.returncode == 3
    assert "/dev/sda" in ran.stderr
    assert "21 disks" in ran.stdout


@pytest.mark.slow
def test_a_host_without_smartctl_is_told_what_is_missing(rig: Rig) -> None:
    rig.configure(smartctl="/nowhere/smartctl")
    ran = rig.run("--once")
    assert ran.returncode == 3
    assert ran.stderr.count("could not be run (/nowhere/smartctl: No such file or directory)") == 1
    assert "apt install smartmontools" in ran.stderr
    assert "Traceback" not in ran.stderr


@pytest.mark.slow
def test_every_disk_reaches_the_service(rig: Rig, begin: Callable[[], Site]) -> None:
    site = begin()
    rig.configure(str(site.client.base_url), metrics_file=str(rig.folder / "predrain.prom"))
    with rig.collecting() as process:
        once_true(lambda: site.application.counts["accepted"] >= 22)
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0
    told = read_spool_status(rig.spool)
    assert told is not None
    assert (told.readings, told.lost_readings, told.refused) == (0, 0, 0)
    assert "predrain_collector_disks 22" in (rig.folder / "predrain.prom").read_text()


@pytest.mark.slow
def test_readings_spooled_while_the_service_was_away_reach_it_after_a_kill_of_the_collector(
    rig: Rig, begin: Callable[[], Site]
) -> None:
    with rig.collecting() as process:
        once_true(lambda: (told := read_spool_status(rig.spool)) is not None and told.readings >= 22)
        process.kill()
    spool = Spool(rig.spool, HostName("stor-01"), Random())
    kept = spool.take_batch()
    spool.close()
    assert kept is not None
    site = begin()
    rig.configure(str(site.client.base_url))
    with rig.collecting():
        once_true(lambda: site.application.counts["accepted"] >= len(kept.records))
    there = {record_of(each.value) for each in site.application.log.read(Topic.READINGS, "test", 1000)}
    assert {record_of(record.value) for record in kept.records} <= there


def record_of(value: bytes) -> tuple[str, datetime]:
    """Return the device and the time of a reading, which identify it."""
    reading = decode_envelope(value, Reading).body
    return reading.device, reading.taken_at


@pytest.mark.slow
def test_a_hung_smartctl_does_not_keep_the_end_waiting(rig: Rig) -> None:
    rig.configure(smartctl_timeout_seconds=1000)
    rig.fake.plug(*(replace(disk, how="stubborn") for disk in rig.fake.disks[:3]))
    with rig.collecting() as process:
        once_true(lambda: (told := read_spool_status(rig.spool)) is not None and told.readings >= 10)
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0


@pytest.mark.slow
def test_a_second_collector_on_the_same_spool_is_refused_with_a_sentence(rig: Rig) -> None:
    with rig.collecting():
        once_true(lambda: read_spool_status(rig.spool) is not None)
        ran = rig.run()
    assert ran.returncode == 1
    assert "another collector has the spool" in ran.stderr


def test_an_osd_that_says_nothing_is_told_once_and_not_at_every_sample(rig: Rig) -> None:
    told: list[str] = []
    host = CollectorHost(
        load_collector_settings(rig.folder / "predrain.toml", {}),
        Random(1),
        tell=told.append,
        spread_seconds=0.0,
    )

    def refuse() -> Mapping[Path, OsdKey]:
        raise SocketsUnreadable(
            "/run/ceph may not be read: run the collector as Ceph's user (ceph) or as root"
        )

    host.latencies = LatencyWatch(refuse, lambda _: (), SystemClock(), host.name)
    for _ in range(3):
        host.latencies.sample()
        host.report_sample_troubles()
    host.close()
    assert told == ["/run/ceph may not be read: run the collector as Ceph's user (ceph) or as root"]


def test_an_osd_that_is_not_activated_is_seated_by_what_lvm_tells(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    lvs, told = rig.folder / "lvs", SAMPLES / "lvs-not-active.json"
    lvs.write_text(f"#!/bin/sh\ncat '{told}'\n")
    lvs.chmod(0o755)
    osds = FakeHost(rig.folder / "root")
    osds.virtual("loop0")
    osds.osd(3)
    monkeypatch.setattr("predrain.service.processes.collector_process.seat_map", partial(seat_map, osds.root))
    monkeypatch.setattr(
        "predrain.service.processes.collector_process.VolumeTags", lambda _: VolumeTags(None, str(lvs))
    )
    host = CollectorHost(
        load_collector_settings(rig.folder / "predrain.toml", {}),
        Random(1),
        tell=lambda _: None,
        spread_seconds=0.0,
    )
    host.rescan()
    host.close()
    assert host.map.find_osds_on("/dev/loop0") == (
        OsdDevice(OsdId(3), Role.DATA, ClusterId("4bfe8b72-5e69-4330-b6c0-4d914db8ab89")),
    )


@pytest.mark.slow
def test_it_imports_neither_pydantic_nor_the_web_nor_anything_to_learn_with() -> None:
    process = "predrain.service.processes.collector_process"
    program = f"import sys, {process}, predrain.service.cli, kafka; print(*sys.modules)"
    ran = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    heavy = {"pydantic", "fastapi", "starlette", "sqlalchemy", "numpy", "pandas", "lightgbm", "uvicorn"}
    assert not heavy & set(ran.stdout.split())


def test_variables_win_over_the_file_and_other_tables_are_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "predrain.toml"
    file.write_text(
        '[policy]\nmode = "act"\n[collector]\nparallel = 2\nspool_days = 3\n[kafka]\nbootstrap_servers = ["a:1"]\n'
    )
    told = load_collector_settings(
        file,
        {
            "PREDRAIN_COLLECTOR__PARALLEL": "9",
            "PREDRAIN_KAFKA__BOOTSTRAP_SERVERS": '["b:2", "c:3"]',
            "HOME": "/h",
        },
    )
    assert (told.collector.parallel, told.collector.spool_days) == (9, 3.0)
    assert told.kafka.bootstrap_servers == ("b:2", "c:3")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[collector]\nspool_day = 3", "did you mean collector.spool_days"),
        ('[collector]\nspool_days = "x"', "collector.spool_days"),
        ("[collector]\nspool_days = -1", "collector.spool_days"),
        ("[collector]\nspool_days = inf", r"collector\.spool_days: a century, 36525, is the longest"),
        ("collector = 3", r"write \[collector\]"),
        ("[collector", "is not TOML"),
        ('[colector]\nurl = "https://predrain.example.org"', "unknown key colector; did you mean collector?"),
        (
            '[kafka]\nbootstrap_server = ["a:1"]',
            r"unknown key kafka\.bootstrap_server; did you mean kafka\.bootstrap_servers\?",
        ),
    ],
)
def test_a_bad_setting_is_named_with_its_cure(tmp_path: Path, text: str, why: str) -> None:
    file = tmp_path / "predrain.toml"
    file.write_text(text)
    with pytest.raises(BadCollectorSettings, match=why):
        load_collector_settings(file, {})


def test_without_config_the_collectors_own_file_counts_before_the_services(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, services = tmp_path / "collector.toml", tmp_path / "predrain.toml"
    monkeypatch.setattr(collector_table, "SYSTEM_FILES", (own, services))
    assert load_collector_settings(environment={}).collector.host is None
    services.write_text('[collector]\nhost = "of-the-service"')
    assert load_collector_settings(environment={}).collector.host == "of-the-service"
    own.write_text('[collector]\nhost = "its-own"')
    assert load_collector_settings(environment={}).collector.host == "its-own"


def test_a_misspelt_variable_does_not_leave_the_collector_with_a_default() -> None:
    with pytest.raises(
        BadCollectorSettings, match=r"PREDRAIN_COLECTOR__URL is no setting.*PREDRAIN_COLLECTOR__URL"
    ):
        load_collector_settings(environment={"PREDRAIN_COLECTOR__URL": "https://predrain.example.org"})


def test_a_whole_file_of_the_service_is_taken() -> None:
    kafka = set(kafka_table.KafkaTable.model_fields) - set(CollectorKafkaTable.__struct_fields__)
    assert set(OF_THE_SERVICE["kafka"]) == kafka
    assert set(TABLES) == set(Settings.model_fields)


def test_a_settings_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(BadCollectorSettings, match="does not exist"):
        load_collector_settings(tmp_path / "none.toml", {})


def test_the_collector_reads_the_keys_of_kafka_as_the_service_does() -> None:
    theirs = kafka_table.KafkaTable().model_dump()
    ours = CollectorKafkaTable()
    assert {name: getattr(ours, name) for name in ours.__struct_fields__} == {
        name: theirs[name] for name in ours.__struct_fields__
    }
