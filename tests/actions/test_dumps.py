"""Answers of real clusters of three releases become views that say what was the matter with each."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from predrain.actions.cluster.cluster_view import ClusterView
from predrain.actions.cluster.recorded_cluster import RecordedCluster, read_recording
from predrain.actions.core.pg_survey import at_rest, survey_pgs
from predrain.data.ids import DeviceId, OsdId, PgId
from tests.actions.recordings import sample, view_of

RELEASES = ("pacific", "reef", "tentacle")
STATES = ("clean", "degraded", "drained", "draining", "fullish", "mgr_restarted")


@pytest.fixture(params=RELEASES)
def release(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


def recorded(shared_data: Path, release: str, state: str) -> ClusterView:
    return RecordedCluster(read_recording(shared_data / "recorded" / release / state)).view()


@pytest.mark.parametrize("state", STATES)
def test_every_recorded_state_gives_a_view_of_its_release(
    shared_data: Path, release: str, state: str
) -> None:
    view = recorded(shared_data, release, state)
    assert view.release == release
    assert not view.mixed_versions
    assert len(view.osds) == 8
    assert len({osd.host for osd in view.osds.values()}) == 4
    assert len(view.pgs) == sum(pool.pg_num for pool in view.pools.values()) == 65
    assert view.as_of.date() == datetime(2026, 11, 21, tzinfo=UTC).date()
    assert {osd.device for osd in view.osds.values()} == {
        DeviceId(f"MINI_HDD4T_Z000000{number}") for number in range(8)
    }


def test_a_clean_cluster_is_at_rest_and_known(shared_data: Path, release: str) -> None:
    view = recorded(shared_data, release, "clean")
    found = survey_pgs(view)
    assert view.statistics_known
    assert view.health == "HEALTH_OK"
    assert not found.unclean
    assert not found.broken


def test_a_degraded_cluster_has_an_osd_down_and_pgs_short_of_a_copy(shared_data: Path, release: str) -> None:
    view = recorded(shared_data, release, "degraded")
    assert [osd.id for osd in view.osds.values() if not osd.up] == [5]
    short = [pg for pg in view.pgs.values() if "degraded" in pg.states]
    assert short
    assert all(pg.degraded_objects > 0 and pg.id in survey_pgs(view).broken for pg in short)
    assert view.health == "HEALTH_WARN"


def test_a_draining_cluster_has_pgs_on_their_way_to_other_osds(shared_data: Path, release: str) -> None:
    view = recorded(shared_data, release, "draining")
    found = survey_pgs(view)
    assert view.osds[OsdId(0)].crush_weight == 0.0
    assert found.unclean
    assert sum(found.incoming.values()) > 0
    assert any(OsdId(0) in pg.acting and OsdId(0) not in pg.up for pg in view.pgs.values())


def test_a_drained_osd_is_named_by_no_pg_where_no_pool_needs_its_host(
    shared_data: Path, release: str
) -> None:
    view = recorded(shared_data, release, "drained")
    assert view.osds[OsdId(0)].crush_weight == 0.0
    assert not survey_pgs(view).of_osd(OsdId(0))
    assert all(at_rest(pg.states) for pg in view.pgs.values())


def test_a_full_cluster_shows_targets_over_their_ratio(shared_data: Path, release: str) -> None:
    view = recorded(shared_data, release, "fullish")
    assert any("backfill_toofull" in pg.states for pg in view.pgs.values())
    fills = [
        osd.used_bytes / osd.size_bytes for osd in view.osds.values() if osd.used_bytes and osd.size_bytes
    ]
    assert max(fills) > view.backfillfull_ratio


def test_a_mgr_that_has_just_begun_knows_nothing_though_health_says_ok(
    shared_data: Path, release: str
) -> None:
    view = recorded(shared_data, release, "mgr_restarted")
    before = recorded(shared_data, release, "fullish")
    assert view.health == "HEALTH_OK"
    assert not view.statistics_known
    assert all(osd.size_bytes is None and osd.used_bytes is None for osd in view.osds.values())
    assert {pg.states for pg in view.pgs.values()} == {frozenset({"unknown"})}
    assert view.mgr_id != before.mgr_id
    assert view.dump_version < before.dump_version


def test_the_values_of_the_osd_map_are_in_the_view() -> None:
    view = view_of(sample("reef-degraded").answers)
    assert view.epoch == 42
    assert len(view.upmap_items) == 10
    assert not view.has_full_upmaps
    assert view.require_min_compat_client == "luminous"
    assert (view.nearfull_ratio, view.backfillfull_ratio, view.full_ratio) == (0.85, 0.9, 0.95)
    assert view.flags >= {"sortbitwise", "pglog_hardlimit"}
    assert {pool.name: (pool.size, pool.min_size, pool.erasure) for pool in view.pools.values()} == {
        "rep": (3, 2, False),
        ".mgr": (3, 2, False),
        "ec21": (3, 2, True),
        "ec31": (4, 3, True),
    }


def test_a_shard_of_an_erasure_coded_pg_is_the_pg_s_bytes_over_k() -> None:
    view = view_of(sample("tentacle-clean").answers)
    by_pool = {pool.name: pool.id for pool in view.pools.values()}
    objects_of = 65536
    ec31 = [pg for pg in view.pgs.values() if pg.pool == by_pool["ec31"] and pg.objects]
    assert ec31
    assert all(pg.shard_bytes == -(-pg.objects * objects_of // 3) for pg in ec31)
    replicated = [pg for pg in view.pgs.values() if pg.pool == by_pool["rep"]]
    assert all(pg.shard_bytes == pg.objects * objects_of for pg in replicated)


def test_settings_keep_their_section_and_the_scheduler_is_the_one_that_runs() -> None:
    pacific, reef = view_of(sample("pacific-draining").answers), view_of(sample("reef-degraded").answers)
    assert pacific.settings["osd/osd_max_backfills"] == "1"
    assert (pacific.scheduler, reef.scheduler) == ("wpq", "mclock_scheduler")


def test_a_pg_has_the_epoch_of_its_last_report() -> None:
    view = view_of(sample("pacific-draining").answers)
    pg = view.pgs[PgId("2.1b")]
    assert pg.reported_epoch == 28
    assert pg.up != ()
