"""The guards of requests about disks, as rules: each refuses for its own reason and for no other."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from predrain.actions.simulator import SimulatedCluster
from predrain.actions.simulator.worlds import build_tiny_cluster
from predrain.data.disk_request import DiskPermission, DiskRequest, DiskVerb, HostSelfTest
from predrain.data.drain import Drain, DrainState, Intent
from predrain.data.ids import DeviceId, HostName, OsdId
from predrain.data.self_test import SelfTestKind
from predrain.service.disk_requests.request_guards import (
    SILENT_AFTER,
    CollectorState,
    RequestRefusalKind,
    RequestSituation,
    count_unclean_pgs,
    find_drains_of_disk,
    find_request_refusals,
    find_unclean_pgs,
)
from predrain.service.disk_requests.request_sentences import describe_request_refusal
from tests.service.conftest import NOON

K, V = RequestRefusalKind, DiskVerb
DISK, OTHER, HOST = DeviceId("A_B_1"), DeviceId("A_B_2"), HostName("stor-01")
BOTH = (DiskPermission.SELF_TEST, DiskPermission.LOCATE)
CALM = RequestSituation(
    device=DISK, host=HOST, now=NOON, is_living=True,
    collector=CollectorState(HOST, NOON - timedelta(seconds=20), BOTH, has_key=True),
    halted=False, drains=(), unclean_pgs=0, open_requests=(),
)  # fmt: skip
TESTS = (V.SHORT_TEST, V.LONG_TEST)
LIGHTS = (V.LOCATE_ON, V.LOCATE_OFF)


def drain(state: DrainState, intent: Intent = Intent.REPLACE) -> Drain:
    return Drain("d1", DISK, (OsdId(0),), state, intent, "x", "", NOON, NOON)


def asked(device: DeviceId, verb: DiskVerb) -> DiskRequest:
    return DiskRequest("r1", HOST, device, verb, "anna", NOON, NOON + timedelta(minutes=10))


def told(**changed: Any) -> CollectorState:
    assert CALM.collector is not None
    fields = {name: getattr(CALM.collector, name) for name in CALM.collector.__struct_fields__}
    return CollectorState(**{**fields, **changed})


def kinds(verb: DiskVerb, **changed: Any) -> set[RequestRefusalKind]:
    return {one.kind for one in find_request_refusals(verb, replace(CALM, **changed))}


@pytest.mark.parametrize("verb", DiskVerb)
def test_a_calm_host_that_allows_it_may_be_asked(verb: DiskVerb) -> None:
    assert kinds(verb) == set()


@pytest.mark.parametrize(
    ("changed", "kind"),
    [
        ({"is_living": False}, K.DISK_GONE),
        ({"halted": True}, K.HALTED),
        ({"drains": (drain(DrainState.DRAINING),)}, K.DISK_DRAINS),
        ({"drains": (drain(DrainState.APPROVED),)}, K.DISK_DRAINS),
        ({"drains": (drain(DrainState.PAUSED),)}, K.DISK_DRAINS),
        ({"drains": (drain(DrainState.CANCELLING),)}, K.DISK_DRAINS),
        ({"drains": (drain(DrainState.DRAINING, Intent.FILL),)}, K.OSD_FILLS),
        ({"unclean_pgs": 3}, K.PGS_UNCLEAN),
        ({"unclean_pgs": None}, K.CLUSTER_UNKNOWN),
        ({"collector": told(running=(HostSelfTest(DISK, SelfTestKind.SHORT),))}, K.TEST_RUNNING),
    ],
)
def test_each_guard_refuses_both_tests_and_no_light(changed: Any, kind: RequestRefusalKind) -> None:
    for verb in TESTS:
        assert kinds(verb, **changed) == {kind}
    for verb in LIGHTS:
        assert kinds(verb, **changed) == set()


@pytest.mark.parametrize(
    ("changed", "kind"),
    [
        ({"host": HostName("")}, K.NO_HOST),
        ({"collector": None}, K.HOST_SILENT),
        ({"collector": told(asked_at=NOON - SILENT_AFTER - timedelta(seconds=1))}, K.HOST_SILENT),
        ({"collector": told(has_key=False)}, K.NO_KEY),
        ({"collector": told(allow=())}, K.NOT_ALLOWED),
        ({"open_requests": (asked(DISK, V.LOCATE_ON),)}, K.REQUEST_OPEN),
    ],
)
def test_a_host_that_cannot_be_asked_is_asked_for_nothing(changed: Any, kind: RequestRefusalKind) -> None:
    for verb in DiskVerb:
        assert kinds(verb, **changed) == {kind}


@pytest.mark.parametrize("state", [DrainState.PROPOSED, DrainState.VERIFIED, DrainState.CANCELLED])
def test_a_drain_that_moves_nothing_refuses_no_test(state: DrainState) -> None:
    assert kinds(V.LONG_TEST, drains=(drain(state),)) == set()


def test_a_quarantine_moves_no_data_and_refuses_no_test() -> None:
    assert kinds(V.LONG_TEST, drains=(drain(DrainState.DRAINING, Intent.QUARANTINE),)) == set()


@pytest.mark.parametrize("kind", [SelfTestKind.LONG, SelfTestKind.OTHER, None])
def test_a_long_or_unknown_test_on_the_host_refuses_a_second_long_one_alone(
    kind: SelfTestKind | None,
) -> None:
    running = told(running=(HostSelfTest(OTHER, kind),))
    assert kinds(V.LONG_TEST, collector=running) == {K.LONG_TEST_ON_HOST}
    assert kinds(V.SHORT_TEST, collector=running) == set()


def test_a_long_test_that_is_asked_for_counts_as_one_that_runs() -> None:
    assert kinds(V.LONG_TEST, open_requests=(asked(OTHER, V.LONG_TEST),)) == {K.LONG_TEST_ON_HOST}
    assert kinds(V.LONG_TEST, open_requests=(asked(OTHER, V.SHORT_TEST),)) == set()


def test_a_halt_and_a_drain_stop_a_running_test_and_a_restless_pg_does_not() -> None:
    assert {one for one in K if one.stops_running_test} == {K.HALTED, K.DISK_DRAINS, K.OSD_FILLS}


@pytest.mark.parametrize("kind", RequestRefusalKind)
def test_each_refusal_is_a_whole_sentence(kind: RequestRefusalKind) -> None:
    from predrain.service.disk_requests.request_guards import RequestRefusal

    sentence = describe_request_refusal(
        RequestRefusal(kind, count=3, drain="d1", device=OTHER), V.LONG_TEST, HOST
    )
    assert sentence.endswith(".")
    assert "{" not in sentence
    assert "None" not in sentence


RUNNING = st.lists(
    st.builds(HostSelfTest, st.sampled_from([DISK, OTHER]), st.sampled_from([*SelfTestKind, None])),
    max_size=2,
)
SITUATIONS = st.builds(
    RequestSituation,
    device=st.just(DISK),
    host=st.just(HOST),
    now=st.just(NOON),
    is_living=st.booleans(),
    collector=st.none()
    | st.builds(
        CollectorState,
        host=st.just(HOST),
        asked_at=st.sampled_from([NOON, NOON - SILENT_AFTER * 2]),
        allow=st.sampled_from([(), BOTH, BOTH[:1], BOTH[1:]]),
        has_key=st.booleans(),
        running=RUNNING.map(tuple),
    ),
    halted=st.booleans(),
    drains=st.lists(st.builds(drain, st.sampled_from(DrainState), st.sampled_from(Intent)), max_size=2).map(
        tuple
    ),
    unclean_pgs=st.none() | st.integers(0, 3),
    open_requests=st.lists(
        st.builds(asked, st.sampled_from([DISK, OTHER]), st.sampled_from(DiskVerb)), max_size=2
    ).map(tuple),
)


@given(SITUATIONS)
def test_every_accepted_request_about_a_disk_is_harmless(seen: RequestSituation) -> None:
    for verb in DiskVerb:
        if find_request_refusals(verb, seen):
            continue
        host = seen.collector
        assert host is not None
        assert host.has_key
        assert verb.permission in host.allow
        if verb.test_kind is None:
            continue
        assert not seen.halted
        assert seen.unclean_pgs == 0
        assert DISK not in {one.device for one in host.running}
        for one in seen.drains:
            assert (
                one.state not in {DrainState.DRAINING, DrainState.PREPARING}
                or one.intent is Intent.QUARANTINE
            )
        if verb is V.LONG_TEST:
            assert all(one.kind is SelfTestKind.SHORT for one in host.running)
            assert all(one.verb is not V.LONG_TEST for one in seen.open_requests)


@given(SITUATIONS)
def test_more_trouble_never_opens_a_way(seen: RequestSituation) -> None:
    for worse in (
        replace(seen, halted=True),
        replace(seen, unclean_pgs=None),
        replace(seen, drains=(*seen.drains, drain(DrainState.DRAINING))),
        replace(seen, collector=None),
    ):
        for verb in DiskVerb:
            assert not find_request_refusals(verb, seen) or find_request_refusals(verb, worse)


def test_the_pgs_of_each_host_are_counted_once_a_host() -> None:
    view = SimulatedCluster(build_tiny_cluster(1), 1).view()
    assert set(count_unclean_pgs(view).values()) == {0}
    pg = next(iter(view.pgs.values()))
    broken = replace(pg, states=frozenset({"active", "undersized", "degraded"}))
    unclean = count_unclean_pgs(replace(view, pgs={**view.pgs, pg.id: broken}))
    members = {view.osds[OsdId(osd)].runs_on for osd in pg.acting}
    assert {host for host, count in unclean.items() if count} == members
    assert max(unclean.values()) == 1


def test_a_scrub_is_no_trouble() -> None:
    view = SimulatedCluster(build_tiny_cluster(1), 1).view()
    pgs = {
        name: replace(pg, states=frozenset({"active", "clean", "scrubbing", "deep"}))
        for name, pg in view.pgs.items()
    }
    assert set(count_unclean_pgs(replace(view, pgs=pgs)).values()) == {0}


def test_a_host_is_found_under_its_short_name_and_one_without_osds_has_no_pgs() -> None:
    unclean = {HostName("stor-01.example.org"): 2}
    assert find_unclean_pgs(unclean, HOST, has_osds=True) == 2
    assert find_unclean_pgs(unclean, HostName("stor-09"), has_osds=False) == 0
    assert find_unclean_pgs(unclean, HostName("stor-09"), has_osds=True) is None
    assert find_unclean_pgs(None, HOST, has_osds=True) is None


def test_a_drain_is_of_the_disk_by_its_name_or_by_its_osd() -> None:
    one = drain(DrainState.DRAINING)
    assert find_drains_of_disk([one], DISK, ()) == (one,)
    assert find_drains_of_disk([one], OTHER, [OsdId(0)]) == (one,)
    assert find_drains_of_disk([one], OTHER, [OsdId(1)]) == ()
