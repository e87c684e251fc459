"""Results that are carried on from view to view equal the results from the whole view, after any mishaps of the
cluster.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from predrain.actions.cluster.cluster_view import ClusterView
from predrain.actions.cluster.osd_layout import OsdLayout, find_osd_layout
from predrain.actions.cluster.pg_index import PgIndex, find_pg_index
from predrain.actions.core import cost_assessment
from predrain.actions.core.cost_assessment import find_disks_at_risk
from predrain.actions.core.outlook_index import find_outlook_index
from predrain.actions.core.pg_survey import add_unreported, survey_pgs
from predrain.actions.simulator import SimulatedCluster
from predrain.actions.simulator.worlds import build_world
from predrain.data.identity_memo import LatestResults
from predrain.data.ids import DeviceId, OsdId
from predrain.data.outlook import Outlook, Status
from tests.actions.made import NOW, POLICY, a_context, bad_outlook, calm_view, changed_osd, changed_pg, device
from tests.actions.test_simulated_invariants import mishap

LAYOUT = (
    "down", "out", "serving", "overrides", "weights", "weightless", "affinities", "devices", "shared_devices",
    "osds_by_device", "serving_devices", "models", "devices_by_model",
)  # fmt: skip


def make_cluster(name: str, seed: int) -> SimulatedCluster:
    """A cluster with a disk in every slot, of two models."""
    spec = build_world(name, seed)
    disks = {osd.id: (device(osd.id), f"M{osd.id % 2}") for osd in spec.osds}
    return SimulatedCluster(spec.with_devices(disks), seed)


def check_view(view: ClusterView) -> None:
    """Compare index and layout with those of this view alone."""
    index, whole = find_pg_index(view.pgs), PgIndex.from_pgs(view.pgs)
    for osd in view.osds:
        assert index.list_pgs(osd) == whole.list_pgs(osd)
    layout, fresh = find_osd_layout(view.osds), OsdLayout(view.osds)
    assert {name: getattr(layout, name) for name in LAYOUT} == {name: getattr(fresh, name) for name in LAYOUT}


@pytest.mark.parametrize(
    "name",
    ["tiny", *(pytest.param(name, marks=pytest.mark.slow) for name in ("ec_two_a_host", "ec_no_spare"))],
)
@settings(max_examples=3)
@given(seed=st.integers(0, 2**32))
def test_index_layout_and_survey_follow_a_cluster_through_mishaps(name: str, seed: int) -> None:
    cluster, chance = make_cluster(name, seed), Random(seed)
    survey = survey_pgs(cluster.view())
    for _ in range(15):
        for _ in range(chance.choice([0, 1, 1, 4])):
            mishap(cluster, chance)
        cluster.advance(chance.choice([0.0, 1.0, 5.0, 60.0, 700.0]))
        view, truth = cluster.view(), cluster.truth()
        check_view(view)
        survey = survey_pgs(view, survey)
        assert survey == survey_pgs(view)
        assert list(survey.unclean) == list(survey_pgs(view).unclean)
        assert cluster.thin_pgs == sum(pg.copies < pg.pool.size for pg in truth.pgs.values())
        known = {osd: row for osd, row in view.osds.items() if row.used_bytes is not None}
        held = {osd: truth.used_bytes[osd] + truth.deleting_bytes[osd] for osd in known}
        assert {osd: row.used_bytes for osd, row in known.items()} == held
        assert {osd for osd, row in view.osds.items() if row.up} == truth.up
        assert {osd: row.reweight for osd, row in view.osds.items()} == {
            OsdId(osd): fixed / 0x10000 for osd, fixed in cluster.osdmap.reweights.items()
        }


@settings(max_examples=3)
@given(seed=st.integers(0, 2**32))
def test_the_pgs_found_by_an_osd_are_those_that_name_it_by_their_report_or_by_the_map(seed: int) -> None:
    cluster, chance = make_cluster("tiny", seed), Random(seed)
    for _ in range(10):
        mishap(cluster, chance)
        cluster.advance(chance.choice([0.0, 1.0, 60.0]))
        view = cluster.view()
        away = {
            pg.id: tuple(chance.sample(list(view.osds), len(pg.up)))
            for pg in chance.sample(list(view.pgs.values()), 4)
        }
        survey = add_unreported(survey_pgs(view), away)
        osds = chance.sample(list(view.osds), 2)
        by_report = {id_ for id_, pg in view.pgs.items() if {*pg.up, *pg.acting}.intersection(osds)}
        by_map = {id_ for id_, up in away.items() if set(up).intersection(osds)}
        found = survey.find_ids_by_osds(osds)
        assert found == by_report | by_map
        assert survey.list_unclean_pgs(found) == [
            survey.unclean[id_] for id_ in view.pgs if id_ in found and id_ in survey.unclean
        ]


@pytest.mark.parametrize("name", ["tiny", pytest.param("ec_two_a_host", marks=pytest.mark.slow)])
@settings(max_examples=3)
@given(seed=st.integers(0, 2**32))
def test_a_disk_that_was_weighed_before_is_weighed_as_if_it_were_not(name: str, seed: int) -> None:
    cluster, chance = make_cluster(name, seed), Random(seed)
    devices = [osd.device for osd in cluster.view().osds.values() if osd.device is not None]
    outlooks: dict[DeviceId, Outlook] = {}
    for _ in range(12):
        mishap(cluster, chance)
        cluster.advance(chance.choice([0.0, 5.0, 700.0]))
        told = chance.choice(devices)
        month = chance.choice([0.001, 0.02, 0.2, 0.6])
        outlooks[told] = replace(
            bad_outlook(0), device=told, p_fail_7d=month / 4, p_fail_14d=month / 2, p_fail_30d=month,
            status=chance.choice(list(Status)),
        )  # fmt: skip
        view = cluster.view()
        context = a_context(view, outlooks=outlooks)
        followed = find_disks_at_risk(view, POLICY, context)
        with pytest.MonkeyPatch.context() as patch:
            for memory in ("_IMPACTS", "_DISKS"):
                patch.setattr(cost_assessment, memory, LatestResults(limit=1))
            assert find_disks_at_risk(view, POLICY, context) == followed


def test_a_layout_stays_the_same_object_while_only_sizes_change() -> None:
    view = calm_view()
    layout = find_osd_layout(view.osds)
    fuller = changed_osd(view, 0, used_bytes=1)
    assert find_osd_layout(fuller.osds) is layout
    assert find_osd_layout(changed_osd(fuller, 0, reweight=0.5).osds) is not layout


def test_the_pgs_of_an_osd_stay_the_same_tuple_while_none_of_them_changes() -> None:
    view = calm_view()
    index = find_pg_index(view.pgs)
    pg = next(iter(view.pgs.values()))
    later = find_pg_index(changed_pg(view, pg.id, reported_epoch=99).pgs)
    same = {osd: later.list_pgs(osd) is index.list_pgs(osd) for osd in view.osds}
    assert same == {osd: osd not in pg.acting for osd in view.osds}


def test_the_same_outlooks_in_another_mapping_have_the_same_index_and_a_changed_mapping_another() -> None:
    outlooks: dict[DeviceId, Outlook] = {device(0): bad_outlook(0)}
    index = find_outlook_index(outlooks)
    copied: Mapping[DeviceId, Outlook] = dict(outlooks)
    assert find_outlook_index(copied) is index
    outlooks[device(1)] = bad_outlook(1, NOW)
    assert find_outlook_index(outlooks).bad == {device(0), device(1)}
    assert index.bad == {device(0)}
