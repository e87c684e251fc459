"""The mgr module's report of the service, the text in which the module keeps it for the next mgr, and the health checks
that follow from it.
"""

from __future__ import annotations

import contextlib
import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from predrain.actions.ceph_mgr.predrain.command_texts import (
    UnknownName,
    build_osd_detail_reply,
    build_osd_list_reply,
    build_status_reply,
    format_drain_plan,
)
from predrain.actions.ceph_mgr.predrain.health_checks import build_health_checks
from predrain.actions.ceph_mgr.predrain.json_fields import InvalidField
from predrain.actions.ceph_mgr.predrain.last_report import (
    KEPT_BYTES,
    LastReport,
    decode_last_report,
    encode_last_report,
    format_age,
)
from predrain.actions.ceph_mgr.predrain.service_report import (
    ServiceReport,
    decode_service_report,
    drains_of,
    encode_service_report,
    osds_of,
    state_of,
)

NOW = 1_800_000_000.0
STATE: dict[str, Any] = {
    "cluster": "c", "mode": "propose", "controller": "running", "halted": None, "forecast": {"expected_30d": 0.8},
    "view_age_seconds": 3.0,
}  # fmt: skip


def osd(number: int, status: str = "good", **changed: Any) -> dict[str, Any]:
    row: dict[str, Any] = {
        "osd": number, "host": "h1", "device": f"ACME_D_{number}", "status": status, "p_fail_30d": 0.25,
        "life_p10_days": 2.0, "life_p90_days": None, "reasons": ["16 sectors pending"], "prescription": "drain it",
        "drain": None,
    }  # fmt: skip
    return {**row, **changed}


def drain(id_: str = "osd.1-x", state: str = "holding", **changed: Any) -> dict[str, Any]:
    row: dict[str, Any] = {
        "id": id_, "device": "ACME_D_1", "osds": [1], "state": state, "intent": "replace", "reason": "bad",
        "held_by": ["osd.4 would be 86 % full, limit 85 %."], "end_reason": "", "etag": '"abc"',
        "progress": {"planned_pgs": 9, "moved_pgs": 3, "planned_bytes": 900, "moved_bytes": 300},
    }  # fmt: skip
    return {**row, **changed}


def told(
    osds: list[dict[str, Any]], drains: list[dict[str, Any]] | None = None, **state: Any
) -> ServiceReport:
    return ServiceReport(
        state_of({**STATE, **state}), osds_of({"items": osds}), drains_of({"items": drains or []})
    )


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
)
ROWS = [
    ("items", osd(1, "bad", drain={"id": "x"}), osds_of),
    ("items", drain(), drains_of),
    ("", STATE, state_of),
]


@pytest.mark.parametrize(("within", "row", "parse"), ROWS, ids=["osds", "drains", "status"])
@given(data=st.data())
def test_a_field_with_any_json_value_is_read_or_refused(
    within: str, row: dict[str, Any], parse: Any, data: st.DataObject
) -> None:
    lied = copy.deepcopy(row)
    name = data.draw(st.sampled_from(sorted(row)))
    lied[name] = data.draw(JSON)
    with contextlib.suppress(InvalidField):
        parse({within: [lied]} if within else lied)


@given(JSON)
def test_any_other_answer_is_refused_and_breaks_nothing(body: Any) -> None:
    for parse in (osds_of, drains_of, state_of):
        with pytest.raises(InvalidField):
            parse(body)


@pytest.mark.parametrize(
    "changed",
    [
        {"status": "fine"}, {"osd": -1}, {"osd": True}, {"osd": 1.5}, {"p_fail_30d": 1.5}, {"p_fail_30d": "0.5"},
        {"reasons": "x"}, {"reasons": [1]}, {"host": None}, {"life_p10_days": -1}, {"drain": "x"},
        {"drain": {"id": "x\r\ny"}},
    ],
)  # fmt: skip
def test_one_row_that_cannot_be_so_refuses_the_whole_answer(changed: dict[str, Any]) -> None:
    with pytest.raises(InvalidField):
        osds_of({"items": [osd(0), osd(1, **changed)]})


def test_the_report_kept_for_the_next_mgr_fits_a_config_key_and_holds_the_worst_osds() -> None:
    many = [osd(n, "good") for n in range(5000)] + [
        osd(n, "bad", why=["y" * 300] * 9) for n in range(5000, 6000)
    ]
    known = LastReport().with_report(told(many, [drain()]), NOW)
    text = encode_last_report(known)
    assert len(text.encode()) <= KEPT_BYTES
    again = decode_last_report(text, NOW + 60)
    assert again.told is not None
    assert again.age(NOW + 60) == 60
    assert {one.status for one in again.told.osds} == {"bad"}
    assert len(again.told.osds) + again.told.cut == 6000
    assert [one.id for one in again.told.drains] == ["osd.1-x"]


@given(st.text() | JSON.map(json.dumps))
def test_a_new_mgr_starts_with_any_kept_text(text: str) -> None:
    assert decode_last_report(text, NOW).told is None


def test_checks_name_disks_drains_and_the_guard_that_refuses() -> None:
    known = LastReport().with_report(told([osd(0), osd(1, "bad"), osd(2, "warning")], [drain()]), NOW)
    found = build_health_checks(known, "http://x", NOW)
    assert sorted(found) == ["PREDRAIN_DEVICE_BAD", "PREDRAIN_DEVICE_WARNING", "PREDRAIN_DRAIN_HELD"]
    assert found["PREDRAIN_DEVICE_BAD"]["count"] == 1
    assert (
        "osd.1 on h1 (ACME_D_1): 25.0 % within 30 days; 16 sectors pending"
        in found["PREDRAIN_DEVICE_BAD"]["detail"]
    )
    assert found["PREDRAIN_DRAIN_HELD"]["detail"] == [
        "osd.1-x (osd.1): osd.4 would be 86 % full, limit 85 %."
    ]


def test_the_check_of_a_held_drain_says_its_ways_out_which_an_older_service_does_not_tell() -> None:
    ways = [
        {"way": "make_room", "sentence": "Free 12 GiB on osd.1."},
        {"way": "cancel", "sentence": "Cancel it."},
    ]
    found = told([], [drain(ways_out=ways)])
    (line,) = build_health_checks(LastReport().with_report(found, NOW), "http://x", NOW)[
        "PREDRAIN_DRAIN_HELD"
    ]["detail"]
    assert line.endswith("limit 85 %. Ways out: Free 12 GiB on osd.1. Cancel it.")
    assert decode_service_report(json.loads(json.dumps(encode_service_report(found)))) == found
    assert told([], [drain()]).drains[0].ways_out == ()


def test_nothing_wrong_is_no_check() -> None:
    moves = {**drain(state="draining"), "held_by": []}
    assert build_health_checks(LastReport().with_report(told([osd(0)], [moves]), NOW), "http://x", NOW) == {}


def test_unreachable_is_said_only_after_several_rounds_and_what_was_known_stays() -> None:
    known = LastReport().with_report(told([osd(1, "bad")]), NOW)
    for _ in range(2):
        known = known.with_failure("gone")
    assert sorted(build_health_checks(known, "http://x", NOW + 30)) == ["PREDRAIN_DEVICE_BAD"]
    found = build_health_checks(known.with_failure("gone"), "http://x", NOW + 300)
    assert sorted(found) == ["PREDRAIN_DEVICE_BAD", "PREDRAIN_SERVICE_UNREACHABLE"]
    assert found["PREDRAIN_SERVICE_UNREACHABLE"]["detail"] == ["http://x: gone", "last answer: 5 min ago"]
    assert (
        found["PREDRAIN_DEVICE_BAD"]["summary"]
        == build_health_checks(known, "http://x", NOW)["PREDRAIN_DEVICE_BAD"]["summary"]
    )


def test_a_service_that_is_not_set_is_not_unreachable() -> None:
    assert build_health_checks(LastReport(failures=9), "", NOW) == {}


@pytest.mark.parametrize(
    "known",
    [
        LastReport(halted="why"),
        LastReport(halt_unread="why"),
        LastReport().with_report(told([], halted="why"), NOW),
    ],
)
def test_a_halt_is_shown_whoever_set_it_and_when_it_cannot_be_read(known: LastReport) -> None:
    assert build_health_checks(known, "", NOW)["PREDRAIN_HALTED"]["detail"][0] == "why: why"


def test_details_are_bounded() -> None:
    known = LastReport().with_report(told([osd(n, "bad") for n in range(500)]), NOW)
    detail = build_health_checks(known, "x", NOW)["PREDRAIN_DEVICE_BAD"]["detail"]
    assert len(detail) == 51
    assert detail[-1] == "and 450 more: ceph predrain ls --bad"


def test_osds_of_another_cluster_are_left_out_and_counted() -> None:
    known = LastReport().with_report(told([osd(0), osd(7, "bad")]), NOW).limit_to_osds({0: "up", 1: "up"})
    assert build_health_checks(known, "x", NOW) == {}
    assert (
        "1 OSDs of the service are not in this cluster"
        in build_status_reply(known, "x", "mirror", NOW, "", signs=True)[1]
    )


def test_lists_begin_with_the_worst_and_say_how_old_they_are() -> None:
    known = LastReport().with_report(told([osd(0), osd(1, "warning"), osd(2, "bad", p_fail_30d=None)]), NOW)
    body, text = build_osd_list_reply(known, bad=False, now=NOW + 7)
    assert [one["osd"] for one in body["osds"]] == [2, 1, 0]
    assert text.splitlines()[0] == "as of 7 s ago"
    assert "osd.2  h1    ACME_D_2  bad      -" in text
    assert [one["osd"] for one in build_osd_list_reply(known, bad=True, now=NOW)[0]["osds"]] == [2, 1]


@pytest.mark.parametrize("target", ["osd.2", "2", "ACME_D_2"])
def test_an_osd_is_shown_by_number_or_device(target: str) -> None:
    known = LastReport().with_report(
        told([osd(1), osd(2, "bad", drain={"id": "osd.2-x"})], [drain("osd.2-x")]), NOW
    )
    body, text = build_osd_detail_reply(known, target, NOW)
    assert [one["osd"] for one in body["osds"]] == [2]
    assert "osd.2-x holding, 3 of 9 PGs moved: osd.4 would be 86 % full" in text


def test_a_request_about_an_osd_that_no_report_names_is_refused_with_the_reason() -> None:
    with pytest.raises(UnknownName, match="has sent no report yet"):
        build_osd_detail_reply(LastReport(), "osd.1", NOW)
    with pytest.raises(UnknownName, match=r"nothing is known of osd\.9"):
        build_osd_detail_reply(LastReport().with_report(told([osd(1)]), NOW), "osd.9", NOW)


def test_the_report_of_another_service_is_forgotten() -> None:
    known = LastReport(url="http://a", halted="why").with_report(told([osd(1, "bad")]), NOW)
    assert decode_last_report(encode_last_report(known), NOW).for_url("http://a").told is not None
    assert known.for_url("http://b") == LastReport(url="http://b", halted="why")
    assert decode_last_report(encode_last_report(known), NOW).for_url("").told is None


def test_the_kept_report_stays_the_same_while_only_ages_change() -> None:
    one = LastReport().with_report(told([osd(1, "bad")], view_age_seconds=1.0), NOW)
    other = LastReport().with_report(told([osd(1, "bad")], view_age_seconds=9.0), NOW)
    assert encode_last_report(one) == encode_last_report(other)


def test_ages_are_in_words() -> None:
    assert [format_age(age) for age in (None, 5, 119, 120, 7200, 172800)] == [
        "never", "5 s ago", "119 s ago", "2 min ago", "2 h ago", "2 d ago",
    ]  # fmt: skip


@pytest.mark.parametrize("state", ["preparing", "draining", "holding", "drained", "cancelling"])
def test_a_drain_that_has_begun_and_is_refused_is_held_whatever_its_state(state: str) -> None:
    row = {**drain(), "state": state}
    assert "PREDRAIN_DRAIN_HELD" in build_health_checks(
        LastReport().with_report(told([], [row]), NOW), "http://x", NOW
    )
    if state != "holding":
        assert not build_health_checks(
            LastReport().with_report(told([], [{**row, "held_by": []}]), NOW), "http://x", NOW
        )


def test_a_plan_that_moves_nothing_names_no_target() -> None:
    said = {
        "mechanic": "walk by upmap",
        "reason": "nothing is on it",
        "bytes": 0,
        "pgs": 0,
        "fullest_osd": None,
    }
    assert "fullest" not in format_drain_plan("osd.1", said)
    assert "osd.7, 81 % full" in format_drain_plan("osd.1", {**said, "fullest_osd": 7, "fullest_after": 0.81})
