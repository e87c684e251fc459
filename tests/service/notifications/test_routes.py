"""Routes and silences by rack, host and severity, over causes of several racks."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from predrain.service.notifications import find_alert_causes
from predrain.service.notifications.cause import AlertCause, AlertSnapshot, CausePart, Severity
from predrain.service.notifications.message_route import MessageRoute
from predrain.service.notifications.silences import Silence, preview_silence
from tests.service.notifications.snapshots import NOW, Fleet
from tests.service.notifications.test_heat import heated

HALT = CausePart("halted", "maintenance")


def hot_racks() -> tuple[AlertSnapshot, AlertCause, str]:
    """Return the snapshot of forty hot disks on four hosts in two racks, their cause, and the name of one rack."""
    snapshot = heated(dict.fromkeys(range(40), 60), racks=2)
    cause = next(one for one in find_alert_causes(snapshot) if one.key == "hot")
    return snapshot, cause, sorted(set(snapshot.fleet.racks_of_hosts().values()))[0]


def test_each_point_has_the_rack_of_its_host() -> None:
    snapshot, cause, _ = hot_racks()
    racks = snapshot.fleet.racks_of_hosts()
    assert {(point.host, point.rack) for point in cause.points} == set(racks.items())


def test_a_route_by_rack_takes_the_points_of_that_rack_alone() -> None:
    snapshot, cause, rack = hot_racks()
    route = MessageRoute(racks=(rack,))
    taken = [point for point in cause.points if route.takes(cause, point)]
    hosts = {host for host, name in snapshot.fleet.racks_of_hosts().items() if name == rack}
    assert {point.host for point in taken} == hosts
    assert 0 < len(taken) < len(cause.points)


@pytest.mark.parametrize(
    ("route", "takes"),
    [
        (MessageRoute(), True),
        (MessageRoute(hosts=("*",), racks=("*",)), True),
        (MessageRoute(hosts=("stor-*",)), False),
        (MessageRoute(racks=("a*",)), False),
        (MessageRoute(Severity.URGENT), False),
    ],
)
def test_a_point_without_a_host_goes_where_no_host_is_asked_for(route: MessageRoute, takes: bool) -> None:
    assert route.takes(AlertCause("halted", "a halt", (HALT,), "", "/"), HALT) is takes


def test_a_cause_of_one_host_is_routed_by_it_where_its_points_name_none() -> None:
    point = CausePart("empty:d-1", "osd.3 is empty")
    cause = AlertCause("empty:stor-07", "1 disk can be swapped", (point,), "", "/", "stor-07")
    assert MessageRoute(hosts=("stor-07",)).takes(cause, point)
    assert not MessageRoute(hosts=("stor-08",)).takes(cause, point)


def test_a_silence_by_rack_covers_its_points_and_all_of_its_disks_also_healthy_ones() -> None:
    snapshot, _, rack = hot_racks()
    hosts = {host for host, name in snapshot.fleet.racks_of_hosts().items() if name == rack}
    found = preview_silence(Silence("", NOW, "", "", rack=rack), snapshot, ())
    assert found.points == ()
    assert set(found.disks) == {one.device for one in snapshot.fleet.readings.values() if one.host in hosts}


def test_a_silence_of_notices_leaves_what_becomes_urgent() -> None:
    silence = Silence("", NOW, "", "", host="stor-*", severity=Severity.NOTICE)
    points = [CausePart("disk:x", "x", severity, "stor-07") for severity in Severity]
    cause = AlertCause("disks:host:stor-07", "x", tuple(points), "", "/", "stor-07")
    assert [silence.covers(cause, point) for point in points] == [True, False]


PATTERNS = st.sampled_from(["", "*", "stor-0*", "stor-00", "nothing"])


@given(
    host=PATTERNS, model=st.sampled_from(["", "ST4000*", "X"]), severity=st.none() | st.sampled_from(Severity)
)
def test_a_preview_has_the_points_that_the_silence_covers_and_at_least_their_disks(
    host: str, model: str, severity: Severity | None
) -> None:
    fleet = Fleet()
    fleet.sicken(3, 13)
    snapshot = fleet.snapshot()
    causes = find_alert_causes(snapshot)
    silence = Silence("", NOW, "", "", host=host, model=model, severity=severity)
    found = preview_silence(silence, snapshot, causes)
    covered = [(cause, point) for cause in causes for point in cause.points if silence.covers(cause, point)]
    assert list(found.points) == covered
    assert {point.name.partition(":")[2] for _, point in covered} <= set(found.disks)
    if severity is not None:
        assert {f"disk:{device}" for device in found.disks} <= {point.name for _, point in covered}
