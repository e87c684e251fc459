"""Broken, unexpected or new content of Ceph's answers is read as unknown or refused with one sentence, and the engine
then moves nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from predrain.actions.cluster.cluster_view import ClusterView
from predrain.actions.cluster.dumps.dump_decoding import NotUnderstood
from predrain.actions.cluster.dumps.raw_answers import RawAnswers
from predrain.actions.core.drain_policy import Policy
from predrain.actions.core.pg_survey import survey_pgs
from predrain.actions.crush.pg_placement import pg_id, place_pgs
from predrain.actions.guards import Pass
from predrain.actions.guards.cluster_guards import check_pg_autoscale
from tests.actions.made import a_context, a_drain
from tests.actions.recordings import CLEAN, NAMES, changed, pg_rows, replaced, sample, steps, view_of, without


def refused(answers: RawAnswers) -> str:
    with pytest.raises(NotUnderstood) as caught:
        view_of(answers)
    sentence = str(caught.value)
    assert "\n" not in sentence
    assert sentence.endswith(".")
    return sentence


def test_on_a_clean_cluster_the_engine_steps_so_these_tests_can_fail() -> None:
    assert steps(view_of(CLEAN))


@pytest.mark.parametrize("name", sorted({"osd_dump", "osd_crush_dump", "pg_dump", "osd_df", "config_dump"}))
def test_a_truncated_answer_is_refused_and_named(name: str) -> None:
    raw = CLEAN.raw[name]
    sentence = refused(replaced(CLEAN, name, raw[: len(raw) // 2]))
    assert f"ceph {name.replace('_', ' ')}" in sentence


@pytest.mark.parametrize("name", ["osd_dump", "osd_crush_dump", "pg_dump", "osd_df", "status", "mgr_dump"])
def test_without_a_needed_answer_there_is_no_view(name: str) -> None:
    assert f"ceph {name.replace('_', ' ')}" in refused(without(CLEAN, name))


def test_a_missing_answer_that_is_not_needed_leaves_its_values_unknown() -> None:
    view = view_of(without(CLEAN, "device_ls", "osd_metadata", "balancer_status", "versions", "config_show"))
    assert {osd.device for osd in view.osds.values()} == {None}
    assert view.balancer_active, "a balancer that does not answer may be on"
    assert view.release == "tentacle"
    assert view.scheduler == "mclock_scheduler"


def test_fields_of_a_newer_release_are_passed_over_and_its_name_is_kept_for_the_guard() -> None:
    answers = changed(
        CLEAN, "osd_dump", lambda dump: dump.update(require_osd_release="umbrella", brand_new={"a": [1]})
    )
    answers = changed(answers, "pg_dump", lambda dump: pg_rows(dump)[0].update(novelty={"deep": [{}]}))
    version = "ceph version 21.0.0 (7f793731f1b39eb4f465e960113d2363c311b964) umbrella (dev)"
    answers = replaced(
        answers, "versions", json.dumps({kind: {version: 3} for kind in ("mon", "mgr", "osd")}).encode()
    )
    view = view_of(answers)
    assert view.release == "umbrella"
    assert not view.mixed_versions
    assert not steps(view)


def test_daemons_of_two_releases_are_mixed() -> None:
    def add(versions: Any) -> None:
        versions["osd"]["ceph version 19.2.3 (aaaaaaaa) squid (stable)"] = 1

    view = view_of(changed(CLEAN, "versions", add))
    assert view.mixed_versions
    assert not steps(view)


def test_a_map_that_demands_less_than_what_runs_is_an_upgrade_not_finished() -> None:
    assert view_of(
        changed(CLEAN, "osd_dump", lambda dump: dump.update(require_osd_release="squid"))
    ).mixed_versions


def test_an_upgrade_shows_by_the_orchestrator_and_by_the_mgr_s_progress() -> None:
    assert view_of(replaced(CLEAN, "orch_upgrade_status", b'{"in_progress": true}')).upgrade_running
    event = {"x": {"message": "Upgrade to 20.2.5 (2s)", "progress": 0.1}}
    assert view_of(
        changed(CLEAN, "status", lambda status: status.update(progress_events=event))
    ).upgrade_running


def test_an_unknown_pg_state_is_kept_as_it_is_and_counts_as_bad() -> None:
    view = view_of(
        changed(CLEAN, "pg_dump", lambda dump: pg_rows(dump)[0].update(state="active+clean+levitating"))
    )
    odd = [pg for pg in view.pgs.values() if "levitating" in pg.states]
    assert len(odd) == 1
    assert odd[0].id in survey_pgs(view).unclean
    assert not steps(view)


@pytest.mark.parametrize("word", ["inf", "-inf", "nan", "-nan"])
def test_numbers_that_are_none_are_passed_over_where_nothing_is_read(word: str) -> None:
    raw = CLEAN.raw["osd_df"].replace(b'"var":1,', f'"var":{word},'.encode(), 1)
    assert word.encode() in raw
    assert view_of(replaced(CLEAN, "osd_df", raw)).osds == view_of(CLEAN).osds


def test_a_size_that_is_no_number_is_unknown() -> None:
    raw = CLEAN.raw["osd_df"].replace(b'"kb":2097152,', b'"kb":-nan,')
    view = view_of(replaced(CLEAN, "osd_df", raw))
    assert {osd.size_bytes for osd in view.osds.values()} == {None}
    assert not view.statistics_known
    assert not steps(view)


def test_the_words_inf_and_nan_inside_a_name_are_left_alone() -> None:
    def rename(dump: Any) -> None:
        dump["pools"][0]["pool_name"] = "a: nan, inf"
        dump["odd"] = "HERE"

    answers = changed(CLEAN, "osd_dump", rename)
    answers = replaced(answers, "osd_dump", answers.raw["osd_dump"].replace(b'"HERE"', b"-inf"))
    assert "a: nan, inf" in {pool.name for pool in view_of(answers).pools.values()}


def _bytes_of(row: Any, count: object) -> None:
    row["stat_sum"]["num_bytes"] = count


IMPOSSIBLE: dict[str, tuple[str, Callable[[Any], object]]] = {
    "a PG of fewer than no bytes": ("pg_dump", lambda dump: _bytes_of(pg_rows(dump)[0], -1)),
    "a PG of bytes in words": ("pg_dump", lambda dump: _bytes_of(pg_rows(dump)[0], "many")),
    "a PG twice": ("pg_dump", lambda dump: pg_rows(dump).append(pg_rows(dump)[0])),
    "a PG that is none": ("pg_dump", lambda dump: pg_rows(dump)[0].update(pgid="1.zz")),
    "no stamp": ("pg_dump", lambda dump: dump["pg_map"].pop("stamp")),
    "a stamp without its zone": ("pg_dump", lambda dump: dump["pg_map"].update(stamp="2017-03-07 08:55:53.301911")),
    "an OSD twice": ("osd_dump", lambda dump: dump["osds"].append(dump["osds"][0])),
    "an override above one": ("osd_dump", lambda dump: dump["osds"][0].update(weight=1.5)),
    "an override below none": ("osd_dump", lambda dump: dump["osds"][0].update(weight=-0.1)),
    "a ratio of thousands": ("osd_dump", lambda dump: dump.update(nearfull_ratio=8500)),
    "a pool of no kind": ("osd_dump", lambda dump: dump["pools"][0].update(type=7)),
    "a billion PGs": ("osd_dump", lambda dump: dump["pools"][0].update(pg_num=10**9)),
    "no epoch": ("osd_dump", lambda dump: dump.update(epoch=0)),
    "a size below none": ("osd_df", lambda dump: next(n for n in dump["nodes"] if n["id"] == 0).update(kb=-5)),
    "a rule that is not there": ("osd_crush_dump", lambda dump: dump["rules"].pop(0)),
    "a bucket below itself": (
        "osd_crush_dump",
        lambda dump: dump["buckets"][0]["items"].append({"id": dump["buckets"][0]["id"], "weight": 1, "pos": 9}),
    ),
    "a bucket that is not there": (
        "osd_crush_dump",
        lambda dump: dump["buckets"][0]["items"].append({"id": -99, "weight": 1, "pos": 9}),
    ),
    "a negative CRUSH weight": ("osd_crush_dump", lambda dump: dump["buckets"][0]["items"][0].update(weight=-3)),
}  # fmt: skip


@pytest.mark.parametrize("what", IMPOSSIBLE)
def test_an_impossible_answer_is_refused_in_one_sentence(what: str) -> None:
    name, change = IMPOSSIBLE[what]
    assert f"ceph {name.replace('_', ' ')}" in refused(changed(CLEAN, name, change))


UNKNOWN: dict[str, tuple[str, Callable[[Any], object]]] = {
    "an OSD in the map and not in the statistics": (
        "osd_df",
        lambda dump: dump.update(nodes=[node for node in dump["nodes"] if node["id"] != 3]),
    ),
    "an OSD of 0 kb": ("osd_df", lambda dump: next(n for n in dump["nodes"] if n["id"] == 3).update(kb=0)),
    "a PG of the map that is missing": ("pg_dump", lambda dump: pg_rows(dump).pop()),
    "a pool without its PGs": (
        "pg_dump",
        lambda dump: dump["pg_map"].update(pg_stats=[r for r in pg_rows(dump) if r["pgid"][0] != "1"]),
    ),
    "a PG on an OSD that the map does not have": ("pg_dump", lambda dump: pg_rows(dump)[0].update(up=[77, 1, 2])),
    "statistics that are not ready": ("pg_dump", lambda dump: dump.update(pg_ready=False)),
    "a stamp of never": ("pg_dump", lambda dump: dump["pg_map"].update(stamp="0.000000")),
    "no mgr at work": ("mgr_dump", lambda dump: dump.update(available=False)),
    "an eighth of the PGs unknown": (
        "pg_dump",
        lambda dump: [row.update(state="unknown") for row in pg_rows(dump)[::8]],
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", UNKNOWN)
def test_where_numbers_are_missing_nothing_is_known_and_nothing_moves(what: str) -> None:
    name, change = UNKNOWN[what]
    view = view_of(changed(CLEAN, name, change))
    assert not view.statistics_known
    assert not steps(view)


@pytest.mark.parametrize("name", sorted(set(NAMES) - {"tentacle-clean"}))
def test_on_a_cluster_that_is_restless_or_unknown_the_engine_does_not_step(name: str) -> None:
    assert not steps(view_of(sample(name).answers))


def test_a_pool_with_no_pgs_at_all_is_read() -> None:
    def empty(dump: Any) -> None:
        dump["pools"].append({**dump["pools"][0], "pool": 9, "pool_name": "void", "pg_num": 0,
                              "pg_num_target": 0, "pg_placement_num": 0})  # fmt: skip

    view = view_of(changed(CLEAN, "osd_dump", empty))
    assert view.pools[9].pg_num == 0
    assert view.statistics_known


def pool_with(**row: int) -> tuple[Any, ClusterView]:
    view = view_of(changed(CLEAN, "osd_dump", lambda dump: dump["pools"][0].update(row)))
    return min(view.pools.values(), key=lambda pool: pool.id), view


def test_pgs_that_are_split_but_not_yet_spread_are_on_their_way() -> None:
    pool, view = pool_with(pg_placement_num=16)
    assert pool.changes == (("pgp_num", 16, 32),)
    assert not steps(view)


def test_a_merge_that_is_pending_is_on_its_way() -> None:
    pool, view = pool_with(pg_num_pending=31)
    assert pool.changes == (("pg_num", 32, 31),)
    assert not steps(view)


def test_a_pgp_num_that_is_to_stay_lower_is_not_on_its_way_and_places_pgs_together() -> None:
    pool, view = pool_with(pg_placement_num=16, pg_placement_num_target=16)
    assert pool.changes == ()
    draft = a_drain()
    assert isinstance(check_pg_autoscale(view, draft, Policy(), a_context(view)), Pass)
    placed = place_pgs(view.crush, {pool.id: pool}, dict.fromkeys(view.osds, 1.0), {})
    assert placed[pg_id(pool.id, 3)] == placed[pg_id(pool.id, 19)]
    apart = place_pgs(view.crush, {pool.id: replace(pool, pgp_num=32)}, dict.fromkeys(view.osds, 1.0), {})
    assert apart[pg_id(pool.id, 3)] == placed[pg_id(pool.id, 3)]
    assert len({apart[pg_id(pool.id, seed)] for seed in range(32)}) > len(set(placed.values()))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["osd_dump", "pg_dump", "osd_crush_dump", "device_ls"])
def test_deep_nesting_and_garbage_of_a_hundred_megabytes_are_refused(name: str) -> None:
    for raw in (
        b"[" * 200_000,
        b'{"a":' * 100_000,
        bytes(range(256)) * 400_000,
        b'{"\xff' * 30_000_000,
        b"",
        b"null",
        b"3",
    ):
        assert "nothing moves" in refused(replaced(CLEAN, name, raw))
