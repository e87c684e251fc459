"""Training hears what became of drives: confirmed ones are deaths, drained ones are censored, `until` holds."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from predrain.data.history import EPOCH
from predrain.data.ids import DeviceId
from predrain.data.lifespan import Lifespans, sources_of
from predrain.data.outcome import DriveFate, Outcome
from predrain.data.reported_endings import ReportedEnding
from predrain.data.store.sqlite_store import SqliteStore
from predrain.models.deploy.bundle_registry import Registry
from predrain.models.forecast.bundle import Bundle
from predrain.models.forecast.hazard import Recipe
from predrain.models.forecast.provenance import digest_histories
from predrain.models.forecast.training import train_forecaster
from predrain.service.cli import main
from predrain.service.cli.train_commands import read_statements
from tests.service.conftest import smart_reading

SAMPLES = Path(__file__).parents[1] / "data" / "drives"
DAILY, CHANGES, DRIVES = (SAMPLES / f"{name}.parquet" for name in ("daily", "changes", "drives"))
SMALL = Recipe(rounds=5, least=20)


@pytest.fixture(scope="module")
def lives() -> Lifespans:
    return sources_of([DAILY], threads=1)[0].lifespans


def leaving(lives: Lifespans, count: int) -> list[int]:
    """Drives that live to the end of the daily sample."""
    return np.flatnonzero(~lives.died & (lives.last == lives.last.max()))[:count].tolist()


def told(lives: Lifespans, at: int, fate: DriveFate, before_end: int) -> ReportedEnding:
    day = EPOCH + timedelta(days=int(lives.last[at]) - before_end)
    return ReportedEnding(str(lives.serials[at]), day, fate)


def deaths(words: list[ReportedEnding], until: date | None = None) -> int:
    made = train_forecaster(
        [DAILY, CHANGES, DRIVES], name="t", threads=1, recipe=SMALL, words=words, until=until
    )
    return made.facts.counts["deaths"]


@pytest.mark.slow
def test_confirmed_drives_are_learned_from_as_deaths_and_unverified_ones_are_not(lives: Lifespans) -> None:
    chosen = leaving(lives, 6)
    plain = deaths([])
    assert deaths([told(lives, at, DriveFate.CONFIRMED, 20) for at in chosen]) == plain + 6
    assert deaths([told(lives, at, DriveFate.UNVERIFIED, 20) for at in chosen]) == plain


@pytest.mark.slow
def test_a_word_after_until_changes_nothing_in_a_training(lives: Lifespans) -> None:
    chosen = leaving(lives, 6)
    until = EPOCH + timedelta(days=int(lives.last.max()) - 25)
    late = [told(lives, at, DriveFate.CONFIRMED, 20) for at in chosen]
    assert deaths(late, until) == deaths([], until)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_train_takes_outcomes_from_a_file_and_from_a_services_store_and_registers_its_bundle(
    lives: Lifespans, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("mlflow", reason="the extra `tracking` is not installed")
    one, two = (told(lives, at, DriveFate.CONFIRMED, 20) for at in leaving(lives, 2))
    file = tmp_path / "outcomes.csv"
    file.write_text(f"serial_number,date,fate\n{one.serial},{one.day},confirmed\n")
    state = tmp_path / "state"
    store = SqliteStore(state / "store.sqlite")
    at = datetime.combine(two.day, datetime.min.time(), UTC)
    store.add_readings([smart_reading(two.serial, at)])
    store.add_outcome(Outcome(DeviceId(f"ST4000DM000_{two.serial}"), at, DriveFate.FAILED, "a person"))
    store.close()
    history = [str(path) for path in (DAILY, CHANGES, DRIVES)]
    plain, heard = str(tmp_path / "plain"), str(tmp_path / "heard")
    assert main(["train", *history, "--out", plain, "--threads", "1"]) == 0
    asked = ["--outcomes", str(file), "--state", str(state), "--alone", "--threads", "1"]
    track = f"sqlite:///{tmp_path / 'models.sqlite'}"
    assert main(["train", *history, "--out", heard, *asked, "--tracking-uri", track]) == 0
    (version,) = Registry(track).versions()
    assert (version.number, version.name) == (1, "heard")
    assert version.parameters["histories_sha256"] == digest_histories([DRIVES, CHANGES, DAILY])
    assert version.parameters["release"]
    assert 0 < version.figures["recall_at_bad"] <= version.figures["recall_at_warning"] <= 1
    assert 0 < version.figures["brier"] < version.figures["pr_auc"] < 1
    assert 0.5 < version.figures["expected_over_observed"] < 2
    counts = [Bundle.load(Path(folder)).facts.counts["deaths"] for folder in (plain, heard)]
    assert counts[1] == counts[0] + 2
    capsys.readouterr()
    (config := tmp_path / "predrain.toml").write_text(f'[service]\nstate = "{state}"\n')
    assert read_statements(None, None, config) == read_statements(None, state, None)
    assert main(["train", *history, "--out", heard, "--state", str(tmp_path)]) == 1
    assert "holds no store" in capsys.readouterr().err
