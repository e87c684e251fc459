"""A refusal of a plan is a value: it is compared by its figures, stored with the drain, and written as one sentence."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from pathlib import Path

import pytest

from predrain.data.drain import Bound, BoundKind, Mechanic
from predrain.data.ids import OsdId, PgId
from predrain.data.messages import describe_bottleneck, describe_bound, describe_plan_refusal
from predrain.data.plan_refusal import PlanRefusal, PlanRefusalKind
from predrain.data.wire.wire_bodies import DRAIN

KEPT = Path(__file__).parents[1] / "service" / "v0_1_0" / "cluster_keys.json"
WITH_ALL = PlanRefusal(
    PlanRefusalKind.TARGET_TOO_FULL, osd=OsdId(4), osds=(OsdId(0), OsdId(1)), pg=PgId("1.a"), pgs=1, others=9,
    members=(1, 2), computed=(3, 4), percent=86, limit_percent=85, pool="rbd", size=3, rule=7, name="straw-bucket",
    step="straw", cause=PlanRefusalKind.LOCAL_RETRIES, text="As version 0.1.0 said it.",
)  # fmt: skip


@pytest.mark.parametrize("kind", PlanRefusalKind)
def test_each_kind_is_told_as_one_whole_sentence_without_an_empty_figure(kind: PlanRefusalKind) -> None:
    told = describe_plan_refusal(replace(WITH_ALL, kind=kind))
    assert told.endswith(".")
    assert told[:1].isupper() or told.startswith(("osd.4", "3 members"))
    assert not any(sign in told for sign in ("{", "}", "None", "  ", " ,", "PlanRefusal"))


@pytest.mark.parametrize("kind", PlanRefusalKind)
def test_each_kind_is_stored_with_all_its_figures(kind: PlanRefusalKind) -> None:
    drain = DRAIN.read(json.loads(KEPT.read_text())["predrain/drain/osd.0"].partition("\n")[2].encode())
    assert drain.plan is not None
    refused = replace(drain, plan=replace(drain.plan, refusals=(replace(WITH_ALL, kind=kind),)))
    assert DRAIN.read(DRAIN.write(refused)) == refused


def test_a_figure_that_a_refusal_does_not_have_is_not_stored() -> None:
    drain = DRAIN.read(json.loads(KEPT.read_text())["predrain/drain/osd.0"].partition("\n")[2].encode())
    assert drain.plan is not None
    one = PlanRefusal(PlanRefusalKind.SIZES_UNKNOWN, osd=OsdId(4))
    document = json.loads(DRAIN.write(replace(drain, plan=replace(drain.plan, refusals=(one,)))))
    assert document["plan"]["refusals"] == [{"kind": "sizes_unknown", "osd": 4}]


@pytest.mark.parametrize("figure", [field.name for field in fields(PlanRefusal) if field.name != "kind"])
def test_refusals_that_differ_in_one_figure_are_not_equal(figure: str) -> None:
    bare = PlanRefusal(PlanRefusalKind.TARGET_TOO_FULL)
    assert replace(bare, **{figure: getattr(WITH_ALL, figure)}) != bare


def test_a_limit_of_zero_is_told_as_ratios_that_leave_no_room() -> None:
    told = describe_plan_refusal(replace(WITH_ALL, limit_percent=0))
    assert (
        told == "osd.4 would be 86% full, and the cluster's nearfull and backfillfull ratios leave no room."
    )


def test_a_quarantine_that_is_not_computed_is_told_with_the_cause() -> None:
    told = describe_plan_refusal(replace(WITH_ALL, kind=PlanRefusalKind.PRIMARIES_UNKNOWN))
    assert told.startswith("Which PGs it leads cannot be computed: Rule straw-bucket retries locally")


@pytest.mark.parametrize(
    ("bound", "told"),
    [
        (
            Bound(BoundKind.TARGET_STARTS, 1.0, OsdId(3), pgs=1, at_once=2),
            "osd.3, which receives 1 PG, 2 on their way at once",
        ),
        (
            Bound(BoundKind.SOURCE_READS, 1.0, OsdId(3), bytes=17 * 2**30, bytes_per_second=6e7),
            "osd.3, which reads 17 GiB at 60 MB/s",
        ),
        (
            Bound(BoundKind.HOST_NETWORK, 1.0, host="stor-01", bytes=2**40, bytes_per_second=6e8),
            "the network of stor-01, 1.0 TiB at 600 MB/s",
        ),
        (Bound(BoundKind.POLLS, 1.0, polls=6), "then 6 polls to begin and to end"),
        (
            Bound(BoundKind.POLLS, 1.0, text="then 6 looks to begin and to end"),
            "then 6 looks to begin and to end",
        ),
    ],
)
def test_a_bound_is_told_with_its_figures_or_as_an_older_document_told_it(bound: Bound, told: str) -> None:
    assert describe_bound(bound) == told


def test_a_plan_without_a_bound_says_why_it_has_no_bottleneck() -> None:
    drain = DRAIN.read(json.loads(KEPT.read_text())["predrain/drain/osd.0"].partition("\n")[2].encode())
    assert drain.plan is not None
    empty = replace(drain.plan, bounds=())
    assert describe_bottleneck(empty) == "nothing to move"
    assert describe_bottleneck(replace(empty, mechanic=Mechanic.PRIMARY_AFFINITY)) == "nothing to change"
    assert describe_bottleneck(replace(empty, eta_hours=None)) == "unknown"
