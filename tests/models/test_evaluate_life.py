"""Kaplan-Meier, IPCW shares and Uno's concordance: by hand, by brute force, and on lives with a known law."""

from __future__ import annotations

import numpy as np
import pytest

from predrain.models.evaluate.censoring_weights import (
    EVIDENCE,
    FollowUp,
    IpcwShare,
    RemovalCurve,
    estimate_concordance,
    kaplan_meier,
    last_judged_day,
)


def follow_up(days: list[int], fates: str, limit: int) -> FollowUp:
    """Build a follow-up. `fates` has a letter for each drive: f failed, r removed, s in service at the end."""
    number = len(days)
    return FollowUp(
        np.arange(number),
        np.array(days),
        np.array([fate == "f" for fate in fates]),
        np.array([fate == "r" for fate in fates]),
        np.full(number, limit),
    )


def test_kaplan_meier_of_removal_by_hand_with_failures_first_among_ties() -> None:
    # Day 2: one is removed of four at risk (one failed on day 1). Day 3: of three left one fails first,
    # then one of the remaining two is removed.
    follow = follow_up([1, 2, 3, 3, 5], "frfrs", 5)
    g = RemovalCurve(follow).compute_removal_curve(np.ones(5, dtype=np.int64))
    assert g[:5] == pytest.approx([1, 1, 1, 3 / 4, 3 / 4 * 1 / 2])


def test_kaplan_meier_counts_weights_as_repeated_drives() -> None:
    follow = follow_up([1, 2, 3, 3, 5], "frfrs", 5)
    weight = np.array([2, 1, 0, 3, 1])
    rows = np.repeat(np.arange(5), weight)
    repeated = FollowUp(
        np.arange(len(rows)), follow.days[rows], follow.failed[rows], follow.removed[rows], follow.limit[rows]
    )
    assert RemovalCurve(follow).compute_removal_curve(weight) == pytest.approx(
        RemovalCurve(repeated).compute_removal_curve(np.ones(len(rows), dtype=np.int64))
    )


def test_an_ipcw_share_by_hand() -> None:
    follow = follow_up([1, 2, 3, 3, 5], "frfrs", 5)
    weight = np.ones(5, dtype=np.int64)
    g = RemovalCurve(follow).compute_removal_curve(weight)
    share = IpcwShare(follow, np.zeros(5), np.full(5, 3.0), last_judged_day(g))
    # Failures on day 1 (G = 1) and day 3 (G(3-) = 3/4) among five rows.
    assert share.estimate(g, weight) == pytest.approx((1 + 1 / 0.75) / 5)
    assert (share.rows, share.drives, share.events) == (5, 5, 2)
    assert not share.share(0.1).is_evidence


def test_rows_whose_time_lies_beyond_the_follow_up_or_is_empty_are_not_judged() -> None:
    follow = follow_up([1, 2, 9, 9], "ffss", 9)
    g = RemovalCurve(follow).compute_removal_curve(np.ones(4, dtype=np.int64))
    high = np.array([5.0, np.nan, 10.0, 9.0])
    share = IpcwShare(follow, np.zeros(4), high, last_judged_day(g))
    assert share.rows == 2
    assert share.estimate(g, np.ones(4, dtype=np.int64)) == pytest.approx(0.5)


def test_nothing_is_judged_once_removal_has_left_fewer_than_one_in_twenty() -> None:
    follow = follow_up([*[2] * 99, 9], "r" * 99 + "s", 9)
    g = RemovalCurve(follow).compute_removal_curve(np.ones(100, dtype=np.int64))
    assert last_judged_day(g) == 2
    share = IpcwShare(follow, np.zeros(100), np.full(100, 3.0), last_judged_day(g))
    assert share.rows == 0
    assert np.isnan(share.estimate(g, np.ones(100, dtype=np.int64)))


def test_the_kaplan_meier_decile_of_lives_with_heavy_removal_covers_a_tenth() -> None:
    rng = np.random.default_rng(11)
    number, limit = 40_000, 900
    life = np.ceil(rng.exponential(2000, number)).astype(np.int64)
    removal = np.ceil(rng.exponential(600, number)).astype(np.int64)
    days = np.minimum(np.minimum(life, removal), limit)
    failed = (life <= removal) & (life <= limit)
    follow = FollowUp(np.arange(number), days, failed, ~failed & (days < limit), np.full(number, limit))
    weight = np.ones(number, dtype=np.int64)
    leaving = np.bincount(days).astype(float)
    survival = kaplan_meier(
        np.bincount(days[failed], minlength=len(leaving)).astype(float), leaving, leaving * 0
    )
    p10 = float(np.argmax(survival <= 0.9) - 1)
    assert p10 == pytest.approx(-np.log(0.9) * 2000, rel=0.06)
    g = RemovalCurve(follow).compute_removal_curve(weight)
    share = IpcwShare(follow, np.zeros(number), np.full(number, p10), last_judged_day(g))
    assert share.estimate(g, weight) == pytest.approx(0.1, abs=0.001)
    assert share.events > EVIDENCE
    # Without the weights removal would hide a good part of the failures.
    naive = np.mean(failed & (days <= p10))
    assert naive < 0.095


def test_unos_concordance_is_the_sum_over_pairs() -> None:
    rng = np.random.default_rng(5)
    number = 60
    days = rng.integers(1, 40, number)
    fates = "".join(rng.choice(list("frs"), number))
    follow = follow_up(days.tolist(), fates, 40)
    risk = np.round(rng.random(number), 1)
    weight = rng.integers(0, 3, number)
    g = RemovalCurve(follow).compute_removal_curve(np.ones(number, dtype=np.int64))
    limit = last_judged_day(g)
    better = total = 0.0
    for i in range(number):
        if fates[i] != "f" or days[i] > limit:
            continue
        for j in range(number):
            if days[j] > days[i] or (days[j] == days[i] and fates[j] != "f"):
                pair = weight[i] * weight[j] / g[days[i]] ** 2
                total += pair
                better += pair * (1.0 if risk[i] > risk[j] else 0.5 if risk[i] == risk[j] else 0.0)
    ones = np.ones(number, dtype=np.int64)
    assert estimate_concordance(follow, risk, [weight], g)[0] == pytest.approx(better / total, rel=1e-5)
    assert estimate_concordance(follow, follow.failed / 2 - follow.days, [ones], g)[0] == pytest.approx(1.0)
    assert estimate_concordance(follow, np.zeros(number), [ones] * 3, g, batch=2) == pytest.approx([0.5] * 3)
