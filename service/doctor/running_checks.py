"""Checks of what runs: the service on this machine, and the collectors, by their last deliveries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import timedelta

from predrain.data.clock import Clock
from predrain.data.ids import HostName
from predrain.data.reading import Reading
from predrain.service.config.settings import Settings
from predrain.service.config.state_directory import StateDir
from predrain.service.doctor.finding import TOLERATED, Finding
from predrain.service.runtime.service_lease import ServiceRole

SPOOLED = timedelta(minutes=10)
"""A reading that is delivered later than this had waited in the collector's spool."""
NAMED = 5


def check_service(settings: Settings, _: Clock) -> Iterator[Finding]:
    """Check whether the service answers, whether readings are fresh, and whether hosts deliver under a wrong name."""
    from predrain.service.notifications.cause import AlertCauseKind
    from predrain.service.terminal.service_connection import CliClient, NotRunning

    try:
        client = CliClient.from_settings(settings)
        status = client.get("status")
    except NotRunning as none:
        held = StateDir(settings.service.state).find_service_url() is not None
        yield Finding("service", "wrong" if held else "note", str(none))
        return
    readings = status["readings"]
    told = f"{status['controller']}; {readings['fresh']} of {readings['total']} disks were read in time"
    yield Finding("service", "ok" if readings["fresh"] == readings["total"] else "note", told)
    if status["service"]["role"] != ServiceRole.ALONE:
        known = status["service"]["active"] is not None
        yield Finding("active service", "ok" if known else "wrong", status["service"]["sentence"].rstrip("."))
    for cause in client.get("causes")["items"]:
        if cause["kind"] == AlertCauseKind.HOST_MISMATCH:
            yield Finding("enrolment", "wrong", f"{cause['points'][0]['sentence']} {cause['action']}")


def check_collectors(settings: Settings, clock: Clock) -> Iterator[Finding]:
    """Find hosts that are silent, that deliver late, or whose clocks are ahead."""
    from predrain.service.storage.backends import standing_store

    with standing_store(settings) as store:
        newest = _find_newest_readings(store.latest_readings().values()) if store is not None else {}
    if not newest:
        told = "no host has delivered a reading; see docs/how-to/install.md for the collector"
        yield Finding("collectors", "note", told)
        return
    now = clock.now()
    stale = timedelta(hours=2 * settings.forecast.reading_interval_hours)
    silent = sorted(host for host, one in newest.items() if now - one.received_at > stale)
    late = sorted(
        host
        for host, one in newest.items()
        if host not in silent and one.received_at - one.taken_at > SPOOLED
    )
    ahead = sorted(host for host, one in newest.items() if one.taken_at - one.received_at > TOLERATED)
    if silent:
        cure = "look at predrain-collector there (journalctl -u predrain-collector)"
        yield Finding(
            "collectors",
            "wrong",
            f"{_format_host_count(silent, len(newest))} delivered nothing for {stale}: {cure}",
        )
    if late:
        told = (
            f"{_format_host_count(late, len(newest))} deliver what waited in their spools; it ends by itself"
        )
        yield Finding("collectors", "note", told)
    if ahead:
        told = f"{_format_host_count(ahead, len(newest))} are ahead of this machine: let them follow a time server"
        yield Finding("clock, hosts", "wrong", told)
    if not (silent or late or ahead):
        yield Finding("collectors", "ok", f"{len(newest)} hosts deliver in time")


def _find_newest_readings(readings: Iterable[Reading]) -> Mapping[HostName, Reading]:
    """Return the newest reading of each host."""
    newest: dict[HostName, Reading] = {}
    for one in readings:
        if one.host not in newest or newest[one.host].received_at < one.received_at:
            newest[one.host] = one
    return newest


def _format_host_count(hosts: Sequence[str], of: int) -> str:
    more = f" and {len(hosts) - NAMED} more" if len(hosts) > NAMED else ""
    return f"{len(hosts)} of {of} hosts ({', '.join(hosts[:NAMED])}{more})"
