"""After every cancel the map is that of a shadow cluster which was never drained, whatever others and faults did.

`tests.properties.adversary` says what is played and compared. A failure prints the line that plays its seed again.
"""

from __future__ import annotations

import pytest

from tests.properties.adversary import play

SEEDS, SHORT, TOGETHER = 300, 20, 10
"""Seeds of `make test-all`, those of them that `make test` plays, and seeds of one test."""


def _play(first: int, seeds: int) -> None:
    broken = [verdict for verdict in map(play, range(first, first + seeds)) if verdict.broken]
    assert not broken, "\n".join(f"make sim SEEDS=1 FROM={each.seed}  # {each.broken}" for each in broken)


@pytest.mark.slow
@pytest.mark.parametrize(
    "first",
    [
        pytest.param(first, marks=() if first < SHORT else pytest.mark.long)
        for first in range(0, SEEDS, TOGETHER)
    ],
)
def test_after_every_cancel_the_map_is_that_of_a_cluster_that_was_never_drained(first: int) -> None:
    _play(first, TOGETHER)


def test_after_a_few_cancels_the_map_is_that_of_a_cluster_that_was_never_drained() -> None:
    _play(0, 3)
