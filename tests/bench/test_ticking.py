"""The bench's dumps are those of a cluster on which a drain begins: else its ticks measure a controller that holds."""

from __future__ import annotations

from tests.actions.made import wide_spec
from tests.bench.ticking import TICKS, ticks


def test_a_drain_goes_on_in_the_ticks_that_are_measured() -> None:
    assert ticks(wide_spec, brief_above=10_000).amount == TICKS
