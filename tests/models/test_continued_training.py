"""A training that is continued: what travels with a bundle is learned from again beside a fleet's own months."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from pathlib import Path

import numpy as np
import pytest

from predrain.data.lifespan import sources_of
from predrain.features.feature_schema import POSITION
from predrain.models.deploy.model_card import card_of
from predrain.models.forecast.booster_columns import COLUMNS
from predrain.models.forecast.bundle import LANDMARKS, Bundle, CorruptBundle, read_landmarks
from predrain.models.forecast.calibration import Thresholds
from predrain.models.forecast.landmark_file import UnusableLandmarks, decode_landmarks, encode_landmarks
from predrain.models.forecast.landmarks import Landmarks, draw_landmarks
from predrain.models.forecast.training import (
    NoFoundation,
    TooLittleHistory,
    TrainingFoundation,
    save_trained_bundle,
    train_forecaster,
)
from predrain.service.cli import main

SAMPLES = Path(__file__).parents[1] / "data" / "drives"
DAILY, CHANGES, DRIVES = (SAMPLES / f"{name}.parquet" for name in ("daily", "changes", "drives"))
FEW = date(2018, 2, 15)
"""By then the daily sample has too few deaths to be learned from alone."""


@pytest.fixture(scope="module")
def landmarks() -> Landmarks:
    (source,) = sources_of([CHANGES, DRIVES])
    return draw_landmarks(source, until=None, seed=1, threads=1)


@pytest.fixture(scope="module")
def foundation(landmarks: Landmarks) -> TrainingFoundation:
    return TrainingFoundation(
        "elder", decode_landmarks(encode_landmarks(landmarks)), Thresholds(0.011, 0.123)
    )


def test_landmarks_come_back_from_the_file_as_they_were_but_for_the_drives_names(
    landmarks: Landmarks,
) -> None:
    back = decode_landmarks(encode_landmarks(landmarks))
    for name in ("day", "follow", "died", "watched"):
        assert np.array_equal(getattr(back, name), getattr(landmarks, name)), name
    assert back.model.tolist() == landmarks.model.astype(str).tolist()
    assert back.weight == pytest.approx(landmarks.weight, rel=1e-6)
    columns = [POSITION[name] for name in COLUMNS]
    assert np.array_equal(back.x[:, columns], landmarks.x[:, columns], equal_nan=True)
    hours = POSITION["hours"]
    told = ~np.isnan(landmarks.x[:, hours])
    assert np.array_equal(told, ~np.isnan(back.x[:, hours]))
    assert (np.abs(back.x[told, hours] - landmarks.x[told, hours]) < 24).all()


def test_the_file_tells_which_landmarks_are_of_one_drive_and_no_serial_number(landmarks: Landmarks) -> None:
    raw = encode_landmarks(landmarks)
    back = decode_landmarks(raw)
    drives = {tuple(pair) for pair in zip(landmarks.serial.astype(str), back.serial.astype(str), strict=True)}
    assert len(drives) == len(set(landmarks.serial.tolist())) == len(set(back.serial.tolist()))
    assert not any(serial.encode() in raw for serial in set(landmarks.serial.astype(str).tolist()))


@pytest.mark.parametrize("raw", [b"", b"no parquet", b"PAR1" + bytes(40) + b"PAR1"])
def test_a_file_that_holds_no_landmarks_is_refused_with_a_sentence(raw: bytes) -> None:
    with pytest.raises(UnusableLandmarks, match="cannot be continued from"):
        decode_landmarks(raw)


def test_a_history_with_too_few_deaths_alone_is_learned_from_in_a_continued_training(
    foundation: TrainingFoundation, tmp_path: Path
) -> None:
    with pytest.raises(TooLittleHistory, match="--onto"):
        train_forecaster([DAILY], name="own", until=FEW, threads=1)
    trained = train_forecaster([DAILY], name="own", until=FEW, threads=1, onto=foundation)
    save_trained_bundle(trained, tmp_path / "own", card_of(trained.facts))
    drives = len(set(foundation.landmarks.serial.tolist()))
    assert trained.facts.counts["continued_drives"] == drives < trained.facts.counts["drives"]
    assert (
        f"{drives:,} of the drives are those of the training that it continues"
        in (tmp_path / "own" / "CARD.md").read_text()
    )
    assert trained.facts.thresholds == foundation.thresholds, "86 drives say nothing of one in 1,000"
    again = TrainingFoundation.load_bundle(tmp_path / "own")
    assert len(again.landmarks) == trained.facts.counts["landmarks"]


def test_a_landmark_counts_the_same_however_long_ago_the_training_was_that_is_continued(
    foundation: TrainingFoundation,
) -> None:
    elder = replace(
        foundation,
        landmarks=replace(foundation.landmarks, day=foundation.landmarks.day - 2_800),
    )
    near, far = (
        train_forecaster([DAILY], name="own", until=FEW, threads=1, onto=onto) for onto in (foundation, elder)
    )
    assert near.booster.model_to_string() == far.booster.model_to_string()


def test_a_training_with_until_continues_nothing_that_knows_more(foundation: TrainingFoundation) -> None:
    with pytest.raises(NoFoundation, match="which is after 2016-01-01; say --alone"):
        train_forecaster([CHANGES, DRIVES], name="own", until=date(2016, 1, 1), threads=1, onto=foundation)


def test_the_bundle_that_ships_brings_its_landmarks() -> None:
    shipped = TrainingFoundation.load_bundle()
    counts = Bundle.load().facts.counts
    assert len(shipped.landmarks) == counts["landmarks"]
    assert len(set(shipped.landmarks.serial.tolist())) == counts["drives"]


def test_a_bundle_without_landmarks_forecasts_and_is_no_foundation(
    foundation: TrainingFoundation, tmp_path: Path
) -> None:
    trained = train_forecaster([DAILY], name="bare", until=FEW, threads=1, onto=foundation)
    save_trained_bundle(replace(trained, landmarks=None), tmp_path / "bare", "")
    Bundle.load(tmp_path / "bare")
    assert read_landmarks(tmp_path / "bare") is None
    with pytest.raises(NoFoundation, match="brings no landmarks"):
        TrainingFoundation.load_bundle(tmp_path / "bare")


def test_landmarks_that_were_changed_after_the_training_are_refused(
    foundation: TrainingFoundation, tmp_path: Path
) -> None:
    trained = train_forecaster([DAILY], name="own", until=FEW, threads=1, onto=foundation)
    save_trained_bundle(trained, tmp_path / "own", "")
    (tmp_path / "own" / LANDMARKS).write_bytes(encode_landmarks(foundation.landmarks))
    with pytest.raises(CorruptBundle, match=r"landmarks\.parquet"):
        TrainingFoundation.load_bundle(tmp_path / "own")


def test_train_continues_from_the_bundle_that_is_named_and_not_beside_alone(
    foundation: TrainingFoundation, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trained = train_forecaster([DAILY], name="first", until=FEW, threads=1, onto=foundation)
    save_trained_bundle(trained, tmp_path / "first", card_of(trained.facts))
    asked = ["train", str(DAILY), "--until", "2018-03-31", "--threads", "1", "--out", str(tmp_path / "next")]
    assert main([*asked, "--onto", str(tmp_path / "first")]) == 0
    assert Bundle.load(tmp_path / "next").facts.counts["continued_drives"] == trained.facts.counts["drives"]
    assert main([*asked, "--onto", str(tmp_path / "first"), "--alone"]) == 2
    assert "exclude each other" in capsys.readouterr().err
