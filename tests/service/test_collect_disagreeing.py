"""A collector and a service that do not agree: on the time, or on whose readings these are."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from predrain.collector.delivery import SpoolStatus, read_spool_status
from predrain.service.access.credentials import CredentialBook, CredentialKind
from predrain.service.access.tokens import Scope
from predrain.service.app.application import Application
from predrain.service.config.state_directory import StateDir
from predrain.service.doctor.running_checks import check_service
from tests.collector.fake_smartctl import FakeSmartctl, every_kind
from tests.service.conftest import Place, Serve, SetClock, Site, shut
from tests.service.test_collect import Rig, once_true

DISKS = 4
BEHIND = timedelta(minutes=5, seconds=2)


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    disks = [one for one in every_kind() if one.listed and one.path.startswith("/dev/sd")]
    return Rig(tmp_path, FakeSmartctl(tmp_path / "fake", disks[:DISKS]))


@pytest.fixture
def behind(place: Place, serve: Serve) -> Iterator[Callable[[timedelta], tuple[Site, SetClock]]]:
    """Starts a service whose clock is so far behind this machine's, and stands."""
    applications: list[Application] = []

    def beginning(by: timedelta) -> tuple[Site, SetClock]:
        clock = SetClock(datetime.now(UTC) - by)
        application = replace(place, clock=clock).application()
        application.start()
        applications.append(application)
        return serve(application), clock

    yield beginning
    for application in applications:
        shut(application)


def stands(rig: Rig) -> SpoolStatus:
    standing = read_spool_status(rig.spool)
    assert standing is not None
    return standing


@pytest.mark.slow
def test_a_service_whose_clock_is_minutes_behind_gets_all_readings_once_their_time_has_come(
    rig: Rig, behind: Callable[[timedelta], tuple[Site, SetClock]]
) -> None:
    site, clock = behind(BEHIND)
    rig.configure(str(site.client.base_url))
    with rig.collecting() as process:
        once_true(lambda: site.application.counts["refused"] >= DISKS)
        assert site.application.counts["accepted"] == 0
        clock.sleep(60)
        once_true(lambda: site.application.counts["accepted"] >= DISKS)
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0
    assert (stands(rig).readings, stands(rig).lost_readings, stands(rig).refused) == (0, 0, 0)


@pytest.mark.slow
def test_a_service_whose_clock_is_days_behind_gets_all_readings_once_it_is_set(
    rig: Rig, behind: Callable[[timedelta], tuple[Site, SetClock]]
) -> None:
    site, clock = behind(timedelta(days=3))
    rig.configure(str(site.client.base_url), metrics_file=str(rig.folder / "predrain.prom"))
    with rig.collecting() as process:
        once_true(lambda: site.application.counts["refused"] >= DISKS)
        clock.sleep(timedelta(days=3).total_seconds())
        once_true(lambda: site.application.counts["accepted"] >= DISKS)
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0
        assert process.stderr is not None
        said = process.stderr.read()
    assert "set that host's clock (NTP), or the service's" in said
    assert (stands(rig).readings, stands(rig).lost_readings, stands(rig).refused) == (0, 0, 0)


@pytest.mark.slow
def test_a_renamed_host_keeps_what_it_reads_and_is_told_of_until_it_is_enrolled_anew(
    rig: Rig, behind: Callable[[timedelta], tuple[Site, SetClock]]
) -> None:
    site, clock = behind(timedelta(0))
    book, own = CredentialBook(site.application.store, clock), rig.folder / "own-token"
    settings = {"url": str(site.client.base_url), "token_file": str(own)}

    def enrol(host: str) -> None:
        own.unlink(missing_ok=True)
        rig.configure(**settings, host=host)
        once = book.issue_credential(
            CredentialKind.ENROLMENT, f"host:{host}", [Scope.INGEST], "test", host=host
        )
        assert rig.run("--enrol", once).returncode == 0

    enrol("stor-01")
    rig.configure(**settings, host="stor-99")
    with rig.collecting() as process:
        once_true(lambda: site.application.counts["refused"] >= DISKS)
        once_true(
            lambda: (
                process.poll() is None
                and site.application.host_mismatches.find_recent_mismatches(clock.now())
            )
        )
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0
        assert process.stderr is not None
        said = process.stderr.read()
    assert said.count("enrol this host under the name that it has now") == 1
    assert stands(rig).readings >= DISKS  # more where a round has begun meanwhile
    assert stands(rig).refused == 0
    (cause,) = site.client.get("/api/v1/causes", headers=site.acting).json()["items"]
    assert (cause["key"], cause["title"]) == ("misnamed:stor-01", "stor-01 calls itself stor-99")
    StateDir(site.application.settings.service.state).say_url(str(site.client.base_url))
    looked = check_service(site.application.settings, clock)
    (finding,) = (one for one in looked if one.what == "enrolment")
    assert "predrain token enrol stor-99" in finding.told

    enrol("stor-99")
    with rig.collecting():
        once_true(lambda: site.application.counts["accepted"] >= DISKS)
    clock.sleep(16 * 60)
    assert site.client.get("/api/v1/causes", headers=site.acting).json()["items"] == []
