"""What a person is shown, approves and waits for at the command line."""

from __future__ import annotations

import time
from dataclasses import replace
from importlib import import_module
from types import SimpleNamespace

import pytest

from service.cli import main
from tests.service.conftest import Place, Site
from tests.service.test_drains import World, proposed, site, world  # noqa: F401


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
    drain = world.house.store.drain(proposed(site)["id"])
    assert drain is not None
    assert drain.plan is not None
    here = ["--state", str(place.state.path)]
    seen = explained(site, place, drain.id, capsys)
    fewer = replace(drain.plan, moves=drain.plan.moves[: len(drain.plan.moves) // 2])
    world.house.store.save_drain(replace(drain, plan=fewer, revision=drain.revision + 1))
    assert main([*seen, *here]) == 1
    assert "Nothing was started" in capsys.readouterr().err
    assert main([*explained(site, place, drain.id, capsys), *here]) == 0
    assert capsys.readouterr().out == f"{drain.id}: approved\n"


def test_who_approves_without_having_looked_is_shown_what_was_approved(
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


def test_who_waits_for_a_drain_reads_at_once_what_holds_it(
    world: World,  # noqa: F811
    site: Site,  # noqa: F811
    place: Place,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    command, passing = import_module("service.cli.drain"), lambda _: world.tick()
    monkeypatch.setattr(command, "PATIENCE_SECONDS", 3.0)
    monkeypatch.setattr(command, "time", SimpleNamespace(monotonic=time.monotonic, sleep=passing))
    place.state.url.write_text(str(site.client.base_url))
    assert main(["halt", "--why", "maintenance", "--state", str(place.state.path)]) == 0
    assert main(["drain", "apply", "osd.0", "--yes", "--wait", "--state", str(place.state.path)]) == 3
    waited = capsys.readouterr().err.partition("predrain:")[0]
    assert "held: Halted: maintenance." in waited
