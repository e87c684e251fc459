"""Which disk stands in a slot, which stood there before, and what became of each."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from predrain.data.ids import DeviceId, HostName, OsdId
from predrain.data.life_cycle import LifeChange, LifeEvidence, LifeSource, LifeState, RetiredWhy
from predrain.data.outcome import DriveFate, Outcome
from predrain.service.app.life_cycle_schedule import keep_lives
from predrain.service.cli import main
from predrain.service.fleet.slot_history import find_stays
from tests.service.conftest import Place, Site, smart_reading
from tests.service.test_disk_lives import NEW, OLD, put_under_osd_0, replace_disk
from tests.service.test_drains import World, site, world
from tests.service.test_worker import work

__all__ = ["site", "world"]
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
HERE = LifeChange(
    OLD, NOON, LifeState.IN_SERVICE, LifeSource.COLLECTOR, LifeEvidence.READING, host=HostName("h"),
    osds=(OsdId(3),),
)  # fmt: skip
FAILED = replace(HERE, at=NOON + HOUR, state=LifeState.FAILED)
REPLACED = replace(HERE, at=NOON + 2 * HOUR, state=LifeState.RETIRED, why=RetiredWhy.REPLACED, successor=NEW)
ELSEWHERE = replace(HERE, at=NOON + 3 * HOUR, osds=(OsdId(4),))
BACK = replace(HERE, at=NOON + 4 * HOUR)


@pytest.mark.parametrize(
    ("changes", "stays"),
    [
        ([], []),
        ([HERE], [(NOON, None, 1)]),
        ([HERE, FAILED], [(NOON, None, 2)]),
        ([HERE, FAILED, REPLACED], [(NOON, REPLACED.at, 3)]),
        ([REPLACED], [(None, REPLACED.at, 1)]),
        ([HERE, ELSEWHERE], [(NOON, ELSEWHERE.at, 1)]),
        ([HERE, ELSEWHERE, BACK], [(NOON, ELSEWHERE.at, 1), (BACK.at, None, 1)]),
        ([ELSEWHERE], []),
    ],
    ids=["nothing", "there", "failed", "replaced", "before the record", "moved", "came back", "never"],
)
def test_a_disk_stands_in_its_slot_until_it_is_retired_or_stands_elsewhere(
    changes: list[LifeChange], stays: list[tuple[datetime | None, datetime | None, int]]
) -> None:
    found = find_stays(OsdId(3), changes)
    assert [(stay.since, stay.until, len(stay.changes)) for stay in found] == stays


def test_a_slot_names_its_disk_and_what_became_of_the_one_before(world: World, site: Site) -> None:
    replace_disk(world)
    told = site.client.get("/api/v1/slots/0").json()
    assert (told["osd"], told["device"]) == (0, NEW)
    now, before = told["disks"]
    assert (now["device"], now["until"], now["state"]) == (NEW, None, site.client.get(
        f"/api/v1/devices/{NEW}"
    ).json()["state"])  # fmt: skip
    assert (before["device"], before["state"], before["severity"]) == (OLD, "retired", None)
    assert before["until"] == before["changes"][0]["at"]
    assert before["changes"][0]["sentence"] == f"It was replaced: {NEW} stands in its slot."


def test_a_slot_is_told_by_what_is_not_written_down_yet(world: World, site: Site) -> None:
    replace_disk(world)
    world.application.record_outcome(Outcome(NEW, world.application.clock.now(), DriveFate.FAILED, "jo"))
    assert not [
        one for one in world.application.store.read_life_changes(device=NEW) if one.state is LifeState.FAILED
    ]
    (now, _) = site.client.get("/api/v1/slots/0").json()["disks"]
    assert (now["state"], now["until"], now["changes"][0]["subject"]) == ("failed", None, "jo")


def test_an_unknown_slot_is_refused_with_where_to_look(site: Site) -> None:
    answer = site.client.get("/api/v1/slots/4711")
    assert (answer.status_code, answer.json()["listed_at"]) == (404, "/api/v1/osds")
    assert site.client.get("/api/v1/slots/osd.0").status_code == 422


def test_the_command_line_tells_the_story_of_a_slot(
    world: World,
    site: Site,
    place: Place,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    replace_disk(world)
    monkeypatch.setenv("COLUMNS", "200")
    place.state.url.write_text(str(site.client.base_url))
    at = ["--state", str(place.state.path)]
    assert main(["disks", "--slot", "osd.0", "--json", *at]) == 0
    assert json.loads(capsys.readouterr().out)["device"] == NEW
    assert main(["disks", "--slot", "0", *at]) == 0
    told = capsys.readouterr().out
    assert told.startswith(f"{NEW} stands in the slot of osd.0\n")
    assert f"It was replaced: {NEW} stands in its slot." in told
    assert main(["disks", "--slot", "stor-1", *at]) == 1
    assert "give osd.12" in capsys.readouterr().err


def test_every_disk_that_is_listed_can_be_opened(world: World, site: Site) -> None:
    """Also one that the cluster named, that nobody ever read, and that is gone again."""
    world.tick(5)
    world.application.ingest([smart_reading("A", world.application.clock.now())])
    work(world.application)
    put_under_osd_0(world.application, DeviceId("NEVER_READ"))
    put_under_osd_0(world.application, OLD)
    keep_lives(world.application)
    listed = {one["device"] for one in site.client.get("/api/v1/devices").json()["items"]}
    assert "NEVER_READ" in listed
    for device in listed:
        assert site.client.get(f"/api/v1/devices/{device}").status_code == 200, device
