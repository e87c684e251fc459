"""A service of its own under attack by bodies: small answers, flat memory, and prompt probes meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.attack import bodies
from tests.attack.outcome import AttackOutcome
from tests.attack.target import NO_RATES, Target, running_service, status_of

pytestmark = [pytest.mark.system, pytest.mark.slow]
MIB = 1 << 20


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    with running_service(tmp_path_factory.mktemp("attacked"), settings=NO_RATES) as running:
        yield running


@pytest.mark.parametrize(
    "attack",
    [
        bodies.post_anonymous_keys,
        bodies.post_anonymous_values,
        bodies.post_anonymous_small_keys,
        bodies.post_anonymous_chunks,
    ],
)
def test_a_body_without_a_token_costs_the_service_nothing(
    target: Target, attack: Callable[[Target], AttackOutcome]
) -> None:
    outcome = attack(target)
    assert (outcome.refused, outcome.got_through) == (outcome.tried, 0), outcome
    assert outcome.strain.largest_answer_bytes < 16 * 1024, outcome
    assert outcome.strain.memory_growth_bytes < 24 * MIB, outcome
    assert outcome.strain.served_promptly, outcome


@pytest.mark.parametrize(
    "attack", [bodies.post_ingest_numbers, bodies.post_ingest_wide_item, bodies.post_ingest_deep]
)
def test_a_collector_cannot_make_the_service_build_what_it_will_not_take(
    target: Target, attack: Callable[[Target], AttackOutcome]
) -> None:
    outcome = attack(target)
    assert outcome.tried > 0
    assert (outcome.refused, outcome.got_through) == (outcome.tried, 0), outcome
    assert outcome.strain.largest_answer_bytes < 16 * 1024, outcome
    assert outcome.strain.memory_growth_bytes < 48 * MIB, outcome
    assert outcome.strain.served_promptly, outcome


def test_bodies_that_are_held_back_fill_no_more_memory_than_collectors_may_have(target: Target) -> None:
    outcome = bodies.hold_ingest_bodies(target)
    assert outcome.refused > 0, "those for which there is no room are told so"
    assert outcome.strain.memory_growth_bytes < 96 * MIB, outcome
    assert outcome.strain.served_promptly, outcome
    assert status_of(target.post("/api/v1/readings", b"[]", token=target.token)) == 200
