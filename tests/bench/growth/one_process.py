"""One process with its files: `predrain up` at one size, from a restart to a steady load."""

from __future__ import annotations

import sqlite3
import tempfile
import time
from contextlib import closing
from pathlib import Path

from predrain.data.store.sqlite_store import SqliteStore
from predrain.service.app.scheduler import RETAIN_FIRST_SECONDS
from tests.bench.growth.load_plan import LoadPlan, Report, Values, fill_store, send_at_once
from tests.bench.growth.measures import KEPT_READINGS, GrowthSeries, MeasureName, SizeFigures
from tests.bench.growth.probing import compute_patience, sample_memory, wait_for, wait_until_at_rest
from tests.bench.growth.service_control import MeasuredService, ask_for_devices, read_page, start_service
from tests.bench.loading import A_POST, Hosts, StampedEnvelopes
from tests.bench.stage import drives
from tests.bench.stored_bytes import measure_file

SETTLED_SECONDS = RETAIN_FIRST_SECONDS + 1.0
"""Seconds after a start in which the last of what is done once begins: the retention."""


def measure_one_process(disks: int, plan: LoadPlan, report: Report) -> SizeFigures:
    """Measure one size. Raises GrowthFailed; what was started has ended then, and its files are gone."""
    with tempfile.TemporaryDirectory(prefix="predrain-growth-") as folder:
        return _OneProcess(Path(folder), disks, plan, report).measure()


class _OneProcess:
    def __init__(self, folder: Path, disks: int, plan: LoadPlan, report: Report) -> None:
        self._folder, self._disks, self._plan, self._report = folder, disks, plan, report
        self._path = folder / "state" / "store.sqlite"
        self._patience = compute_patience(disks)

    def measure(self) -> SizeFigures:
        self._report("filling the store")
        with closing(SqliteStore(self._path)) as store:
            fill_store(store, drives(self._disks))
        envelopes = StampedEnvelopes(self._disks)
        bytes_before, rows_before = measure_file(self._path), self._count_outlooks()
        starts = list[Values]()
        for number in range(1, self._plan.restarts + 1):
            self._report(f"start {number} of {self._plan.restarts}")
            with (
                start_service(self._folder, "up", self._disks) as service,
                closing(Hosts(service.address, service.token, envelopes=envelopes)) as hosts,
            ):
                starts.append(self._time_start(service, hosts))
                if number == self._plan.restarts:
                    loaded = self._load(service, hosts)
        rows = self._count_outlooks() - rows_before
        values = min(starts, key=lambda start: start[MeasureName.SCORE]) | loaded
        values[MeasureName.YEAR] = (measure_file(self._path) - bytes_before) / rows * KEPT_READINGS
        return SizeFigures(GrowthSeries.ONE_PROCESS, self._disks, values)

    def _time_start(self, service: MeasuredService, hosts: Hosts) -> Values:
        """Return the seconds until all states are read back, and until a reading that came meanwhile is scored."""
        before = self._count_outlooks()
        hosts.post()
        wait_for("readyz", service.is_ready, self._patience)
        ready, ready_wall = service.probe.burnt(), time.monotonic() - service.began
        wait_for("the first score", lambda: self._count_outlooks() > before, self._patience)
        return {
            MeasureName.READY: ready,
            MeasureName.READY_WALL: ready_wall,
            MeasureName.SCORE: service.probe.burnt(),
            MeasureName.SCORE_WALL: time.monotonic() - service.began,
        }

    def _load(self, service: MeasuredService, hosts: Hosts) -> Values:
        service.give_view()
        if self._plan.settles:
            self._report("what is done once after a start")
            time.sleep(max(0.0, service.began + SETTLED_SECONDS - time.monotonic()))
            wait_until_at_rest(service.probe, self._patience)
        self._report("the page's first data")
        values = read_page(service)
        count = self._plan.count_at_once(self._disks)
        self._report(f"{count:,} readings at once")
        spent, before = service.probe.burnt(), self._count_outlooks() - A_POST

        def post() -> int:
            hosts.post()
            return A_POST

        sent = send_at_once(count, post, lambda: self._count_outlooks() - before, self._patience)
        values[MeasureName.READING] = (service.probe.burnt() - spent) / sent * 1e6
        seconds, rate = self._plan.steady_seconds, self._plan.rate
        self._report(f"{rate:,} readings a second for {seconds:g} s, and GET devices")
        with sample_memory(service.probe) as samples, ask_for_devices(service) as questions:
            hosts.send(seconds, rate)
        return values | {
            MeasureName.GROWTH: samples.megabytes_per_minute,
            MeasureName.STEADY: samples.steady_megabytes,
            MeasureName.SHARED_OUT: service.probe.proportional_megabytes(),
            MeasureName.PEAK: service.probe.largest_megabytes("VmHWM"),
            MeasureName.DEVICES_MEDIAN: questions.quantile_ms(0.5),
            MeasureName.DEVICES_SLOWEST: questions.quantile_ms(0.99),
        }

    def _count_outlooks(self) -> int:
        """Return the outlooks that were ever saved, without asking the process that is measured."""
        with closing(sqlite3.connect(self._path, timeout=self._patience)) as store:
            (count,) = store.execute("SELECT max(rowid) FROM outlooks").fetchone()
        return int(count or 0)
