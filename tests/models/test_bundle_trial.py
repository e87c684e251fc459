"""A bundle with true checksums and untrue content never ends or holds up the process that loads it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from predrain.models.deploy import bundle_trial
from predrain.models.deploy.bundle_store import TRIED, BundleStore
from predrain.models.deploy.bundle_trial import BundleTrials
from predrain.models.forecast.bundle import DEFAULT, Bundle, CorruptBundle
from predrain.models.forecast.tree_text_check import UnfitTrees, check_trees
from tests.models.mutated import sign, with_true_sizes

ROOT = Path(__file__).resolve().parents[2]
SEEDS = 60
TEXT = (DEFAULT / "model.txt").read_text()
COLUMNS = Bundle.load().facts.columns


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A bundle that does not ship, equal to the one that does."""
    return Path(shutil.copytree(DEFAULT, tmp_path / "outside"))


@pytest.fixture
def crooked(outside: Path) -> Path:
    """A bundle whose trees are whole and whose rates are not."""
    facts = msgspec.json.decode((outside / "bundle.json").read_bytes())
    facts["rates"]["models"]["ST4000DM000"] = [0.1]
    (outside / "bundle.json").write_bytes(msgspec.json.encode(facts))
    sign(outside)
    return outside


@pytest.mark.slow
def test_no_mutated_bundle_ends_or_holds_up_a_process_that_uses_it(tmp_path: Path) -> None:
    """Without the child's protection: the check of the text alone keeps LightGBM from what it cannot bear."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.models.mutated", str(tmp_path), "0", str(SEEDS)],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    lines = done.stdout.splitlines()
    assert done.returncode == 0, f"ended by seed {len(lines)}: {done.stderr[-300:]}"
    assert len(lines) == SEEDS
    assert sum(" refused: " in line for line in lines) > SEEDS // 2
    assert not [line for line in lines if "|" in line]  # every refusal is one line


def read_first(field: str) -> list[str]:
    """The values of the first line of this field: the header's, or the first tree's."""
    found = re.search(rf"^{field}=(.*)$", TEXT, re.MULTILINE)
    assert found is not None
    return found[1].split(" ")


def change(field: str, place: int, value: str) -> str:
    """The text with one value of the first line of a field changed."""
    values = read_first(field)
    old, values[place] = f"{field}={' '.join(values)}", value
    return TEXT.replace(old, f"{field}={' '.join(values)}", 1)


SIZES = [int(size) for size in read_first("tree_sizes")]
LEAVES = int(read_first("num_leaves")[0])
INNER = next(at for at, child in enumerate(read_first("left_child")) if int(child) > 0)
MONOTONE = "monotone_constraints"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (change("split_feature", 0, str(len(COLUMNS))), "split_feature of tree 0"),
        (change("split_feature", 0, "-1"), "split_feature of tree 0"),
        (change("leaf_value", 0, "nan"), "leaf_value of tree 0"),
        (change("leaf_value", 0, "1e9"), "leaf_value of tree 0"),
        (change("threshold", 0, "nan"), "threshold of tree 0"),
        (
            change("num_leaves", 0, str(LEAVES + 1)),
            f"leaf_value of tree 0 has {LEAVES} values and not {LEAVES + 1}",
        ),
        (change("num_leaves", 0, "999999999"), "num_leaves of tree 0"),
        (change("num_leaves", 0, "\u0668"), "characters"),
        (change("decision_type", 0, "1"), "decision_type of tree 0"),
        (change("num_cat", 0, "1"), "categories"),
        (change("is_linear", 0, "1"), "linear"),
        (change("left_child", INNER, "0"), "two parents, or is the root"),
        (change("left_child", 0, read_first("right_child")[0]), "two parents, or is the root"),
        (change("left_child", 0, "-99"), "left_child of tree 0"),
        (change("tree_sizes", 0, str(SIZES[0] + 1)), "tree_sizes"),
        (
            TEXT.replace(f"={SIZES[0]} {SIZES[1]}", f"={SIZES[0] - 1} {SIZES[1] + 1}", 1),
            "tree 1 does not begin where tree_sizes says",
        ),
        (change("max_feature_idx", 0, "999999"), "number of features"),
        (change("objective", 1, "sigmoid:0"), "objective"),
        (change("num_class", 0, "2"), "num_class"),
        (change(MONOTONE, 0, "7"), MONOTONE),
        (TEXT.replace(f"{MONOTONE}=", f"{MONOTONE}=1 ", 1), MONOTONE),
        (TEXT.replace("end of trees", "end of it", 1), "no end"),
        ("", "no trees"),
    ],
)
def test_a_malformed_model_text_that_lightgbm_would_trust_is_refused_before_loading(
    text: str, why: str
) -> None:
    if "tree_sizes" not in why:
        text = with_true_sizes(text)
    with pytest.raises(UnfitTrees, match=why):
        check_trees(text, COLUMNS)


def test_a_circle_that_no_root_leads_to_is_found() -> None:
    """Two splits that are each other's child, where every child still has one parent."""
    head, _, rest = TEXT.partition("\nTree=0\n")
    fields = dict(line.split("=", 1) for line in rest.split("\n\n\n")[0].split("\n"))
    sides = [fields[f"{name}_child"].split(" ") for name in ("left", "right")]
    parents = {side[at]: (side, at) for side in sides for at in range(len(side))}
    # A split `low` under the split `high`, with a leaf: leaf and `high` change places.
    low, high, leaf = next(
        (str(at), str(above), side[at])
        for side in sides
        for at in range(1, len(side))
        if side[at].startswith("-") and (above := parents[str(at)][1])
    )
    (side, at), (other, place) = parents[high], parents[leaf]
    assert str(place) == low
    side[at], other[place] = leaf, high
    left, right = sides
    changed = rest.replace(f"left_child={fields['left_child']}", f"left_child={' '.join(left)}", 1)
    changed = changed.replace(f"right_child={fields['right_child']}", f"right_child={' '.join(right)}", 1)
    with pytest.raises(UnfitTrees, match=r"circle|deeper"):
        check_trees(with_true_sizes(f"{head}\nTree=0\n{changed}"), COLUMNS)


def test_the_checked_model_text_forecasts_the_same_as_the_original() -> None:
    import lightgbm as lgb
    import numpy as np

    x = np.random.default_rng(1).normal(0, 100, (200, len(COLUMNS)))
    whole, kept = (lgb.Booster(model_str=text) for text in (TEXT, check_trees(TEXT, COLUMNS)))
    assert np.array_equal(whole.predict(x), kept.predict(x))
    assert (
        whole.model_to_string().split("\nparameters:")[0] == kept.model_to_string().split("\nparameters:")[0]
    )


@pytest.mark.slow
def test_a_bundle_that_cannot_forecast_is_refused_by_its_trial_and_the_verdict_is_remembered(
    crooked: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Bundle.load(crooked)  # its checksums hold, and its trees are trees
    trials = BundleTrials(tmp_path / "state" / "tried.json")
    with pytest.raises(CorruptBundle, match=r"cannot forecast \(.*train it again") as first:
        trials.check(crooked)
    assert str(first.value).count("train it again") == 1
    monkeypatch.setattr(
        bundle_trial, "_run_trial_process", lambda _: pytest.fail("it was tried a second time")
    )
    with pytest.raises(CorruptBundle) as again:
        BundleTrials(tmp_path / "state" / "tried.json").check(crooked)
    assert str(again.value) == str(first.value)


@pytest.mark.slow
def test_a_bundle_whose_checksums_do_not_hold_is_refused_with_one_cure(outside: Path) -> None:
    (outside / "bundle.json").write_bytes(b"{}")
    with pytest.raises(
        CorruptBundle, match="not what SHA256SUMS says; restore the bundle or train it again"
    ) as refused:
        BundleTrials().check(outside)
    assert str(refused.value).count("train it again") == 1


@pytest.mark.slow
def test_a_sound_bundle_is_tried_once_at_promotion_and_the_shipped_one_never(
    outside: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shelf = BundleStore(tmp_path / "bundles")
    digest = shelf.install(outside)
    assert (tmp_path / "bundles" / TRIED).exists()
    monkeypatch.setattr(
        bundle_trial, "_run_trial_process", lambda _: pytest.fail("it was tried a second time")
    )
    shelf.promote(digest)
    Bundle.load(BundleStore(tmp_path / "bundles").verify_folder(digest))
    BundleTrials().check(None)
    BundleTrials().check(DEFAULT)


@pytest.mark.slow
def test_a_bundle_that_fails_its_trial_cannot_be_promoted(crooked: Path, tmp_path: Path) -> None:
    with pytest.raises(CorruptBundle):
        BundleStore(tmp_path / "bundles").install(crooked)
    assert not [one for one in (tmp_path / "bundles").iterdir() if one.is_dir()]


Child = Callable[[str], None]


@pytest.fixture
def child(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Child:
    """Lets another program be the child."""

    def stand_in(program: str) -> None:
        script = tmp_path / "python"
        script.write_text(f"#!/bin/sh\n{program}\n")
        script.chmod(0o700)
        monkeypatch.setattr(bundle_trial.sys, "executable", str(script))

    return stand_in


@pytest.mark.slow
@pytest.mark.parametrize(
    ("program", "why", "lasting"),
    [
        ("kill -ABRT $$", "ended by SIGABRT", True),
        ("kill -SEGV $$", "ended by SIGSEGV", True),
        ("kill -XCPU $$", "processor time", True),
        ("exec sleep 60", "did not forecast within", False),
        ("exit 7", "ended with code 7", False),
    ],
)
def test_a_child_that_dies_or_hangs_is_a_sentence(
    outside: Path,
    tmp_path: Path,
    child: Child,
    monkeypatch: pytest.MonkeyPatch,
    program: str,
    why: str,
    lasting: bool,
) -> None:
    monkeypatch.setattr(bundle_trial, "WALL_SECONDS", 2.0)
    child(program)
    with pytest.raises(CorruptBundle, match=why):
        BundleTrials(tmp_path / "tried.json").check(outside)
    assert (tmp_path / "tried.json").exists() == lasting


@pytest.mark.slow
def test_a_child_that_takes_too_much_memory_is_refused(outside: Path) -> None:
    greedy = (
        "import sys, pathlib, predrain.models.deploy.bundle_trial as t; "
        "t._find_forecast_fault = lambda folder: str(bytearray(8 << 30));"
    )
    done = subprocess.run(
        [sys.executable, "-c", f"{greedy} sys.exit(t._run_trial_child(pathlib.Path({str(outside)!r})))"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert (done.returncode, "more than 3 GiB of memory" in done.stdout) == (3, True)
