"""Training is deterministic and knows nothing from after `until`; a bundle refuses what does not fit."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import duckdb
import msgspec
import numpy as np
import pytest

from predrain.data.lifespan import sources_of
from predrain.models.deploy.model_card import card_of
from predrain.models.forecast.bundle import DEFAULT, LANDMARKS, Bundle, CorruptBundle, trees_hash
from predrain.models.forecast.hazard import Recipe
from predrain.models.forecast.landmarks import draw_landmarks
from predrain.models.forecast.training import TooLittleHistory, Trained, save_trained_bundle, train_forecaster

SAMPLES = Path(__file__).parents[1] / "data" / "drives"
DAILY, CHANGES, DRIVES = (SAMPLES / f"{name}.parquet" for name in ("daily", "changes", "drives"))
SMALL = Recipe(rounds=20, least=20)
CUT = date(2015, 12, 31)


def trained(paths: list[Path], **options: object) -> Trained:
    return train_forecaster(paths, name="sample", threads=1, recipe=SMALL, **options)  # type: ignore[arg-type]


def trees(made: Trained) -> str:
    return trees_hash(made.booster.model_to_string())


@pytest.fixture(scope="module")
def until_cut() -> Trained:
    return trained([CHANGES, DRIVES], until=CUT)


@pytest.mark.slow
def test_the_same_files_and_seed_give_the_same_trees_and_facts(until_cut: Trained) -> None:
    again = trained([CHANGES, DRIVES], until=CUT)
    assert trees(again) == trees(until_cut)
    assert msgspec.json.encode(again.facts) == msgspec.json.encode(until_cut.facts)


@pytest.mark.slow
def test_cutting_all_files_at_the_day_gives_the_trees_of_until(until_cut: Trained, tmp_path: Path) -> None:
    sql = duckdb.connect(":memory:")
    sql.execute(
        f"COPY (SELECT * FROM '{CHANGES}' WHERE date <= DATE '{CUT}') TO '{tmp_path}/changes.parquet'"
    )
    sql.execute(
        f"COPY (SELECT * REPLACE (least(last_date, DATE '{CUT}') AS last_date, "
        f"CASE WHEN last_date <= DATE '{CUT}' THEN failure ELSE 0 END AS failure) "
        f"FROM '{DRIVES}' WHERE first_date <= DATE '{CUT}') TO '{tmp_path}/drives.parquet'"
    )
    cut = trained([tmp_path / "changes.parquet", tmp_path / "drives.parquet"], until=CUT)
    assert trees(cut) == trees(until_cut)
    assert cut.facts.thresholds == until_cut.facts.thresholds
    assert cut.facts.calibration == until_cut.facts.calibration
    assert cut.facts.rates == until_cut.facts.rates


@pytest.mark.slow
def test_another_day_gives_other_trees(until_cut: Trained) -> None:
    assert trees(trained([CHANGES, DRIVES], until=date(2015, 9, 30))) != trees(until_cut)


def test_an_excluded_drive_leaves_no_landmark() -> None:
    (source,) = sources_of([DAILY], threads=1)
    barred = frozenset(source.lifespans.serials[:40].tolist())
    drawn = draw_landmarks(source, until=None, seed=1, exclude=barred, threads=1)
    assert len(drawn) > 0
    assert not barred & set(drawn.serial.tolist())


def test_no_landmark_lies_on_or_after_the_day_of_death_or_sees_past_the_end() -> None:
    (source,) = sources_of([DAILY], threads=1)
    drawn = draw_landmarks(source, until=None, seed=1, threads=1)
    ends = dict(zip(source.lifespans.serials, source.lifespans.last, strict=True))
    assert (drawn.follow >= 1).all()
    assert all(
        day + follow == ends[s] for s, day, follow in zip(drawn.serial, drawn.day, drawn.follow, strict=True)
    )


def test_too_little_history_is_refused_in_a_sentence() -> None:
    with pytest.raises(TooLittleHistory, match="history with 20 or more"):
        trained([CHANGES, DRIVES], until=date(2013, 6, 1))


def test_rows_without_a_date_that_can_be_true_are_too_little_history(tmp_path: Path) -> None:
    (tmp_path / "bad.csv").write_text("date,serial_number,model,failure\nsome day,A,M,1\n")
    with pytest.raises(TooLittleHistory, match="none with a date"):
        trained([tmp_path / "bad.csv"])


def test_a_bundle_comes_back_from_disk_as_it_was(until_cut: Trained, tmp_path: Path) -> None:
    save_trained_bundle(until_cut, tmp_path / "b", card_of(until_cut.facts))
    loaded = Bundle.load(tmp_path / "b")
    assert loaded.facts == until_cut.facts
    assert trees_hash(loaded.booster.model_to_string()) == trees(until_cut)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["model.txt", "bundle.json", "CARD.md", "SHA256SUMS"])
def test_a_bundle_that_was_touched_or_is_not_whole_is_refused_by_file_name(
    until_cut: Trained, tmp_path: Path, name: str
) -> None:
    save_trained_bundle(until_cut, tmp_path, "card")
    whole = (tmp_path / name).read_bytes()
    (tmp_path / name).write_bytes(whole[:-20] + b"x" * 20)
    with pytest.raises(CorruptBundle, match="restore the bundle or train it again"):
        Bundle.load(tmp_path)
    (tmp_path / name).unlink()
    with pytest.raises(CorruptBundle, match=name):
        Bundle.load(tmp_path)


def test_a_bundle_for_other_features_is_refused(until_cut: Trained, tmp_path: Path) -> None:
    other = msgspec.structs.replace(until_cut.facts, schema="0" * 64)
    save_trained_bundle(Trained(other, until_cut.booster), tmp_path, "card")
    with pytest.raises(CorruptBundle, match="other features"):
        Bundle.load(tmp_path)


def test_the_bundle_that_ships_is_small_whole_and_text() -> None:
    files = sorted(path for path in DEFAULT.iterdir())
    names = [path.name for path in files]
    assert names == ["CARD.md", "SHA256SUMS", "bundle.json", LANDMARKS, "model.txt", "reference.json"]
    assert sum(path.stat().st_size for path in files) < 4_000_000
    assert all(path.read_bytes().isascii() for path in files if path.name != LANDMARKS)
    assert 0 < Bundle.load().facts.thresholds.warning < Bundle.load().facts.thresholds.bad < 1


def test_the_demos_drives_are_not_among_those_the_shipped_bundle_has_seen() -> None:
    fleets = Path(__file__).parents[2] / "data" / "fleets"
    held = set((fleets / "heldout_serials.txt").read_text().split())
    shown = {
        row[0]
        for row in duckdb.sql(f"SELECT DISTINCT serial_number FROM '{fleets / 'demo.parquet'}'").fetchall()
    }
    assert len(shown) > 400
    assert shown <= held
    assert np.isclose(Bundle.load().facts.counts["excluded"], len(held))
