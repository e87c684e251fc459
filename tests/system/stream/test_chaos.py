"""The short form of `make chaos`: everything is killed, frozen and cut off at least once, and nothing is lost."""

from __future__ import annotations

import os

import pytest

from tests.chaos.schedule import RATES, WHOLE_SECONDS, Kind, Way, schedule
from tests.system.kafka import jars

READINGS_PER_SECOND = 200.0
SAME_TIME_MOST = 60
"""One round of all collectors' drives."""


@pytest.mark.parametrize("way", Way)
def test_a_seed_and_a_length_say_what_goes_wrong_and_when(way: Way) -> None:
    assert schedule(way, 3, 75) == schedule(way, 3, 75)
    assert schedule(way, 3, 75) != schedule(way, 4, 75)


@pytest.mark.parametrize("way", Way)
@pytest.mark.parametrize("seconds", [WHOLE_SECONDS, 3 * WHOLE_SECONDS, 60.0])
def test_ten_minutes_hold_every_blow_and_a_minute_one_of_each_kind_at_least(way: Way, seconds: float) -> None:
    blows = schedule(way, 3, seconds)
    for kind, rate in RATES[way].items():
        count = sum(blow.kind is kind for blow in blows)
        assert count == rate.times if seconds >= WHOLE_SECONDS else 1 <= count <= rate.times
    assert all(0 < blow.at <= blow.at + blow.seconds < seconds for blow in blows)


@pytest.mark.system
@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("way", Way)
def test_every_accepted_reading_is_stored_once_though_every_part_was_broken(
    way: Way, tmp_path_factory: pytest.TempPathFactory
) -> None:
    if way is Way.KAFKA and (why := jars.missing()):
        pytest.fail(why) if os.environ.get("CI") == "true" else pytest.skip(why)
    from tests.chaos.__main__ import run_chaos
    from tests.chaos.arena import FleetSize
    from tests.chaos.verdict import Measure

    folder = tmp_path_factory.mktemp("chaos")
    report = run_chaos(way, 3, 75, folder, FleetSize(readings_per_second=READINGS_PER_SECOND))
    assert report.verdict.passed, report.plain()
    assert {kind for kind, _, _ in report.dealt.blows} >= RATES[way].keys() - {Kind.DISK_FULL}
    counts = report.verdict.counts
    # A collector that is killed and started again within a second reads its drives twice in that second: the store
    # keeps the first reading, since smartctl dates a reading to the second.
    assert counts[Measure.KEPT] + counts[Measure.SAME_TIME] == counts[Measure.ACCEPTED] > report.drives
    assert counts[Measure.SAME_TIME] <= SAME_TIME_MOST, report.verdict.notes
    assert counts[Measure.AGAIN] > 0
    if way is Way.KAFKA:
        assert counts[Measure.LETTERS] == counts[Measure.POISON] > 0
