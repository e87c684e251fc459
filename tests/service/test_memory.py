"""The facts that an application remembers and reports: announcements, curves, changes, plan ETags, bundles."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from predrain.actions.controller import plan_etags
from predrain.data.drain import Drain, DrainState, Intent, Mechanic, Move, Plan, Progress
from predrain.data.hold_reason import HoldCause, HoldReason
from predrain.data.ids import DeviceId, OsdId, PgId
from predrain.data.log.log_port import Delivered
from predrain.data.outlook import GRAVITY, Outlook, Status, borne_out
from predrain.data.plan_refusal import PlanRefusal, PlanRefusalKind
from predrain.data.store.sqlite_store import SqliteStore
from predrain.service.app.changes import ChangeFeed, ChangeKind
from predrain.service.fleet.drain_timeline import (
    DrainSample,
    HoldPeriod,
    Timelines,
    decode_drain_sample,
    encode_drain_sample,
    find_hold_periods,
)
from predrain.service.forecasting import model_succession
from predrain.service.streams.outlook_announcements import AnnouncementReason, Announcements, why_announce
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
        (None, outlook(Status.WARNING), AnnouncementReason.WORSE),
        (outlook(Status.WARNING), outlook(Status.BAD), AnnouncementReason.WORSE),
        (outlook(Status.BAD, 0.3), outlook(Status.BAD, 0.5), None),
        (outlook(Status.BAD, 0.3), outlook(Status.BAD, 0.6), AnnouncementReason.DOUBLED),
        (outlook(Status.WARNING, 0.01), outlook(Status.WARNING, 0.04), None),
        (outlook(Status.BAD), outlook(Status.WARNING), AnnouncementReason.BETTER),
        (outlook(Status.BAD), outlook(Status.GOOD), AnnouncementReason.BETTER),
    ],
)
def test_only_news_is_announced(before: Outlook | None, now: Outlook, why: AnnouncementReason | None) -> None:
    assert why_announce(before, now) is why


@pytest.mark.parametrize("milder", [Status.WARNING, Status.GOOD])
def test_a_bad_disk_gets_better_with_the_third_reading_that_says_so(milder: Status) -> None:
    bad, first, second, third = outlooks_of(Status.BAD, milder, milder, milder)
    assert [one.severity for one in (bad, first, second, third)] == [Status.BAD] * 3 + [milder]
    assert [why_announce(bad, one) for one in (first, second, third)] == [
        None,
        None,
        AnnouncementReason.BETTER,
    ]


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
    news = told.select_news([outlook(Status.BAD), outlook(Status.BAD, minute=1)])
    assert len(news) == 1
    told.remember_alerts(news)
    told.remember_alerts(news)
    assert told.select_news([outlook(Status.BAD)]) == ()
    assert len(told.list_newest_alerts()) == 1


@given(st.lists(st.sets(st.sampled_from(list(ChangeKind)), min_size=1), max_size=30), st.integers(0, 30))
def test_a_listener_hears_every_kind_that_changed_since_it_last_asked(
    told: list[set[ChangeKind]], asked: int
) -> None:
    changes = ChangeFeed(remembered=8)
    for kinds in told:
        changes.notify_change(*kinds)
    number, heard = changes.find_changes_since(min(asked, len(told)))
    assert number == len(told)
    missed = set().union(*told[min(asked, len(told)) :])
    assert heard >= missed
    if len(told) - asked <= 8:
        assert heard == missed


def sample(minute: int, left: int, *why: str) -> DrainSample:
    return DrainSample(
        "d", NOON + minute * MINUTE, left, 1, None, why, HoldCause(HoldReason.SPACE) if why else None
    )


def test_a_hold_lasts_from_its_first_look_to_the_first_without_it() -> None:
    halted = replace(sample(4, 5, "halt"), hold=HoldCause(HoldReason.HALT))
    line = [sample(0, 9), sample(1, 8, "full"), sample(2, 7, "full"), sample(3, 6), halted]
    assert find_hold_periods(line) == (
        HoldPeriod(NOON + MINUTE, NOON + 3 * MINUTE, "full"),
        HoldPeriod(NOON + 4 * MINUTE, None, "halt"),
    )


def test_a_hold_goes_on_while_its_figures_change_and_ends_where_its_cause_does() -> None:
    space = HoldCause(HoldReason.SPACE, OsdId(4))
    line = [
        replace(sample(1, 8, "osd.4 would be 86% full."), hold=space),
        replace(sample(2, 8, "osd.4 would be 87% full."), hold=space),
        replace(sample(3, 8, "osd.5 would be 86% full."), hold=HoldCause(HoldReason.SPACE, OsdId(5))),
        replace(sample(4, 8, "Halted."), hold=HoldCause(HoldReason.HALT)),
    ]
    assert find_hold_periods(line) == (
        HoldPeriod(NOON + MINUTE, NOON + 3 * MINUTE, "osd.4 would be 86% full."),
        HoldPeriod(NOON + 3 * MINUTE, NOON + 4 * MINUTE, "osd.5 would be 86% full."),
        HoldPeriod(NOON + 4 * MINUTE, None, "Halted."),
    )


def test_a_sample_with_other_figures_of_the_same_hold_is_not_kept() -> None:
    lines = Timelines()
    assert lines.add_samples([sample(0, 9, "86% full"), sample(1, 9, "87% full")]) == (
        sample(0, 9, "86% full"),
    )


def test_the_cause_of_a_hold_is_in_the_record_of_a_sample() -> None:
    one = replace(sample(0, 9, "osd.4 would be 86% full."), hold=HoldCause(HoldReason.SPACE, OsdId(4)))
    record = encode_drain_sample(one)
    assert decode_drain_sample(Delivered(0, record.key, record.value)) == one


def test_a_held_sample_of_version_0_1_0_is_one_hold_of_another_reason() -> None:
    old = b'{"drain":"d","at":"2026-03-01T12:00:00Z","bytes_left":9,"in_flight":1,"latency_ratio":null,'
    old += b'"held_by":["full"]}'
    read = decode_drain_sample(Delivered(0, "d", old))
    assert read.hold_cause == HoldCause(HoldReason.OTHER)
    assert find_hold_periods([read]) == (HoldPeriod(read.at, None, "full"),)


def test_a_long_curve_loses_detail_but_neither_end() -> None:
    lines = Timelines(kept=100)
    lines.add_samples(sample(minute, 10_000 - minute) for minute in range(1000))
    kept = lines.list_samples("d")
    assert len(kept) <= 100
    assert (kept[0].at, kept[-1].at) == (NOON, NOON + 999 * MINUTE)
    assert [one.at for one in kept] == sorted(one.at for one in kept)


def test_a_look_that_tells_nothing_new_is_not_kept() -> None:
    lines = Timelines()
    assert lines.add_samples([sample(0, 9), sample(1, 9), sample(2, 8)]) == (sample(0, 9), sample(2, 8))


def drain(**changed: object) -> Drain:
    moves = tuple(Move(PgId(f"1.{n}"), OsdId(0), OsdId(n + 1), 100) for n in range(20))
    plan = Plan(Mechanic.UPMAP_WALK, "", 7, moves, OsdId(3), 0.7, 0.5, 10.0)
    one = Drain("d", None, (OsdId(0),), DrainState.PROPOSED, Intent.REPLACE, "x", "", NOON, NOON, plan=plan)
    plan = replace(plan, **changed)  # type: ignore[arg-type]
    return replace(one, plan=plan, progress=Progress())


def test_a_plan_that_moved_by_less_than_a_twentieth_may_be_approved() -> None:
    assert (
        plan_etags.describe_plan_changes(
            plan_etags.encode_plan_etag(drain()), drain(moves=drain().plan.moves[1:], eta_hours=10.4)
        )
        == ()
    )  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("changed", "word"),
    [
        ({"moves": ()}, "bytes to move"),
        ({"eta_hours": 20.0}, "hours"),
        ({"fullest_after": 0.84}, "fullest"),
        ({"fullest_after": None}, "unknown"),
        ({"mechanic": Mechanic.OVERRIDE_LADDER}, "mechanic"),
        ({"refusals": (PlanRefusal(PlanRefusalKind.SIZES_UNKNOWN, osd=OsdId(4)),)}, "reasons against it"),
    ],
)
def test_a_plan_that_moved_by_more_is_named(changed: dict[str, object], word: str) -> None:
    (told,) = plan_etags.describe_plan_changes(plan_etags.encode_plan_etag(drain()), drain(**changed))
    assert word in told


@given(st.text())
def test_a_tag_that_is_none_of_ours_never_passes(tag: str) -> None:
    assert plan_etags.describe_plan_changes(tag, drain())


def test_a_first_bundle_needs_no_quiet_and_a_second_one_is_remembered_over_restarts() -> None:
    store = SqliteStore(":memory:")
    assert model_succession.record_deployment(store, "one", NOON) is None
    assert model_succession.record_deployment(store, "one", NOON + MINUTE) is None
    assert model_succession.record_deployment(store, "two", NOON + 2 * MINUTE) == NOON + 2 * MINUTE
    assert model_succession.record_deployment(store, "two", NOON + 3 * MINUTE) == NOON + 2 * MINUTE
    store.close()
