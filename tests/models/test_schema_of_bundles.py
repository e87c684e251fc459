"""Which features a bundle fits: those that it names, measured as they were when it was trained, and no others."""

from __future__ import annotations

import hashlib
from pathlib import Path

import msgspec
import pytest

from predrain.features.feature_schema import NAMES_IN_ORDER
from predrain.models.forecast.booster_columns import INTERVAL
from predrain.models.forecast.bundle import DEFAULT, SUMS, Bundle, BundleFacts, CorruptBundle


def copied(folder: Path, **changed: object) -> Path:
    """The bundle that ships, with other facts under a right checksum."""
    for name in ("model.txt", "CARD.md", "reference.json"):
        (folder / name).symlink_to(DEFAULT / name)
    facts = msgspec.json.decode((DEFAULT / "bundle.json").read_bytes(), type=BundleFacts)
    (folder / "bundle.json").write_bytes(msgspec.json.encode(msgspec.structs.replace(facts, **changed)))
    names = ("model.txt", "bundle.json", "CARD.md", "reference.json")
    sums = [f"{hashlib.sha256((folder / name).read_bytes()).hexdigest()}  {name}\n" for name in names]
    (folder / SUMS).write_text("".join(sums))
    return folder


def test_the_bundle_that_ships_has_a_hash_for_each_feature_that_it_reads() -> None:
    facts = Bundle.load().facts
    assert [*facts.measured, INTERVAL] == list(facts.columns)


def test_a_bundle_reads_fewer_features_than_are_measured() -> None:
    assert set(Bundle.load().facts.measured) < set(NAMES_IN_ORDER)


def test_a_feature_that_is_measured_otherwise_refuses_the_bundle_by_its_name(tmp_path: Path) -> None:
    measured = {**Bundle.load().facts.measured, "smart_197_up_7d": "0" * 16}
    with pytest.raises(CorruptBundle, match=r"other features .*\(smart_197_up_7d measured otherwise\)"):
        Bundle.load(copied(tmp_path, measured=measured))


def test_a_feature_without_a_hash_refuses_the_bundle(tmp_path: Path) -> None:
    measured = {name: one for name, one in Bundle.load().facts.measured.items() if name != "symptoms"}
    with pytest.raises(CorruptBundle, match="symptoms measured otherwise"):
        Bundle.load(copied(tmp_path, measured=measured))


def test_a_bundle_that_reads_a_feature_of_a_later_release_is_refused_by_its_name(tmp_path: Path) -> None:
    facts = Bundle.load().facts
    columns = ("smart_5_of_tomorrow", *facts.columns[1:])
    with pytest.raises(CorruptBundle, match="no feature is called smart_5_of_tomorrow"):
        Bundle.load(copied(tmp_path, columns=columns))


def test_an_older_bundle_without_hashes_is_judged_by_its_descriptions(tmp_path: Path) -> None:
    (tmp_path / "same").mkdir()
    (tmp_path / "other").mkdir()
    assert Bundle.load(copied(tmp_path / "same", measured={})).facts.measured == {}
    with pytest.raises(CorruptBundle, match="descriptions differ"):
        Bundle.load(copied(tmp_path / "other", measured={}, schema="0" * 64))
