"""Commands that wait for the end of a drain."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from importlib import import_module

import pytest

from predrain.data.drain import DrainState
from predrain.service.cli import main
from tests.service.conftest import Place, Serve, Site
from tests.service.test_drains import World, made


@pytest.fixture
def world(place: Place) -> Iterator[World]:
    yield from made(place)


@pytest.fixture
def site(world: World, serve: Serve) -> Site:
    return serve(world.application)


def waited(world: World, site: Site, place: Place, halted_in: DrainState | None = None) -> int:
    """The exit code, while time passes, and a halt comes when the drain is in that state."""
    place.state.url.write_text(str(site.client.base_url))
    over = threading.Event()

    def time_passes() -> None:
        while not over.is_set():
            world.tick()
            if any(drain.state is halted_in for drain in world.application.store.drains()):
                world.application.store.set_halt("switch maintenance")

    passing = threading.Thread(target=time_passes)
    passing.start()
    try:
        return main(["drain", "apply", "osd.0", "--yes", "--wait", "--state", str(place.state.path)])
    finally:
        over.set()
        passing.join()


@pytest.mark.slow
def test_a_drain_asked_for_and_waited_for_ends_verified(
    world: World, site: Site, place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    assert waited(world, site, place) == 0
    assert ": verified" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize("held", [DrainState.PREPARING, DrainState.DRAINED], ids=str)
def test_a_command_that_waits_for_a_drain_reports_the_hold_in_any_state(
    world: World,
    site: Site,
    place: Place,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    held: DrainState,
) -> None:
    monkeypatch.setattr(import_module("predrain.service.cli.drain_progress"), "PATIENCE_SECONDS", 0.2)
    assert waited(world, site, place, halted_in=held) == 3
    assert "Halted: switch maintenance" in capsys.readouterr().err
