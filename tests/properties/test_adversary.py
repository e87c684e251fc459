"""After every cancel, the map is that of a shadow cluster which was never drained, despite faults and acts of others.

`tests.properties.adversary` describes the games and the comparison. A failure prints the line that plays its seed
again.
"""

from __future__ import annotations

import pytest

from tests.properties.adversary import play

SEEDS = {"all": 60, "deaths": 20, "operations": 10, "pools": 6, "interruptions": 6}
"""Seeds of each game in `make test-all`; `make sim` plays any number, and `make test-nightly` hundreds of each."""
SHORT = {"all": 20, "deaths": 6, "operations": 2, "pools": 2, "interruptions": 2}
"""Those of them that `make test` plays."""
TOGETHER = {"all": 10, "deaths": 2, "operations": 2, "pools": 2, "interruptions": 2}
"""Seeds of one test."""


def _play(first: int, seeds: int, game: str) -> None:
    broken = [verdict for seed in range(first, first + seeds) if (verdict := play(seed, game)).broken]
    again = "" if game == "all" else f" ARGS='--game {game}'"
    assert not broken, "\n".join(
        f"make sim SEEDS=1 FROM={each.seed}{again}  # {each.broken}" for each in broken
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("game", "first"),
    [
        pytest.param(game, first, marks=() if first < SHORT[game] else pytest.mark.long)
        for game in SEEDS
        for first in range(0, SEEDS[game], TOGETHER[game])
    ],
)
def test_after_every_cancel_the_map_is_that_of_a_cluster_that_was_never_drained(
    game: str, first: int
) -> None:
    _play(first, TOGETHER[game], game)


def test_a_removal_counts_no_pg_that_a_person_sent_on_a_moment_before() -> None:
    _play(2891, 1, "all")


@pytest.mark.slow
def test_no_weight_goes_back_under_a_pg_whose_osd_went_down_a_moment_ago() -> None:
    _play(5509, 1, "all")


@pytest.mark.slow
@pytest.mark.parametrize("seed", [7787, 8369])
def test_an_upmap_that_two_drains_moved_on_is_right_after_one_ends_and_the_other_is_cancelled(
    seed: int,
) -> None:
    """7787: another person's upmap led to an OSD that stays. 8369: the command that removes our own was lost."""
    _play(seed, 1, "all")


@pytest.mark.slow
def test_an_upmap_that_the_mon_keeps_under_a_changed_rule_is_given_back() -> None:
    _play(731, 1, "pools")


@pytest.mark.slow
def test_a_fill_is_planned_anew_after_pgs_of_its_plan_were_merged() -> None:
    _play(570, 1, "pools")


def test_after_a_few_cancels_the_map_is_that_of_a_cluster_that_was_never_drained() -> None:
    _play(0, 3, "all")


@pytest.mark.slow
def test_no_upmap_is_sent_beside_a_weight_of_another_drain_that_changes_crushs_choice_for_its_pg() -> None:
    """Both were computed on the map before the poll. Together they put two shards of a PG into one host."""
    _play(34_746, 1, "all")


@pytest.mark.slow
def test_an_upmap_to_an_osd_that_is_being_emptied_comes_back_though_the_drain_that_took_it_off_has_ended() -> (
    None
):
    _play(22_022, 1, "all")


@pytest.mark.slow
def test_an_upmap_whose_target_crush_chose_by_itself_for_a_while_comes_back() -> None:
    _play(711, 1, "pools")
