"""Successive polls: unchanged parts stay the same objects, large clusters are asked briefly, and clocks may differ."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from predrain.actions.cluster.cluster_port import RemoveUpmap, Reweight, SetOption, SetUpmap
from predrain.actions.cluster.dumps import ClusterReader, NotUnderstood, RawAnswers
from predrain.actions.cluster.dumps.view_questions import (
    PG_BRIEF,
    PG_DUMP,
    QUESTIONS,
    running_scheduler,
    whole_rows,
)
from predrain.data.ids import OsdId, PgId
from tests.actions.recordings import CLEAN, brief, changed, pg_rows, sample

AT = datetime(2026, 11, 21, 12, tzinfo=UTC)
LOOK = timedelta(seconds=10)


def begun(answers: RawAnswers = CLEAN, brief_above: int = 0) -> ClusterReader:
    """Return a reader of a large cluster after its first poll, in which every question was asked."""
    reader = ClusterReader(brief_above)
    assert {one.name for one in reader.list_due_commands(AT)} == {one.name for one in QUESTIONS}
    reader.view(replace(answers, at=AT))
    return reader


def names(reader: ClusterReader, at: datetime) -> set[str]:
    return {question.name for question in reader.list_due_commands(at)}


def test_a_pg_and_an_osd_of_which_the_same_is_said_stay_the_same_objects() -> None:
    reader = ClusterReader()
    first = reader.view(CLEAN)
    second = reader.view(changed(CLEAN, "pg_dump", lambda dump: pg_rows(dump)[0].update(reported_epoch=99)))
    differing = [id_ for id_, pg in second.pgs.items() if first.pgs[id_] is not pg]
    assert len(differing) == 1
    assert second.pgs[differing[0]].reported_epoch == 99
    assert all(first.osds[id_] is osd for id_, osd in second.osds.items())
    assert first.crush is second.crush


def test_epochs_in_quotes_as_the_first_pacifics_print_them_are_read() -> None:
    def quote(dump: Any) -> None:
        for row in pg_rows(dump):
            row["reported_epoch"] = str(row["reported_epoch"])

    assert ClusterReader().view(changed(CLEAN, "pg_dump", quote)).pgs == ClusterReader().view(CLEAN).pgs


def test_brief_rows_after_whole_ones_give_the_view_that_whole_rows_would() -> None:
    answers = sample("reef-degraded").answers
    reader = begun(answers)
    assert reader.view(replace(brief(answers), at=AT + LOOK)) == ClusterReader().view(
        replace(answers, at=AT + LOOK)
    )


def test_a_small_cluster_is_asked_for_every_pg_whole_and_a_large_one_briefly() -> None:
    small, large = begun(brief_above=65), begun(brief_above=64)
    assert PG_DUMP.name in names(small, AT + LOOK)
    assert PG_BRIEF.name in names(large, AT + LOOK)
    assert PG_DUMP.name not in names(large, AT + LOOK)
    assert PG_DUMP.name in names(large, AT + timedelta(minutes=10))


def test_an_answer_that_seldom_changes_is_asked_for_seldom_and_remembered_between_looks() -> None:
    reader = begun()
    assert {"osd_metadata", "device_ls"}.isdisjoint(names(reader, AT + LOOK))
    fresh = brief(replace(CLEAN, at=AT + LOOK))
    without = replace(
        fresh, raw={k: raw for k, raw in fresh.raw.items() if k not in ("osd_metadata", "device_ls")}
    )
    assert reader.view(without).osds[OsdId(3)].device == "MINI_HDD4T_Z0000003"
    assert "device_ls" in names(reader, AT + timedelta(minutes=1))


def test_another_mgr_is_asked_for_everything_again() -> None:
    reader = begun()
    reader.view(changed(brief(CLEAN), "mgr_dump", lambda dump: dump.update(active_gid=9)))
    assert PG_DUMP.name in names(reader, AT + LOOK)


def test_a_pg_that_was_never_seen_whole_makes_the_statistics_unknown_until_it_is() -> None:
    def forget(dump: Any) -> None:
        dump["pg_map"]["pg_stats"] = pg_rows(dump)[1:]

    reader = ClusterReader(0)
    reader.view(changed(CLEAN, "pg_dump", forget))
    for _ in range(2):
        assert not reader.view(brief(CLEAN)).statistics_known
    assert PG_DUMP.name in names(reader, AT + LOOK)
    assert reader.view(CLEAN).statistics_known


def test_after_a_pin_an_osd_that_stays_in_the_pg_shows_it_whole_until_it_has_reported() -> None:
    reader = begun()
    pg = reader.view(CLEAN).pgs[PgId("1.0")]
    source, *staying = pg.up
    target = next(osd for osd in range(8) if osd not in pg.up)
    reader.note_command(SetUpmap(pg.id, ((source, target),)), AT)
    watched = {name for name in names(reader, AT + LOOK) if name.startswith("pg_ls_by_osd.")}
    assert watched == {whole_rows(OsdId(min(staying))).name}
    assert not {name for name in names(reader, AT + timedelta(minutes=3)) if name.startswith("pg_ls")}


def test_the_whole_rows_of_a_watched_osd_bring_the_epoch_that_brief_ones_lack() -> None:
    reader = begun()
    answers = brief(CLEAN)
    row = f'{{"pg_ready":true,"pg_stats":[{ROW}]}}'.encode()
    view = reader.view(replace(answers, raw={**answers.raw, "pg_ls_by_osd.1": row}))
    assert view.pgs[PgId("1.0")].reported_epoch == 777
    assert view.pgs[PgId("1.0")].shard_bytes == 4096


ROW = (
    '{"pgid":"1.0","state":"active+remapped+backfilling","up":[1,2,3],"acting":[1,2,4],"reported_epoch":777,'
    '"stat_sum":{"num_bytes":4096}}'
)


def test_after_a_weight_every_pg_is_seen_whole_for_a_while_and_after_a_setting_none_is() -> None:
    reader = begun()
    reader.note_command(SetOption("osd_max_backfills", "1"), AT)
    assert PG_BRIEF.name in names(reader, AT + LOOK)
    reader.note_command(Reweight(OsdId(0), 0.5), AT)
    assert PG_DUMP.name in names(reader, AT + LOOK)
    assert PG_DUMP.name not in names(reader, AT + timedelta(minutes=3))


def test_a_pin_on_a_pg_that_was_never_seen_makes_every_pg_be_seen() -> None:
    reader = begun()
    reader.note_command(RemoveUpmap(PgId("44.1")), AT)
    assert PG_DUMP.name in names(reader, AT + LOOK)


def test_the_stamps_of_a_mgr_whose_clock_runs_ahead_are_not_taken_for_fresh() -> None:
    reader = ClusterReader()
    stamp = reader.view(replace(CLEAN, at=AT)).as_of
    behind = reader.view(replace(CLEAN, at=stamp - timedelta(seconds=90)))
    assert behind.as_of == stamp - timedelta(seconds=90)
    assert reader.view(replace(CLEAN, at=stamp - timedelta(seconds=60))).as_of == stamp - timedelta(
        seconds=90
    )


def test_the_running_scheduler_is_asked_of_one_osd_after_another() -> None:
    reader = begun()
    told = []
    for minute, answer in enumerate((b"wpq\n", b"wpq\n", b"mclock_scheduler\n")):
        at = AT + LOOK + minute * timedelta(minutes=1)
        question = next(one for one in reader.list_due_commands(at) if one.prefix == "config show")
        assert question.arguments["who"] == f"osd.{minute}"
        told.append(
            reader.view(RawAnswers(at, {**CLEAN.raw, question.name: answer, "config_show": b"[]"})).scheduler
        )
    assert told == ["wpq", "wpq", "mixed"]


def test_the_reference_names_every_question_and_the_command_behind_it() -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference" / "view.md").read_text()
    for question in (*QUESTIONS, PG_BRIEF, whole_rows(OsdId(0)), running_scheduler(OsdId(0))):
        row = next(
            line for line in page.splitlines() if line.startswith(f"| `{question.name.partition('.')[0]}` |")
        )
        assert f"| {question.to} |" in row
        assert question.prefix in row


def test_after_an_answer_that_was_refused_the_next_good_ones_give_the_whole_view_again() -> None:
    reader = begun()
    with pytest.raises(NotUnderstood):
        reader.view(changed(CLEAN, "pg_dump", lambda dump: pg_rows(dump).append(pg_rows(dump)[0])))
    assert not reader.view(brief(CLEAN)).statistics_known, "bytes may have been lost with what was refused"
    assert PG_DUMP.name in names(reader, AT + LOOK)
    assert reader.view(CLEAN) == ClusterReader().view(CLEAN)
