"""Drains at the command line: a person sees a plan, approves it and waits for the end."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from importlib import import_module
from types import SimpleNamespace

import pytest

from predrain.actions.core.messages import INTENT_TEXTS, describe_state
from predrain.data.drain import DrainState, Intent
from predrain.data.ids import OsdId
from predrain.service.access.requester import Requester, RequestSurface, parse_requester
from predrain.service.cli import main
from tests.service.conftest import Place, Site, week_of
from tests.service.test_drains import World, proposed, site, world  # noqa: F401
from tests.service.test_worker import work


def explained(at: Site, place: Place, drain: str, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """The words of the command that `explain` prints for approving what it shows."""
    place.state.url.write_text(str(at.client.base_url))
    capsys.readouterr()
    assert main(["drain", "explain", drain, "--state", str(place.state.path)]) == 0
    (line,) = [one for one in capsys.readouterr().out.splitlines() if one.startswith("to approve this plan:")]
    return line.partition(": predrain ")[2].split()


def test_the_command_line_approves_the_plan_that_it_showed_and_no_other(
    world: World,  # noqa: F811
    site: Site,  # noqa: F811
    place: Place,
    capsys: pytest.CaptureFixture[str],
) -> None:
    drain = world.application.store.drain(proposed(site)["id"])
    assert drain is not None
    assert drain.plan is not None
    here = ["--state", str(place.state.path)]
    seen = explained(site, place, drain.id, capsys)
    fewer = replace(drain.plan, moves=drain.plan.moves[: len(drain.plan.moves) // 2])
    world.application.store.save_drain(replace(drain, plan=fewer, revision=drain.revision + 1))
    assert main([*seen, *here]) == 1
    assert "Nothing was started" in capsys.readouterr().err
    assert main([*explained(site, place, drain.id, capsys), *here]) == 0
    assert capsys.readouterr().out == f"{drain.id}: approved\n"


def test_an_approval_without_a_previous_look_shows_the_approved_plan(
    site: Site,  # noqa: F811
    place: Place,
    capsys: pytest.CaptureFixture[str],
) -> None:
    drain = proposed(site)
    place.state.url.write_text(str(site.client.base_url))
    assert main(["drain", "approve", drain["id"], "--state", str(place.state.path)]) == 0
    told = capsys.readouterr().out
    assert f"in {drain['plan']['pgs']} PGs; takes about" in told
    assert told.endswith(f"{drain['id']}: approved\n")


def test_drain_apply_reports_one_line_per_target_with_the_service_the_request_and_the_answer(
    world: World,  # noqa: F811
    site: Site,  # noqa: F811
    place: Place,
    capsys: pytest.CaptureFixture[str],
) -> None:
    url = str(site.client.base_url)
    place.state.url.write_text(url)
    here = ["--state", str(place.state.path)]
    assert main(["drain", "apply", "osd.0", "osd.999", "--intent", "remove", "--yes", *here]) == 3
    (drain,) = world.application.store.drains()
    told = _list_said(capsys.readouterr().err)
    asked = f"predrain: asked the service at {url}"
    assert told[0] == f"{asked}: drain osd.0 for removal with approval; accepted as {drain.id}"
    assert told[1].startswith(
        f"{asked}: drain osd.999 for removal with approval; refused: 'osd.999' is neither"
    )


def test_a_program_reads_what_was_asked_and_whether_it_was_accepted_as_an_object(
    world: World,  # noqa: F811
    site: Site,  # noqa: F811
    place: Place,
    capsys: pytest.CaptureFixture[str],
) -> None:
    url = str(site.client.base_url)
    place.state.url.write_text(url)
    here = ["--json", "--state", str(place.state.path)]
    assert main(["drain", "apply", "osd.0", "osd.999", *here]) == 3
    (drain,) = world.application.store.drains()
    said = json.loads(capsys.readouterr().out)
    assert (said[0]["id"], said[0]["state"]) == (drain.id, "proposed")
    of = f"the service at {url}"
    accepted = {"asked": "drain osd.0", "of": of, "drain": drain.id, "refused": None, "accepted": True}
    assert said[0]["request"] == accepted
    assert (said[1]["request"]["accepted"], said[1]["request"]["drain"]) == (False, None)
    assert "'osd.999' is neither" in said[1]["request"]["refused"]
    assert main(["drain", "hand-over", drain.id, *here]) == 1
    said = json.loads(capsys.readouterr().out)
    assert (said["request"]["asked"], said["request"]["accepted"]) == (f"hand over {drain.id}", False)


def test_the_hand_over_command_reports_the_asked_service_and_its_answer(
    world: World,  # noqa: F811
    site: Site,  # noqa: F811
    place: Place,
    capsys: pytest.CaptureFixture[str],
) -> None:
    url = str(site.client.base_url)
    place.state.url.write_text(url)
    drain = world.application.store.drain(proposed(site)["id"])
    assert drain is not None
    here = ["--state", str(place.state.path)]
    asked = f"predrain: asked the service at {url}: hand over osd.0"
    assert main(["drain", "hand-over", "osd.0", *here]) == 1
    (refused,) = _list_said(capsys.readouterr().err)
    assert refused.startswith(f"{asked}; refused: ")
    assert refused.endswith(f" The drain is {drain.id}.")
    fill = replace(drain, state=DrainState.VERIFIED, intent=Intent.FILL, revision=drain.revision + 1)
    world.application.store.save_drain(fill)
    assert main(["drain", "hand-over", "osd.0", *here]) == 0
    assert _list_said(capsys.readouterr().err) == [f"{asked}; accepted as {drain.id}"]


def _list_said(stderr: str) -> list[str]:
    """Return the lines that the command wrote, without the log lines of the service in this process."""
    return [said for said in stderr.splitlines() if said.startswith("predrain: ")]


@pytest.mark.slow
def test_a_command_that_waits_for_a_drain_reports_the_hold_at_once(
    world: World,  # noqa: F811
    site: Site,  # noqa: F811
    place: Place,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    command, passing = import_module("predrain.service.cli.drain_progress"), lambda _: world.tick()
    monkeypatch.setattr(command, "PATIENCE_SECONDS", 3.0)
    monkeypatch.setattr(command, "time", SimpleNamespace(monotonic=time.monotonic, sleep=passing))
    place.state.url.write_text(str(site.client.base_url))
    assert main(["halt", "--reason", "maintenance", "--state", str(place.state.path)]) == 0
    assert main(["drain", "apply", "osd.0", "--yes", "--wait", "--state", str(place.state.path)]) == 3
    _, accepted, waited = capsys.readouterr().err.partition("; accepted as ")
    assert accepted
    waited = waited.partition("predrain:")[0]
    assert "held: Halted: maintenance." in waited


def test_the_command_line_names_its_own_list_for_a_drain_that_is_not_there(
    site: Site,  # noqa: F811
    place: Place,
    capsys: pytest.CaptureFixture[str],
) -> None:
    place.state.url.write_text(str(site.client.base_url))
    assert main(["drain", "explain", "osd.0-1", "--state", str(place.state.path)]) == 1
    told = capsys.readouterr().err
    assert "There is no drain osd.0-1. List them: predrain drain list" in told
    assert "/api/" not in told


def test_failed_reads_of_the_disk_and_lost_copies_stand_in_the_drains_picture(
    world: World,  # noqa: F811
    site: Site,  # noqa: F811
    place: Place,
    capsys: pytest.CaptureFixture[str],
) -> None:
    drain = world.application.store.drain(proposed(site)["id"])
    assert drain is not None
    said = "Ceph says OSD_TOO_MANY_REPAIRS: osd.0 had 12 reads repaired."
    view = world.application.fleet.view
    assert view is not None
    world.application.fleet.update_view(replace(view, read_errors={OsdId(0): (said,)}))
    (reading, *_) = week_of("A", world.application.clock.now())
    world.application.ingest([replace(reading, taken_at=world.application.clock.now(), kernel_errors=4)])
    work(world.application)
    progress = replace(drain.progress, moved_pgs=0, lost_pgs=2)
    world.application.store.save_drain(replace(drain, progress=progress, revision=drain.revision + 1))
    place.state.url.write_text(str(site.client.base_url))
    assert main(["drain", "explain", drain.id, "--state", str(place.state.path)]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert said in told
    assert "logged 4 I/O errors of the disk" in told
    assert "2 PGs lost a copy on the old disk before it was moved" in told


def test_every_name_of_a_requester_is_read_back_as_the_surface_and_person_that_it_was_made_of() -> None:
    for one in (
        Requester(RequestSurface.AUTOMATIC),
        Requester(RequestSurface.PAGE),
        Requester(RequestSurface.PAGE, "ada"),
        Requester(RequestSurface.COMMAND_LINE, "root"),
        Requester(RequestSurface.TOKEN, "grafana"),
    ):
        assert parse_requester(one.name) == one


def test_a_fill_is_told_in_its_own_words_from_its_state_to_its_end() -> None:
    assert describe_state(DrainState.DRAINING, Intent.FILL) == "filling"
    assert describe_state(DrainState.DRAINED, Intent.FILL) == "filled"
    assert describe_state(DrainState.HANDED_OVER, Intent.REPLACE) == "handed over"
    assert all("elsewhere" not in INTENT_TEXTS[intent].counted for intent in (Intent.FILL, Intent.QUARANTINE))


@pytest.mark.slow
def test_output_that_is_no_terminal_has_each_line_of_progress_whole_and_who_asked_once(
    world: World,  # noqa: F811
    site: Site,  # noqa: F811
    place: Place,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    command, passing = import_module("predrain.service.cli.drain_progress"), lambda _: world.tick()
    monkeypatch.setattr(command, "PATIENCE_SECONDS", 3.0)
    monkeypatch.setattr(command, "time", SimpleNamespace(monotonic=time.monotonic, sleep=passing))
    place.state.url.write_text(str(site.client.base_url))
    here = ["--state", str(place.state.path)]
    assert main(["halt", "--reason", "maintenance", *here]) == 0
    assert main(["drain", "apply", "osd.0", "--yes", "--wait", *here]) == 3
    assert "…" not in capsys.readouterr().err
    (drain,) = world.application.store.drains()
    assert main(["drain", "explain", drain.id, *here]) == 0
    first = " ".join(capsys.readouterr().out.partition(" of ")[0].split())
    assert first.count(drain.asked_by) == 1
