"""The causes that a person may need to know. One cause may cover any number of disks."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from predrain.actions.core.drain_policy import Mode
from predrain.actions.simulator import SimulatedCluster
from predrain.data.drain import Drain, DrainState, Intent, Progress
from predrain.data.halt_state import HaltAuthor
from predrain.data.ids import HostName, OsdId
from predrain.data.outlook import Reason, Status
from predrain.data.reading import Unreadable
from predrain.data.unreadable import UnreadableCause
from predrain.service.notifications import find_alert_causes
from predrain.service.notifications.cause import CLUSTER_KEYS, AlertCauseKind, ForecastConcern, Severity
from predrain.service.notifications.disk_causes import describe_drain_activity
from predrain.service.notifications.silences import Silence
from tests.actions.made import calm_view, changed_osd, wide_spec
from tests.service.notifications.snapshots import NOW, Fleet, device

FULL = "osd.4 is 91 % full."
CRC = Reason("crc-rose", "CRC errors rose.", "crc_errors")


def keys(fleet: Fleet) -> list[str]:
    return [cause.key for cause in find_alert_causes(fleet.snapshot())]


def a_drain(state: DrainState, *, ago: timedelta = timedelta(hours=1), **changes: object) -> Drain:
    at = NOW - ago
    drain = Drain("D-1", device(3), (OsdId(3),), state, Intent.REPLACE, "predrain", "bad", at, at)
    return replace(drain, **changes)  # type: ignore[arg-type]


def test_a_healthy_fleet_has_no_cause() -> None:
    assert keys(Fleet()) == []


def test_a_bad_disk_is_told_with_why_how_sure_and_what_to_do() -> None:
    fleet = Fleet()
    fleet.sicken(3)
    (cause,) = find_alert_causes(fleet.snapshot())
    assert (cause.key, cause.severity, cause.host) == ("disks:host:stor-00", Severity.URGENT, "stor-00")
    assert cause.title == f"{device(3)} on stor-00 is bad"
    assert (
        "Pending sectors rose on 5 of the last 7 days, 0 to 48. 68 % within 30 days" in cause.points[0].line
    )
    assert cause.todo == "Drain it now and replace the disk."


def test_a_disk_that_fell_from_bad_to_warning_can_wait_whatever_was_announced_before() -> None:
    fleet = Fleet()
    fleet.sicken(3, ago=timedelta(days=30))
    fleet.announced = dict(fleet.outlooks)
    fleet.sicken(3, status=Status.WARNING)
    (cause,) = find_alert_causes(fleet.snapshot())
    assert (cause.severity, cause.title) == (Severity.NOTICE, f"{device(3)} on stor-00 is warning")


def test_a_disk_that_fell_from_bad_is_urgent_until_enough_readings_say_so() -> None:
    fleet = Fleet()
    fleet.sicken(3, status=Status.WARNING)
    fleet.outlooks[device(3)] = replace(fleet.outlooks[device(3)], held=Status.BAD)
    (cause,) = find_alert_causes(fleet.snapshot())
    assert (cause.severity, cause.title) == (Severity.URGENT, f"{device(3)} on stor-00 is bad")


def test_disks_of_one_host_are_one_cause_the_worst_first() -> None:
    fleet = Fleet()
    fleet.sicken(3, status=Status.WARNING)
    fleet.sicken(7, reason=CRC)
    (cause,) = find_alert_causes(fleet.snapshot())
    assert [point.name for point in cause.points] == [f"disk:{device(7)}", f"disk:{device(3)}"]
    assert cause.title == "2 disks on stor-00 are bad (1) or warning (1)"


def test_three_hundred_disks_of_one_model_are_one_cause() -> None:
    fleet = Fleet(disks=450)
    fleet.sicken(*range(0, 450, 2)[:300])
    (cause,) = find_alert_causes(fleet.snapshot())
    assert cause.model == "ST4000DM000"
    assert cause.title == "225 of 450 disks of model ST4000DM000 on 45 hosts are bad"
    assert "not drained by themselves" in cause.todo


def test_a_firmware_that_the_sick_share_and_others_lack_is_named() -> None:
    fleet = Fleet(firmware=dict.fromkeys((1, 11, 21, 31), "CC43"))
    fleet.sicken(1, 11, 21, 31)
    (cause,) = find_alert_causes(fleet.snapshot())
    assert cause.title == "4 of 40 disks of model ST4000DM000 on 4 hosts are bad, 4 of 4 with firmware CC43"
    assert cause.todo.startswith("Look at firmware CC43: of 36 with another one 0 are.")


def test_a_firmware_that_well_disks_have_as_often_is_not_named() -> None:
    fleet = Fleet(firmware=dict.fromkeys(range(30), "CC43"))
    fleet.sicken(1, 11, 21, 22)
    (cause,) = find_alert_causes(fleet.snapshot())
    assert "CC43" not in cause.title + cause.todo


def test_disks_that_turned_over_months_are_told_by_host() -> None:
    fleet = Fleet()
    fleet.sicken(1, 11, 21, 31, ago=timedelta(days=3))
    assert keys(fleet) == [f"disks:host:stor-0{n}" for n in range(4)]


def test_disks_that_are_sick_of_different_things_are_not_one_cause() -> None:
    fleet = Fleet()
    for number, code in zip((1, 11, 21, 31), "abcd", strict=True):
        fleet.sicken(number, reason=Reason(code, "Something."))
    assert len(keys(fleet)) == 4


def test_many_disks_of_a_model_that_turn_within_a_day_are_one_cause_whatever_their_reasons() -> None:
    fleet = Fleet(disks=450)
    for number in range(0, 300, 5):
        fleet.sicken(number, reason=Reason(f"reason-{number % 7}", "Something."))
    assert keys(fleet) == ["disks:model:ST4000DM000"]


def test_as_many_of_a_large_fleet_in_a_day_are_what_is_usual() -> None:
    fleet = Fleet(disks=2_000)
    for number in range(0, 2_000, 100):
        fleet.sicken(number, reason=Reason(f"reason-{number}", "Something."))
    assert len(keys(fleet)) == 20


def test_a_disk_that_was_drained_waits_to_be_swapped_and_is_sick_no_more() -> None:
    fleet = Fleet(drains=(a_drain(DrainState.VERIFIED),))
    fleet.sicken(3)
    snapshot, view = fleet.snapshot(), changed_osd(calm_view(), 3, device=device(3))
    (cause,) = find_alert_causes(replace(snapshot, fleet=replace(snapshot.fleet, view=view)))
    host = view.osds[OsdId(3)].host
    assert (cause.key, cause.title) == (f"empty:{host}", f"1 disk on {host} can be swapped")


def test_a_disk_whose_name_is_not_known_is_told_by_its_osd_alone() -> None:
    drain = a_drain(DrainState.VERIFIED)
    snapshot = Fleet(drains=(replace(drain, device=None),)).snapshot()
    (cause,) = find_alert_causes(replace(snapshot, fleet=replace(snapshot.fleet, view=calm_view())))
    assert cause.points[0].line.startswith(f"osd.{drain.osds[0]}: all of its data is elsewhere")


def test_a_disk_that_was_filled_is_not_to_be_swapped_and_is_told_when_it_sickens() -> None:
    fleet = Fleet(drains=(a_drain(DrainState.VERIFIED, intent=Intent.FILL),))
    snapshot, view = fleet.snapshot(), changed_osd(calm_view(), 3, device=device(3))
    assert find_alert_causes(replace(snapshot, fleet=replace(snapshot.fleet, view=view))) == ()
    fleet.sicken(3)
    snapshot = fleet.snapshot()
    (cause,) = find_alert_causes(replace(snapshot, fleet=replace(snapshot.fleet, view=view)))
    assert "Fill D-1 is done: the disk is filled." in cause.points[0].line


def test_disks_of_one_rack_that_are_sick_for_one_reason_are_one_cause() -> None:
    models = {number: f"M{number}" for number in range(6)}
    fleet, view = Fleet(models=models), SimulatedCluster(wide_spec(hosts=6, per_host=1, racks=1), 1).view()
    fleet.sicken(*range(6))
    snapshot = fleet.snapshot()
    readings = {
        one: replace(reading, host=HostName(f"h{number}"))
        for number, (one, reading) in enumerate(snapshot.fleet.readings.items())
    }
    for number in range(6):
        view = changed_osd(view, number, device=device(number))
    (cause,) = find_alert_causes(
        replace(snapshot, fleet=replace(snapshot.fleet, view=view, readings=readings))
    )
    assert cause.title.startswith("6 disks on 6 hosts of rack ")


def test_a_host_without_readings_is_one_cause_and_its_disks_are_none() -> None:
    fleet = Fleet(silent={HostName("stor-02"): NOW - timedelta(hours=5)})
    fleet.unread[device(21)] = Unreadable(NOW - timedelta(hours=6), "no answer within 30 s")
    (cause,) = find_alert_causes(fleet.snapshot())
    assert (cause.key, cause.severity) == ("silent:stor-02", Severity.NOTICE)
    assert "20 Nov 22:14 UTC" in cause.points[0].line


def test_after_a_start_hosts_have_time_to_deliver() -> None:
    fleet = Fleet(silent={HostName("stor-02"): NOW - timedelta(hours=5)}, settled=False)
    assert keys(fleet) == []


def test_a_host_that_was_renamed_and_not_enrolled_anew_is_told_as_that_and_not_as_silent() -> None:
    own, named = HostName("stor-02"), HostName("stor-99")
    fleet = Fleet(silent={own: NOW - timedelta(hours=5)}, host_mismatches={own: named})
    (cause,) = find_alert_causes(fleet.snapshot())
    assert (cause.key, cause.title) == ("misnamed:stor-02", "stor-02 calls itself stor-99")
    assert "wait in its spool" in cause.points[0].line
    assert "predrain token enrol stor-99" in cause.todo


def test_most_hosts_silent_at_once_is_one_urgent_cause() -> None:
    fleet = Fleet(silent={HostName(f"stor-0{n}"): NOW - timedelta(hours=3) for n in range(3)})
    (cause,) = find_alert_causes(fleet.snapshot())
    assert (cause.key, cause.severity, len(cause.points)) == ("silent", Severity.URGENT, 3)
    assert cause.title == "3 of 4 hosts are silent"


def test_more_than_three_silent_hosts_are_one_cause_however_many_others_there_are() -> None:
    fleet = Fleet(disks=400, silent={HostName(f"stor-0{n}"): NOW - timedelta(hours=3) for n in range(4)})
    (cause,) = find_alert_causes(fleet.snapshot())
    assert (cause.key, cause.title) == ("silent", "4 of 40 hosts are silent")


def test_unreadable_disks_on_more_than_three_hosts_are_one_cause() -> None:
    fleet = Fleet()
    for number in range(4):
        fleet.unread[device(10 * number)] = Unreadable(NOW - timedelta(hours=6), "no answer within 30 s")
    (cause,) = find_alert_causes(fleet.snapshot())
    assert (cause.key, cause.title) == ("unreadable", "4 disks on 4 hosts cannot be read")


def test_unreadable_disks_are_told_by_host_and_hosts_without_smartctl_together() -> None:
    fleet = Fleet()
    fleet.unread[device(3)] = Unreadable(NOW - timedelta(hours=6), "no answer within 30 s")
    for number in (11, 21):
        fleet.unread[device(number)] = Unreadable(NOW, "no such file", UnreadableCause.TOOL_MISSING)
    mute, unable = find_alert_causes(fleet.snapshot())
    assert (unable.key, len(unable.points)) == ("unreadable:stor-00", 1) or (mute.key, len(mute.points)) == (
        "unable",
        2,
    )
    assert {mute.key, unable.key} == {"unable", "unreadable:stor-00"}


def test_halt_broken_parts_and_doubts_are_causes() -> None:
    fleet = Fleet(
        halted="maintenance of rack 4",
        broken=(ForecastConcern("worker", "PostgreSQL at db does not answer."),),
        doubts=(
            ForecastConcern("drift", "Drives of X no longer look like those trained on.", "Train again."),
        ),
    )
    assert keys(fleet) == ["part:worker", "forecast:drift", "halted"]


def test_texts_in_the_cluster_that_are_not_believed_are_told_with_the_command_that_shows_them() -> None:
    (told,) = find_alert_causes(
        Fleet(
            broken=(ForecastConcern(CLUSTER_KEYS, "The text predrain/steps carries no signature."),)
        ).snapshot()
    )
    assert told.title == "Texts that predrain keeps in the cluster are not believed"
    assert "`predrain ceph adopt`" in told.todo


def test_a_cluster_that_does_not_answer_is_not_told_as_a_halt_to_be_lifted() -> None:
    unread = "whether the cluster says halt cannot be read (no answer from the cluster)"
    (away,) = find_alert_causes(Fleet(halted=unread, halt_author=HaltAuthor.NOBODY).snapshot())
    assert away.title == "The cluster does not answer"
    assert "unhalt" not in away.todo


@pytest.mark.parametrize(
    ("state", "ago", "expected"),
    [
        (DrainState.FAILED, timedelta(hours=1), ["drains:failed urgent"]),
        (DrainState.HOLDING, timedelta(hours=23), []),
        (DrainState.HOLDING, timedelta(hours=25), ["drains:held notice"]),
        (DrainState.DRAINING, timedelta(hours=1), ["drains:still notice"]),
    ],
)
def test_a_drain_is_told_when_it_needs_a_person(
    state: DrainState, ago: timedelta, expected: list[str]
) -> None:
    fleet = Fleet(drains=(a_drain(state, ago=ago, held_by=("osd.4 is 91 % full.",)),))
    assert [f"{cause.key} {cause.severity}" for cause in find_alert_causes(fleet.snapshot())] == expected


def test_a_drain_that_stands_still_is_told_with_what_it_waits_for_until_something_moves() -> None:
    why = "Nothing has moved for 2 h: the PGs that move must arrive first; 1.f is backfill_toofull+remapped."
    drain = a_drain(DrainState.DRAINING, held_by=(why,), progress=Progress(9, 4))
    (cause,) = find_alert_causes(Fleet(drains=(drain,)).snapshot())
    (point,) = cause.points
    assert cause.title == "1 drain stands still"
    assert point.line == f"osd.3: Drain D-1 stands still. {why}"
    assert "room" in cause.todo
    assert keys(Fleet(drains=(replace(drain, held_by=()),))) == []


@pytest.mark.parametrize(
    ("state", "mode", "by", "held", "said"),
    [
        (DrainState.PROPOSED, Mode.PROPOSE, "predrain", "", "Drain D-1 waits for your approval."),
        (DrainState.PROPOSED, Mode.ACT, "predrain", "", "Drain D-1 is about to begin."),
        (DrainState.PROPOSED, Mode.ACT, "ada", "", "Drain D-1 waits for your approval."),
        (DrainState.PROPOSED, Mode.ACT, "predrain", FULL, f"Drain D-1 waits: {FULL}"),
        (DrainState.APPROVED, Mode.ACT, "ada", FULL, f"Drain D-1 waits: {FULL}"),
        (DrainState.DRAINING, Mode.ACT, "predrain", "", "Drain D-1 runs: 4 of 9 PGs are away."),
        (DrainState.DRAINING, Mode.ACT, "ada", FULL, f"Drain D-1 stands still. {FULL}"),
        (DrainState.HOLDING, Mode.ACT, "predrain", FULL, f"Drain D-1 holds: {FULL}"),
    ],
)
def test_the_activity_of_a_drain_is_described_in_a_sentence(
    state: DrainState, mode: Mode, by: str, held: str, said: str
) -> None:
    drain = a_drain(state, asked_by=by, held_by=(held,) if held else (), progress=Progress(9, 4))
    assert describe_drain_activity(drain, mode) == said


@pytest.mark.parametrize(
    ("state", "said"),
    [
        (DrainState.DRAINING, "Quarantine D-1 is in force: 4 of 9 PGs have another primary."),
        (DrainState.CANCELLING, "Quarantine D-1 is being released."),
        (DrainState.CANCELLED, "Quarantine D-1 is released."),
    ],
)
def test_a_quarantine_reports_pgs_with_another_primary_and_no_moved_pgs(state: DrainState, said: str) -> None:
    drain = a_drain(state, intent=Intent.QUARANTINE, progress=Progress(9, 4))
    assert describe_drain_activity(drain, Mode.ACT) == said


def test_every_state_of_a_drain_has_its_sentence() -> None:
    assert all(
        describe_drain_activity(a_drain(state, ended_why="no room"), Mode.ACT).startswith("Drain D-1 ")
        for state in DrainState
    )


def test_a_disk_that_its_host_reads_no_more_was_swapped_and_is_told_no_more() -> None:
    fleet = Fleet(pulled={device(3): NOW - timedelta(hours=3)})
    fleet.sicken(3)
    assert keys(fleet) == []


def test_a_disk_whose_end_was_told_is_told_no_more_until_it_answers_again() -> None:
    fleet = Fleet(ended={device(3): NOW, device(5): NOW})
    fleet.sicken(3)
    fleet.unread[device(5)] = Unreadable(NOW - timedelta(hours=6), "/dev/sdf is listed no more")
    assert keys(fleet) == []
    fleet.ended = {device(3): NOW - timedelta(hours=1)}
    assert keys(fleet) == ["disks:host:stor-00", "unreadable:stor-00"]


def test_a_bad_disk_of_a_silent_host_is_still_bad() -> None:
    fleet = Fleet(silent={HostName("stor-00"): NOW - timedelta(hours=5)})
    fleet.sicken(3)
    assert keys(fleet) == ["disks:host:stor-00", "silent:stor-00"]


def test_a_disk_that_was_not_heard_of_for_a_week_is_told_no_more() -> None:
    fleet = Fleet(disks=1, silent={HostName("stor-00"): datetime(2026, 11, 1, tzinfo=NOW.tzinfo)})
    fleet.sicken(0)
    assert keys(fleet) == []


def unsilenced(fleet: Fleet, **pattern: str) -> set[str]:
    silence = Silence("s", NOW + timedelta(hours=8), "jo", "known", **pattern)
    return {
        point.name
        for cause in find_alert_causes(fleet.snapshot())
        for point in cause.points
        if not silence.covers(cause, point)
    }


def test_a_silence_of_hosts_covers_them_where_more_hosts_have_one_cause() -> None:
    fleet = Fleet(disks=200)
    fleet.silent = {HostName(f"stor-{n:02d}"): NOW - timedelta(hours=3) for n in range(5)}
    assert unsilenced(fleet, host="stor-0[0-3]") == {"silent:stor-04"}


def test_a_silence_of_a_model_covers_its_disks_whatever_they_are_told_by() -> None:
    fleet = Fleet(models={7: "WUH721818AL5204"})
    fleet.sicken(3, 7)
    assert unsilenced(fleet, model="ST4000*") == {f"disk:{device(7)}"}


def test_a_silence_of_a_host_covers_its_disks_where_a_model_is_told() -> None:
    fleet = Fleet(disks=200)
    fleet.sicken(*range(5, 45))
    assert unsilenced(fleet, host="stor-0[1-9]") == {f"disk:{device(n)}" for n in range(5, 10)}


def test_every_cause_that_is_found_has_its_kind() -> None:
    fleet = Fleet(
        halted="maintenance",
        broken=(ForecastConcern("worker", "It does not answer."),),
        doubts=(ForecastConcern("drift", "It drifts."),),
        host_mismatches={HostName("stor-02"): HostName("stor-99")},
    )
    fleet.sicken(1)
    found = {cause.kind for cause in find_alert_causes(fleet.snapshot())}
    assert found == {
        AlertCauseKind.HALTED,
        AlertCauseKind.BROKEN_PART,
        AlertCauseKind.FORECAST_DOUBT,
        AlertCauseKind.HOST_MISMATCH,
        AlertCauseKind.SICK_DISKS,
    }
