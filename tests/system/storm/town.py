"""A service with 450 disks, the mail server and the receiver that hear of them, and the clock that a test moves."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from email.message import EmailMessage
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import httpx2

from predrain.actions.simulator.worlds import build_world
from predrain.data.clock import SystemClock
from predrain.data.ids import DeviceId, HostName
from predrain.data.reading import Attribute, Counters, Identity, Protocol, Reading, Smart
from predrain.service.storage.record_sender import RecordSender
from tests.deadlines import idle_seconds
from tests.service.notifications.test_channels import Post, post_office

ROOT = Path(__file__).parents[3]
BEGAN = datetime(2026, 11, 20, 12, tzinfo=UTC)
BARRACUDA, DESKSTAR = "ST4000DM000", "HGST HMS5C4040ALE640"
ALIKE = 300
"""So many of the 450 are Barracudas."""
SECRET = "what both sides know of each other"
PATIENCE = 240.0
MINUTE = timedelta(minutes=1)


@dataclass(frozen=True)
class Disk:
    """One of the 450."""

    number: int
    host: HostName
    rack: str
    firmware: str = "CC54"

    @property
    def model(self) -> str:
        return BARRACUDA if self.number < ALIKE else DESKSTAR

    @property
    def device(self) -> DeviceId:
        return DeviceId(f"{self.model.replace(' ', '_')}_Z{self.number:05d}")

    def reading(
        self, at: datetime, *, pending: int = 0, celsius: int = 31, passed: bool | None = True
    ) -> Reading:
        """Return a reading of the disk by its host."""
        raw = {5: 0, 9: 20_000, 187: 0, 188: 0, 193: 1000, 194: celsius, 197: pending, 198: pending, 199: 0}
        seen = Smart(
            Protocol.ATA,
            Identity(
                model=self.model,
                serial=f"Z{self.number:05d}",
                firmware=self.firmware,
                capacity_bytes=4_000_787_030_016,
                rotation_rpm=5900,
            ),
            passed,
            Counters(pending=pending, reallocated=0, offline_uncorrectable=pending, crc_errors=0),
            {id_: Attribute(f"smart_{id_}", count) for id_, count in raw.items()},
            20_000,
            celsius,
        )
        return Reading(self.device, self.host, at, at, seen)


def disks() -> tuple[Disk, ...]:
    """In the order of their OSDs; the models alternate over hosts and racks."""
    osds = build_world("cisco", 1).osds
    # Two in three of each host are of one model: 300 of 450, on all 45 hosts.
    alike = iter([at for at in range(len(osds)) if at % 3 != 2])
    others = iter([at for at in range(len(osds)) if at % 3 == 2])
    places = [*alike, *others]
    made: dict[int, Disk] = {}
    for number, place in enumerate(places):
        made[place] = Disk(number, osds[place].host, str(osds[place].rack))
    return tuple(made[place] for place in range(len(osds)))


@dataclass
class Hook:
    """A webhook's receiver, which checks who signed; `answer` is its status."""

    answer: int = 204
    kept: list[dict[str, Any]] = field(default_factory=list)


@dataclass
class Town:
    """Everything, and the time there."""

    folder: Path
    post: Post
    hook: Hook
    disks: Sequence[Disk]
    now: datetime = BEGAN
    _process: subprocess.Popen[bytes] | None = None

    @property
    def mails(self) -> list[EmailMessage]:
        return self.post.kept

    def subjects(self) -> list[str]:
        """Of the mails, in the order in which they came."""
        return [str(mail["Subject"]).strip() for mail in self.mails]

    def titles(self) -> list[str]:
        """Of what was posted, likewise."""
        return [str(message["title"]) for message in self.hook.kept]

    def start(self) -> None:
        """Begin, and wait for the bundle."""
        self.pass_time(timedelta(0))
        (self.folder / "state" / "url").unlink(missing_ok=True)
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PREDRAIN_")}
        command = [sys.executable, "-m", "tests.system.storm.still"]
        files = [self.folder / name for name in ("predrain.toml", "clock", "fleet.json")]
        with (self.folder / "said").open("ab") as said:
            self._process = subprocess.Popen(
                [*command, *map(str, files)], stderr=said, env=environment, cwd=ROOT
            )
        self.until(lambda: (self.folder / "state" / "url").exists(), "the address")
        self.until(lambda: self._ask("/readyz").status_code == 200, "the forecaster")

    def kill(self) -> None:
        """kill -9."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def pass_time(self, time_: timedelta) -> None:
        """Move the clock, whole at once."""
        self.now += time_
        written = self.folder / "clock.new"
        written.write_text(self.now.isoformat())
        written.replace(self.folder / "clock")

    def until(self, holds: Callable[[], object], what: str) -> None:
        """Wait, while the clock stands."""
        end = idle_seconds() + PATIENCE
        while not holds():
            said = (self.folder / "said").read_text(errors="replace")[-2000:]
            assert idle_seconds() < end, f"{what} did not come: {said}"
            assert self._process is None or self._process.poll() is None, said
            time.sleep(0.05)

    def until_told(self, holds: Callable[[], object], what: str) -> None:
        """Wait, while the clock goes on by a minute whenever all was looked at."""
        end = idle_seconds() + PATIENCE
        while not holds():
            assert idle_seconds() < end, f"{what} was not told: {self.subjects()} {self.titles()}"
            self.pass_time(MINUTE)
            for _ in range(20):
                if holds():
                    return
                time.sleep(0.05)

    def get(self, path: str) -> Any:
        """An answer of the REST interface."""
        answer = self._ask(f"/api/v1/{path}")
        assert answer.status_code == 200, answer.text
        return answer.json()

    def figure(self, name: str) -> float:
        """One of `/metrics`."""
        lines = self._ask("/metrics").text.splitlines()
        return float(next((line.split()[-1] for line in lines if line.startswith(f"{name} ")), "nan"))

    def until_kept(self, channel: str, count: int) -> None:
        """Wait until so many messages were delivered by the living process, and noted as that."""
        name = f'predrain_notifications_sent_total{{channel="{channel}"}}'
        self.until_told(lambda: self.figure(name) >= count, f"message {count} by {channel}")

    def post_to(self, path: str, body: object) -> Any:
        """Act."""
        with self._client() as client:
            token = (self.folder / "state" / "token").read_text().strip()
            answer = client.post(path, json=body, headers={"Authorization": f"Bearer {token}"})
            assert answer.is_success, answer.text
            return answer.json()

    def read(self, readings: Iterable[Reading]) -> None:
        """Send them as hosts do, and wait until all are judged."""
        sender, before = (
            RecordSender("hosts", SystemClock()),
            self.figure("predrain_readings_processed_total"),
        )
        sent = [json.loads(sender.encode_envelope(reading)) for reading in readings]
        for at in range(0, len(sent), 1000):
            answer = self.post_to("/api/v1/readings", sent[at : at + 1000])
            assert answer["refused"] == []
        self.until(
            lambda: self.figure("predrain_readings_processed_total") >= before + len(sent), "every reading"
        )

    def well(self) -> None:
        """Everything was read now and then until two days ago, and all was well."""
        ages = [timedelta(days=day) for day in (6, 2)]
        self.read(disk.reading(self.now - age) for age in ages for disk in self.disks)

    def _client(self) -> httpx2.Client:
        return httpx2.Client(base_url=(self.folder / "state" / "url").read_text().strip(), timeout=60)

    def _ask(self, path: str) -> httpx2.Response:
        with self._client() as client:
            return client.get(path)


@contextmanager
def town(
    folder: Path,
    *,
    mail: str = "",
    policy: str = "",
    firmware: Mapping[int, str] | None = None,
) -> Iterator[Town]:
    """In mode act, not yet begun; mail, policy: further lines of those tables. Ended with the context."""
    seats = tuple(replace(one, firmware=(firmware or {}).get(one.number, one.firmware)) for one in disks())
    with ExitStack() as closing:
        post, hook = Post(), Hook()
        port = closing.enter_context(post_office(post))
        url = closing.enter_context(_receiver(hook))
        (folder / "secret").write_text(SECRET)
        (folder / "secret").chmod(0o600)
        (folder / "fleet.json").write_text(
            json.dumps({osd: (one.device, one.model) for osd, one in enumerate(seats)})
        )
        (folder / "predrain.toml").write_text(
            f'[service]\nport = 0\nstate = "{folder / "state"}"\nexternal_url = "https://predrain.example.org"\n'
            f'[policy]\nmode = "act"\ntick_seconds = 2\nview_age_max_seconds = 1e6\n{policy}'
            f'[mail]\nhost = "127.0.0.1"\nport = {port}\nsecurity = "none"\nsender = "predrain@example.org"\n'
            f'to = ["ops@example.org"]\nmin_severity = "notice"\n{mail}'
            f'[webhook]\nurl = "{url}"\nallow_private_address = true\nsecret_file = "{folder / "secret"}"\n'
        )
        made = Town(folder, post, hook, seats)
        closing.callback(made.kill)
        yield made


@contextmanager
def _receiver(hook: Hook) -> Iterator[str]:
    class Answer(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            mark = dict(one.split("=") for one in self.headers["X-Predrain-Signature"].split(","))
            signed = hmac.new(SECRET.encode(), mark["t"].encode() + b"." + body, hashlib.sha256).hexdigest()
            status = hook.answer if hmac.compare_digest(signed, mark["v1"]) else 403
            if status < 300:
                hook.kept.append(json.loads(body))
            self.send_response(status)
            self.end_headers()

        def log_message(self, *_: object, **__: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Answer) as server:
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/hook"
        server.shutdown()
        thread.join()
