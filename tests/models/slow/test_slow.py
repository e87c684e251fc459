from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from predrain.data.history.history_tables import UnreadableHistory
from predrain.models.slow.latency_history import LatencyFiles
from predrain.models.slow.latency_ratios import ComparisonGroups, compute_period_ratios
from tests.models.slow.made import BEGINNING, DAY, ever_slow, fleet, scored


def test_a_disk_that_is_mildly_slow_for_three_days_is_slow_from_the_third_on(tmp_path: Path) -> None:
    found = scored(tmp_path, fleet(slow={(2, 5): 1.4}))
    assert ever_slow(found) == {(2, 5)}
    mine = found[(found["host"] == 2) & (found["disk"] == 5)].sort_values("day")
    assert mine["slow"].tolist() == [False, False, True, True, True]
    assert mine["score"].between(1.3, 1.5).all()
    assert mine["reason"].iloc[2].startswith("1.4")
    assert "11 peers on 2, 3 days running" in mine["reason"].iloc[2]


def test_healthy_disks_score_one_and_are_like_their_peers(tmp_path: Path) -> None:
    found = scored(tmp_path, fleet())
    assert found["score"].between(0.9, 1.1).all()
    assert set(found["reason"]) == {"like its peers"}
    assert not found["slow"].any()
    assert not found["whole_host"].any()


def test_there_is_one_row_for_every_disk_and_day_that_has_rows(tmp_path: Path) -> None:
    frame = fleet(hosts=3, disks=4, days=4)
    frame = frame[~((frame["host"] == 1) & (frame["disk"] == 2) & (frame["ts"] >= BEGINNING + 2 * DAY))]
    found = scored(tmp_path, frame)
    assert not found.duplicated(["host", "disk", "day"]).any()
    assert len(found) == 3 * 4 * 4 - 2
    assert list(found.columns) == ["host", "disk", "day", "score", "slow", "whole_host", "reason"]


def test_two_days_are_not_enough(tmp_path: Path) -> None:
    assert ever_slow(scored(tmp_path, fleet(days=2, slow={(2, 5): 3.0}))) == set()


def test_one_bad_hour_does_not_make_a_slow_day(tmp_path: Path) -> None:
    frame = fleet(days=5, bins_a_day=36)
    hit = (frame["host"] == 1) & (frame["disk"] == 1) & (frame["ts"] % DAY < 12 * 300)
    frame.loc[hit, "lat_mean"] *= 5
    assert ever_slow(scored(tmp_path, frame)) == set()


def test_a_slow_host_is_told_from_slow_disks(tmp_path: Path) -> None:
    found = scored(tmp_path, fleet(slow_hosts={3: 2.4}, slow={(3, 0): 1.5, (6, 7): 1.5}))
    assert set(found[found["whole_host"]]["host"]) == {3}
    assert ever_slow(found) == {(3, 0), (6, 7)}
    said = found[(found["host"] == 3) & (found["disk"] == 1)]["reason"].iloc[-1]
    assert "the whole host is 2.4" in said


def test_where_most_disks_of_a_host_are_slow_it_is_the_host(tmp_path: Path) -> None:
    slow = {(4, disk): 2.0 for disk in range(8)}
    found = scored(tmp_path, fleet(slow=slow))
    assert ever_slow(found) == set()
    assert set(found[found["whole_host"]]["host"]) == {4}


def test_a_minority_of_slow_disks_is_found_each(tmp_path: Path) -> None:
    slow = {(4, disk): 1.6 for disk in range(5)}
    assert ever_slow(scored(tmp_path, fleet(slow=slow))) == set(slow)


@pytest.mark.parametrize("disks", [2, 3])
def test_with_one_or_two_peers_the_other_hosts_tell_which_is_slow(tmp_path: Path, disks: int) -> None:
    slow = {(1, 0): 1.6, (5, 1): 1 / 1.6}
    assert ever_slow(scored(tmp_path, fleet(disks=disks, slow=slow))) == {(1, 0)}


def test_a_disk_alone_on_its_host_cannot_be_told_from_its_host(tmp_path: Path) -> None:
    found = scored(tmp_path, fleet(hosts=12, disks=1, slow={(4, 0): 3.0}))
    assert ever_slow(found) == set()
    assert set(found[found["whole_host"]]["host"]) == {4}
    assert found["score"].isna().all()


def test_one_of_two_disks_in_a_cluster_of_one_host_is_not_judged(tmp_path: Path) -> None:
    found = scored(tmp_path, fleet(hosts=1, disks=2, slow={(0, 0): 2.0}))
    assert ever_slow(found) == set()
    assert found["reason"].str.contains("no other host tells which is slow").any()


def test_a_latency_of_zero_is_no_data(tmp_path: Path) -> None:
    frame = fleet()
    frame.loc[(frame["host"] == 0) & (frame["disk"] == 0), "lat_mean"] = 0
    half = (frame["host"] == 1) & (frame["disk"] < 6)
    frame.loc[half, "lat_mean"] = 0
    found = scored(tmp_path, frame)
    none = found[(found["host"] == 0) & (found["disk"] == 0)]
    assert none["score"].isna().all()
    assert set(none["reason"]) == {"too few latencies above 0"}
    assert ever_slow(found) == set()
    assert not found["whole_host"].any()


def test_bins_may_be_missing(tmp_path: Path) -> None:
    frame = fleet(slow={(2, 5): 1.4}, bins_a_day=24).sample(frac=0.5, random_state=3)
    assert ever_slow(scored(tmp_path, frame)) == {(2, 5)}


def test_a_disk_that_is_slower_for_being_busier_is_not_slow(tmp_path: Path) -> None:
    frame = fleet(noise=0.03)
    chance = np.random.default_rng(5)
    push = np.exp(0.3 * chance.standard_normal(len(frame)))
    busy = (frame["host"] == 2) & (frame["disk"] == 3)
    push[busy] *= 1.9
    frame["thr_kBps"] *= push
    frame["lat_mean"] *= push**0.6  # latency follows load on every disk alike
    found = scored(tmp_path, frame)
    assert ever_slow(found) == set()
    without = scored(tmp_path, frame.drop(columns="thr_kBps"))
    assert ever_slow(without) == {(2, 3)}


def test_an_idle_disk_says_nothing(tmp_path: Path) -> None:
    frame = fleet()
    idle = (frame["host"] == 2) & (frame["disk"] == 3)
    frame.loc[idle, "thr_kBps"] = 20.0
    frame.loc[idle, "lat_mean"] *= 4
    found = scored(tmp_path, frame)
    assert ever_slow(found) == set()
    assert found[(found["host"] == 2) & (found["disk"] == 3)]["score"].isna().all()


def test_a_week_of_silence_starts_the_count_anew(tmp_path: Path) -> None:
    frame = fleet(days=4, slow={(2, 5): 1.6})
    frame.loc[frame["ts"] >= BEGINNING + 2 * DAY, "ts"] += 9 * DAY
    assert ever_slow(scored(tmp_path, frame)) == set()


def test_a_weekend_of_silence_does_not(tmp_path: Path) -> None:
    frame = fleet(days=4, slow={(2, 5): 1.6})
    frame.loc[frame["ts"] >= BEGINNING + 2 * DAY, "ts"] += 2 * DAY
    assert ever_slow(scored(tmp_path, frame)) == {(2, 5)}


def test_a_disk_that_is_well_again_for_as_many_days_is_slow_no_longer(tmp_path: Path) -> None:
    frame = fleet(days=9)
    ill = (frame["host"] == 2) & (frame["disk"] == 5) & (frame["ts"] < BEGINNING + 4 * DAY)
    frame.loc[ill, "lat_mean"] *= 1.6
    found = scored(tmp_path, frame)
    mine = found[(found["host"] == 2) & (found["disk"] == 5)].sort_values("day")
    assert mine["slow"].tolist() == [False, False, True, True, True, True, False, False, False]


def test_where_disks_differ_widely_the_limit_rises_with_them(tmp_path: Path) -> None:
    frame = fleet(hosts=20)
    spread = np.random.default_rng(2).normal(0, 0.12, (20, 12))
    frame["lat_mean"] *= np.exp(spread[frame["host"], frame["disk"]])
    assert np.exp(spread.max()) > 1.25  # a fixed limit of 1.2 would call it slow
    assert ever_slow(scored(tmp_path, frame)) == set()


def test_device_classes_are_no_peers(tmp_path: Path) -> None:
    frame = fleet()
    frame["device_class"] = np.where(frame["disk"] < 3, "hdd", "ssd")
    frame.loc[frame["disk"] < 3, "lat_mean"] *= 8
    found = scored(tmp_path, frame)
    assert ever_slow(found) == set()
    assert not found["whole_host"].any()


def test_the_label_is_not_read(tmp_path: Path) -> None:
    frame = fleet(slow={(2, 5): 1.4})
    labelled = frame.assign(slow=np.random.default_rng(0).random(len(frame)) < 0.5)
    (tmp_path / "a").mkdir(), (tmp_path / "b").mkdir()
    pd.testing.assert_frame_equal(scored(tmp_path / "a", frame), scored(tmp_path / "b", labelled))


def test_the_future_does_not_change_the_past(tmp_path: Path) -> None:
    frame = fleet(days=8, slow={(2, 5): 1.4, (1, 1): 1.3})
    (tmp_path / "a").mkdir(), (tmp_path / "b").mkdir()
    cut = scored(tmp_path / "a", frame[frame["ts"] < BEGINNING + 4 * DAY])
    whole = scored(tmp_path / "b", frame)
    pd.testing.assert_frame_equal(cut, whole.iloc[: len(cut)].reset_index(drop=True))


def test_several_files_in_any_order_are_one_history(tmp_path: Path) -> None:
    frame = fleet(slow={(2, 5): 1.4})
    (tmp_path / "a").mkdir(), (tmp_path / "b").mkdir()
    early, late = frame[frame["ts"] < BEGINNING + 2 * DAY], frame[frame["ts"] >= BEGINNING + 2 * DAY]
    whole = scored(tmp_path / "a", frame)
    parted = scored(tmp_path / "b", late.sample(frac=1, random_state=1), early)
    pd.testing.assert_frame_equal(whole, parted, check_exact=False, rtol=1e-5)


def test_samples_finer_than_five_minutes_are_gathered(tmp_path: Path) -> None:
    frame = fleet(hosts=3, slow={(2, 5): 1.5})
    fine = pd.concat([frame.assign(ts=frame["ts"] + shift) for shift in range(0, 300, 15)])
    assert ever_slow(scored(tmp_path, fine)) == {(2, 5)}


def test_a_file_without_latencies_is_refused_with_what_it_lacks(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("host,disk,when\n1,2,3\n")
    with pytest.raises(UnreadableHistory, match="lacks ts, lat_mean"):
        LatencyFiles([path])


@given(st.integers(1, 7), st.integers(0, 2**31))
def test_a_ratio_is_to_the_median_of_the_others(disks: int, seed: int) -> None:
    chance = np.random.default_rng(seed)
    latency = np.exp(chance.normal(0, 1, disks * 3)).astype(np.float32)
    disk, bin_ = np.repeat(np.arange(disks), 3), np.tile(np.arange(3), disks)
    found = compute_period_ratios(
        ComparisonGroups.from_groups(np.zeros(disks, dtype=np.int64)), disk, bin_, latency, None
    )
    logs = np.log(latency.reshape(disks, 3))
    for one in range(disks):
        others = np.delete(logs, one, axis=0)
        if not len(others):
            assert np.isnan(found.disk[one])
            continue
        assert found.disk[one] == pytest.approx(np.median(logs[one] - np.median(others, axis=0)), abs=1e-4)
