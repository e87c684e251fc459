"""What a house remembers and tells: announcements, curves, changes, seals, bundles."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from predrain.data.drain import Drain, DrainState, Intent, Mechanic, Move, Plan, Progress
from predrain.data.ids import DeviceId, OsdId, PgId
from predrain.data.outlook import GRAVITY, Outlook, Status, borne_out
from predrain.data.store.sqlite import SqliteStore
from predrain.service.changes import ChangeKind, Changes
from predrain.service.drains import plan_etags as seals
from predrain.service.drains.timeline import DrainSample, HoldPeriod, Timelines, holds
from predrain.service.outlook_announcements import Announcements, Why, why_announce
from predrain.service.scoring import succession
from tests.service.conftest import NOON

MINUTE = timedelta(minutes=1)


def outlook(status: Status, p: float | None = None, minute: int = 0) -> Outlook:
    return Outlook(DeviceId("A"), NOON + minute * MINUTE, status, "model:x", (), "", p_fail_30d=p)


def outlooks_of(*statuses: Status) -> list[Outlook]:
    """One reading a minute, each judged after the one before."""
    made: list[Outlook] = []
    for minute, status in enumerate(statuses):
        made.append(borne_out(outlook(status, minute=minute), made[-1] if made else None))
    return made


@pytest.mark.parametrize(
    ("before", "now", "why"),
    [
        (None, outlook(Status.GOOD), None),
        (None, outlook(Status.UNKNOWN), None),
        (None, outlook(Status.WARNING), Why.WORSE),
        (outlook(Status.WARNING), outlook(Status.BAD), Why.WORSE),
        (outlook(Status.BAD, 0.3), outlook(Status.BAD, 0.5), None),
        (outlook(Status.BAD, 0.3), outlook(Status.BAD, 0.6), Why.DOUBLED),
        (outlook(Status.WARNING, 0.01), outlook(Status.WARNING, 0.04), None),
        (outlook(Status.BAD), outlook(Status.WARNING), Why.BETTER),
        (outlook(Status.BAD), outlook(Status.GOOD), Why.BETTER),
    ],
)
def test_only_news_is_announced(before: Outlook | None, now: Outlook, why: Why | None) -> None:
    assert why_announce(before, now) is why


@pytest.mark.parametrize("milder", [Status.WARNING, Status.GOOD])
def test_a_bad_disk_gets_better_with_the_third_reading_that_says_so(milder: Status) -> None:
    bad, first, second, third = outlooks_of(Status.BAD, milder, milder, milder)
    assert [one.severity for one in (bad, first, second, third)] == [Status.BAD] * 3 + [milder]
    assert [why_announce(bad, one) for one in (first, second, third)] == [None, None, Why.BETTER]


def test_a_disk_that_nobody_can_judge_any_more_has_not_got_better() -> None:
    assert outlooks_of(Status.BAD, *[Status.UNKNOWN] * 9)[-1].severity is Status.BAD


def test_a_disk_gets_worse_at_once() -> None:
    assert [one.severity for one in outlooks_of(Status.GOOD, Status.BAD)] == [Status.GOOD, Status.BAD]


@given(st.lists(st.sampled_from(list(Status)), min_size=1, max_size=20))
def test_a_severity_is_never_milder_than_what_the_last_reading_says(statuses: list[Status]) -> None:
    last = outlooks_of(*statuses)[-1]
    assert GRAVITY[last.severity] >= GRAVITY[last.status]


def test_an_announcement_heard_twice_is_told_once() -> None:
    told = Announcements()
    news = told.news([outlook(Status.BAD), outlook(Status.BAD, minute=1)])
    assert len(news) == 1
    told.take(news)
    told.take(news)
    assert told.news([outlook(Status.BAD)]) == ()
    assert len(told.newest()) == 1


@given(st.lists(st.sets(st.sampled_from(list(ChangeKind)), min_size=1), max_size=30), st.integers(0, 30))
def test_a_listener_hears_every_kind_that_changed_since_it_last_asked(
    told: list[set[ChangeKind]], asked: int
) -> None:
    changes = Changes(remembered=8)
    for kinds in told:
        changes.tell(*kinds)
    number, heard = changes.since(min(asked, len(told)))
    assert number == len(told)
    missed = set().union(*told[min(asked, len(told)) :])
    assert heard >= missed
    if len(told) - asked <= 8:
        assert heard == missed


def sample(minute: int, left: int, *why: str) -> DrainSample:
    return DrainSample("d", NOON + minute * MINUTE, left, 1, None, why)


def test_a_hold_lasts_from_its_first_look_to_the_first_without_it() -> None:
    line = [sample(0, 9), sample(1, 8, "full"), sample(2, 7, "full"), sample(3, 6), sample(4, 5, "halt")]
    assert holds(line) == (
        HoldPeriod(NOON + MINUTE, NOON + 3 * MINUTE, "full"),
        HoldPeriod(NOON + 4 * MINUTE, None, "halt"),
    )


def test_a_long_curve_loses_detail_but_neither_end() -> None:
    lines = Timelines(kept=100)
    lines.take(sample(minute, 10_000 - minute) for minute in range(1000))
    kept = lines.of("d")
    assert len(kept) <= 100
    assert (kept[0].at, kept[-1].at) == (NOON, NOON + 999 * MINUTE)
    assert [one.at for one in kept] == sorted(one.at for one in kept)


def test_a_look_that_tells_nothing_new_is_not_kept() -> None:
    lines = Timelines()
    assert lines.take([sample(0, 9), sample(1, 9), sample(2, 8)]) == (sample(0, 9), sample(2, 8))


def drain(**changed: object) -> Drain:
    moves = tuple(Move(PgId(f"1.{n}"), OsdId(0), OsdId(n + 1), 100) for n in range(20))
    plan = Plan(Mechanic.UPMAP_WALK, "", 7, moves, OsdId(3), 0.7, 0.5, 10.0, "osd.0")
    one = Drain("d", None, (OsdId(0),), DrainState.PROPOSED, Intent.REPLACE, "x", "", NOON, NOON, plan=plan)
    plan = replace(plan, **changed)  # type: ignore[arg-type]
    return replace(one, plan=plan, progress=Progress())


def test_a_plan_that_moved_by_less_than_a_twentieth_may_be_approved() -> None:
    assert seals.changes(seals.seal(drain()), drain(moves=drain().plan.moves[1:], eta_hours=10.4)) == ()  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("changed", "word"),
    [
        ({"moves": ()}, "bytes to move"),
        ({"eta_hours": 20.0}, "hours"),
        ({"fullest_after": 0.84}, "fullest"),
        ({"fullest_after": None}, "unknown"),
        ({"mechanic": Mechanic.OVERRIDE_LADDER}, "mechanic"),
        ({"refusals": ("osd.4 would be full",)}, "reasons against it"),
    ],
)
def test_a_plan_that_moved_by_more_is_named(changed: dict[str, object], word: str) -> None:
    (told,) = seals.changes(seals.seal(drain()), drain(**changed))
    assert word in told


@given(st.text())
def test_a_tag_that_is_none_of_ours_never_passes(tag: str) -> None:
    assert seals.changes(tag, drain())


def test_a_first_bundle_needs_no_quiet_and_a_second_one_is_remembered_over_restarts() -> None:
    store = SqliteStore(":memory:")
    assert succession.since(store, "one", NOON) is None
    assert succession.since(store, "one", NOON + MINUTE) is None
    assert succession.since(store, "two", NOON + 2 * MINUTE) == NOON + 2 * MINUTE
    assert succession.since(store, "two", NOON + 3 * MINUTE) == NOON + 2 * MINUTE
    store.close()
