"""Real disks (evidence.md, PERSEUS): 35 verified slow ones among 2,602, in three clusters."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from tests.models.slow.made import ever_slow, of_files, scored


@pytest.mark.slow
@pytest.mark.parametrize(("cluster", "slow", "slow_hosts"), [("A", 2, 0), ("B", 1, 0), ("C", 32, 16)])
def test_the_verified_slow_disks_are_found_and_no_other(
    shared_data: Path, tmp_path: Path, cluster: str, slow: int, slow_hosts: int
) -> None:
    history = pd.read_parquet(shared_data / "evidence" / "fail-slow" / f"cluster_{cluster}_5min.parquet")
    found = scored(tmp_path, history.drop(columns="slow"))
    labels = history[history["slow"]]
    truth = set(zip(labels["host"].tolist(), labels["disk"].tolist(), strict=True))
    assert len(truth) == slow
    assert ever_slow(found) == truth
    assert found[found["whole_host"]]["host"].nunique() == slow_hosts
    assert len(found) == len(history.groupby(["host", "disk", history["ts"] // 86_400]))


@pytest.mark.slow
def test_raw_samples_score_like_the_bins_made_of_them(shared_data: Path) -> None:
    folder = shared_data / "evidence" / "fail-slow"
    raw = of_files(folder / "raw_15s_sample.parquet")
    binned = pd.concat([of_files(folder / f"cluster_{name}_5min.parquet") for name in "ABC"])
    both = raw.merge(binned, on=["host", "disk", "day"], suffixes=("_raw", "_bin")).dropna(
        subset=["score_raw", "score_bin"]
    )
    assert len(both) > 150
    assert (both["score_raw"] / both["score_bin"] - 1).abs().max() < 0.02
