"""`predrain policy preview` replays what was forecast here at other costs of a failure, and changes nothing."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest

from predrain.actions.core.drain_policy import Policy
from predrain.data.clock import SystemClock
from predrain.data.history import EPOCH
from predrain.data.ids import DeviceId
from predrain.data.outcome import DriveFate, Outcome
from predrain.data.outlook import Status
from predrain.data.scorebook import Scorebook, ScorebookLine
from predrain.data.store.sqlite_store import SqliteStore
from predrain.service.cli import main
from predrain.service.forecasting.bundle_choice import BundledForecaster
from predrain.service.forecasting.policy_preview import PolicyPreviewer, PreviewState
from tests.service.conftest import Place, smart_reading

DAYS = 80
DISKS = 40
Run = Callable[..., int]


@pytest.fixture
def run(place: Place) -> Run:
    return lambda *words: main(["policy", "preview", "--state", str(place.state.path), *words])


@pytest.fixture
def kept(place: Place) -> Path:
    """Forecasts of forty disks over eighty days; one shows its death for twenty days, another dies in silence."""
    now = SystemClock().now()
    today = (now.date() - EPOCH).days
    with (
        closing(SqliteStore(place.state.store)) as store,
        closing(Scorebook(place.state.scorebook)) as scorebook,
    ):
        lines: list[ScorebookLine] = []
        for number in range(DISKS):
            reading = smart_reading(f"{number:03}", now - timedelta(days=40 if number < 2 else 0))
            store.add_readings([reading])
            for day in range(today - DAYS, today - (40 if number < 2 else 0)):
                p = 0.6 if number == 0 and day > today - 60 else 0.001
                lines.append(ScorebookLine(reading.device, day, "ST4000DM000", Status.GOOD, p / 4, p / 2, p))
        for number in range(2):
            store.add_outcome(
                Outcome(
                    DeviceId(f"ST4000DM000_{number:03}"),
                    now - timedelta(days=40),
                    DriveFate.FAILED,
                    "a person",
                )
            )
        scorebook.write(BundledForecaster.load().fingerprint, lines)
    return place.state.path


@pytest.mark.slow
def test_a_failure_that_was_foretold_is_moved_at_the_set_cost_and_one_in_silence_is_rebuilt(
    run: Run, kept: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("--json", "--days", "85") == 0
    told = json.loads(capsys.readouterr().out)
    (here,) = [row for row in told["rows"] if row["current"]]
    assert (told["disks"], told["failures"]) == (DISKS, 2)
    assert (here["in_time"], here["needless"]) == (1, 0)
    assert 0 < here["rebuilt_bytes"] == pytest.approx(here["moved_bytes"], rel=0.01)
    assert here["cost_bytes"] == pytest.approx(
        here["moved_bytes"] + here["failure_cost"] * here["rebuilt_bytes"]
    )
    assert [row["failure_cost"] for row in told["rows"]] == sorted(
        row["failure_cost"] for row in told["rows"]
    )


@pytest.mark.slow
def test_the_table_marks_the_setting_that_is_set(
    run: Run, kept: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("--days", "85") == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if "now:" in line]
    assert line.split()[:2] == ["now:", "10"]


def ask_until_made(previewer: PolicyPreviewer, place: Place, policy: Policy | None = None) -> PreviewState:
    """Request the preview until none is being made any more, and return the previewer's state."""
    with (
        closing(SqliteStore(place.state.store)) as store,
        closing(Scorebook(place.state.scorebook)) as scorebook,
    ):
        until = time.monotonic() + 120
        while time.monotonic() < until:
            state = previewer.request_preview(
                85, place.forecaster, scorebook, store, policy or Policy(), SystemClock().now()
            )
            if not state.running:
                return state
            time.sleep(0.05)
    raise AssertionError("the preview was never made")


@pytest.mark.slow
def test_a_service_makes_the_same_preview_beside_its_work_and_keeps_it(
    run: Run, kept: Path, place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("--json", "--days", "85") == 0
    told = json.loads(capsys.readouterr().out)
    previewer = PolicyPreviewer()
    made = ask_until_made(previewer, place)
    assert (made.trouble, made.days) == (None, 85)
    assert json.loads(msgspec.json.encode(made.preview)) == told
    assert ask_until_made(previewer, place) is made
    assert ask_until_made(previewer, place, Policy(failure_cost=20.0)).preview != made.preview


@pytest.mark.slow
def test_a_replay_that_the_kernel_kills_is_told_and_the_service_stays(
    kept: Path, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("predrain.service.forecasting.policy_preview._compute_preview", _die)
    made = ask_until_made(PolicyPreviewer(), place)
    assert made.preview is None
    assert made.trouble is not None
    assert "ended without a result" in made.trouble


def _die(*_: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_service_that_has_forecast_nothing_says_why_it_has_no_preview(place: Place) -> None:
    made = ask_until_made(PolicyPreviewer(), place)
    assert made.preview is None
    assert made.trouble is not None
    assert "nothing was forecast here yet" in made.trouble


def test_a_service_without_forecasts_says_what_it_needs(
    run: Run, place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run() == 1
    assert "holds no forecasts yet; start the service there" in capsys.readouterr().err


@pytest.mark.slow
def test_days_without_a_forecast_say_so(run: Run, kept: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with closing(Scorebook(kept / "scorebook.sqlite")) as scorebook:
        scorebook.prune(10**6)
    assert run() == 1
    assert "nothing was forecast here yet" in capsys.readouterr().err
