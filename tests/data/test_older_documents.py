"""Documents of version 0.1.0 lack typed fields: these are read from their sentences once, where a document is read."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from predrain.data.drain import Bound, BoundKind, JournalEntry, JournalEvent, Plan
from predrain.data.messages import describe_bottleneck, describe_bound, describe_plan_refusal
from predrain.data.plan_refusal import PlanRefusalKind
from predrain.data.wire.strict_json import InvalidValue
from predrain.data.wire.wire_bodies import DRAIN, JOURNAL_ENTRY

TESTS = Path(__file__).parents[1]
AT = datetime(2026, 11, 21, 3, 2, tzinfo=UTC)


def _old_document(decided: str) -> bytes:
    return (
        f'{{"drain":"osd.3-1","at":"2026-11-21T03:02:00Z","seen":"epoch 7","decided":"{decided}"}}'.encode()
    )


@pytest.mark.parametrize(
    ("decided", "event", "reason"),
    [
        ("begin: walk by upmap; it takes about 3.1 h", JournalEvent.BEGUN, ""),
        ("verified: every copy is counted elsewhere", JournalEvent.COUNTED, ""),
        ("hold: PG 1.2 is degraded.", JournalEvent.HELD, ""),
        ("hold", JournalEvent.HELD, ""),
        ("wait: nothing has moved for 2 h: 1.2 is backfill_toofull", JournalEvent.WAITED, ""),
        ("halt: smoke: in rack 4", JournalEvent.HALTED, "smoke: in rack 4"),
        ("lift the halt", JournalEvent.HALT_LIFTED, ""),
        ("hold osd_max_backfills 1", None, ""),
        ("begin to look", None, ""),
        ("", None, ""),
    ],
)
def test_a_line_of_version_0_1_0_gets_the_event_that_its_sentence_names(
    decided: str, event: JournalEvent | None, reason: str
) -> None:
    read = JOURNAL_ENTRY.read(_old_document(decided))
    assert read == JournalEntry("osd.3-1", AT, "epoch 7", decided, event=event, reason=reason)


def test_the_event_of_a_line_comes_before_its_sentence() -> None:
    line = JournalEntry("osd.3-1", AT, "", "begin: walk", event=JournalEvent.WAITED)
    assert JOURNAL_ENTRY.read(JOURNAL_ENTRY.write(line)) == line


def test_a_line_without_an_event_is_stored_as_version_0_1_0_stored_it() -> None:
    line = JournalEntry("osd.3-1", AT, "epoch 7", "plan anew")
    assert JOURNAL_ENTRY.write(line) == _old_document("plan anew")
    assert (
        JOURNAL_ENTRY.read(JOURNAL_ENTRY.write(replace(line, event=JournalEvent.HELD))).event
        is JournalEvent.HELD
    )


def _older_drain(**changed: object) -> bytes:
    """A drain as version 0.1.0 stored it, with other fields of its plan."""
    kept = json.loads((TESTS / "service" / "v0_1_0" / "cluster_keys.json").read_text())
    document = json.loads(kept["predrain/drain/osd.0"].partition("\n")[2])
    document["plan"] |= changed
    return json.dumps(document).encode()


def _read_plan(raw: bytes) -> Plan:
    plan = DRAIN.read(raw).plan
    assert plan is not None
    return plan


def test_the_bounds_of_a_plan_of_version_0_1_0_get_the_kinds_that_their_names_tell() -> None:
    old = _older_drain()
    assert b'"kind"' not in old
    assert [bound.kind for bound in _read_plan(old).bounds] == [
        BoundKind.PRIMARY_FILLS,
        BoundKind.TARGET_WRITES,
        BoundKind.SOURCE_READS,
        BoundKind.IN_FLIGHT,
        BoundKind.PEERING,
        BoundKind.HOST_NETWORK,
        BoundKind.TARGET_STARTS,
        BoundKind.POLLS,
        BoundKind.OVERRIDE_ZERO,
    ]


def test_the_bounds_and_the_bottleneck_of_an_older_plan_keep_their_words() -> None:
    old = _older_drain()
    stored = json.loads(old)["plan"]
    plan = _read_plan(old)
    assert [describe_bound(bound) for bound in plan.bounds] == [bound["name"] for bound in stored["bounds"]]
    assert [bound.hours for bound in plan.bounds] == [bound["hours"] for bound in stored["bounds"]]
    assert describe_bottleneck(plan) == stored["bottleneck"]


def test_an_older_quarantine_keeps_the_words_of_its_bottleneck() -> None:
    old = _older_drain(
        mechanic="primary affinity", stirred=["1.0"], bounds=[], bottleneck="3 PGs peering at once"
    )
    plan = _read_plan(old)
    assert [bound.kind for bound in plan.bounds] == [BoundKind.PEERING]
    assert describe_bottleneck(plan) == "3 PGs peering at once"


def test_the_refusals_of_an_older_plan_are_told_as_they_were() -> None:
    told = ["osd.4 would be 86% full, limit 85%.", "PG 1.0 has no {legal} place."]
    plan = _read_plan(_older_drain(refusals=told))
    assert {one.kind for one in plan.refusals} == {PlanRefusalKind.OLDER_SENTENCE}
    assert [describe_plan_refusal(one) for one in plan.refusals] == told


def test_an_older_drain_that_is_written_again_is_read_as_the_same() -> None:
    read = DRAIN.read(_older_drain(refusals=["There is no room."]))
    assert DRAIN.read(DRAIN.write(read)) == read


@pytest.mark.parametrize(
    "plan", [None, [], {"bottleneck": 7}, {"bounds": ["then 6 looks"]}, {"bounds": [{"kind": "network"}]}]
)
def test_a_damaged_older_plan_is_refused_as_any_damaged_drain(plan: object) -> None:
    document = json.loads(_older_drain())
    document["plan"] = document["plan"] | plan if isinstance(plan, dict) else plan
    if plan is None:
        assert DRAIN.read(json.dumps(document).encode()).plan is None
    else:
        with pytest.raises(InvalidValue):
            DRAIN.read(json.dumps(document).encode())


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("osd.3, which receives 2 PGs, 8 on their way at once", BoundKind.TARGET_STARTS),
        ("osd.3, which receives 17 GiB at 40 MB/s", BoundKind.TARGET_WRITES),
        ("osd.3, which reads 17 GiB at 40 MB/s", BoundKind.SOURCE_READS),
        ("osd.3, which leads PGs of 17 GiB and fills one at a time at 40 MB/s", BoundKind.PRIMARY_FILLS),
        ("the network of a, 17 GiB at 40 MB/s", BoundKind.HOST_NETWORK),
        ("8 PGs in flight at 40 MB/s each", BoundKind.IN_FLIGHT),
        ("8 PGs peering at once", BoundKind.PEERING),
        ("one PG at a time, for want of a latency signal", BoundKind.ONE_BY_ONE),
        ("then 6 looks to begin and to end", BoundKind.POLLS),
        ("then override 0: 2 PGs peer once more", BoundKind.OVERRIDE_ZERO),
        ("then CRUSH weight 0: 2 PGs pinned where they are", BoundKind.WEIGHT_ZERO),
    ],
)
def test_a_sentence_of_each_kind_of_bound_is_read_as_that_kind(name: str, kind: BoundKind) -> None:
    plan = _read_plan(_older_drain(bounds=[{"name": name, "hours": 1.0}]))
    assert plan.bounds == (Bound(kind, 1.0, text=name),)
