"""The card that ships says what the code says, and is replaced without a change to the model."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from predrain.models.forecast.bundle import DEFAULT, SUMS, Bundle, CorruptBundle
from tests.docs.shipped_card import CARD, expected_card, replace_card


@pytest.mark.slow
def test_the_card_that_ships_is_what_the_code_writes() -> None:
    assert (DEFAULT / CARD).read_text() == expected_card(DEFAULT), "run: .venv/bin/python -m tests.docs.write"


@pytest.mark.slow
def test_a_replaced_card_changes_its_own_checksum_and_nothing_else(tmp_path: Path) -> None:
    bundle = tmp_path / "bundle"
    shutil.copytree(DEFAULT, bundle)
    replace_card(bundle, "# Another card\n")
    assert Bundle.load(bundle).facts == Bundle.load(DEFAULT).facts
    differing = [
        path.name for path in DEFAULT.iterdir() if path.read_bytes() != (bundle / path.name).read_bytes()
    ]
    assert sorted(differing) == [CARD, SUMS]
    old, new = ((folder / SUMS).read_text().splitlines() for folder in (DEFAULT, bundle))
    assert [line for line in new if line not in old] == [line for line in new if line.endswith(CARD)]


@pytest.mark.slow
def test_the_card_of_a_bundle_that_was_changed_is_not_replaced(tmp_path: Path) -> None:
    bundle = tmp_path / "bundle"
    shutil.copytree(DEFAULT, bundle)
    (bundle / "model.txt").write_bytes(b"other trees")
    with pytest.raises(CorruptBundle, match=r"model\.txt"):
        replace_card(bundle, "# Another card\n")
