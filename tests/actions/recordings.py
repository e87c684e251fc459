"""Recorded clusters for tests: the samples beside this folder, and all of them where the source data are."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any

from predrain.actions.cluster.cluster_view import ClusterView
from predrain.actions.cluster.dumps.raw_answers import RawAnswers
from predrain.actions.cluster.dumps.view_reader import ClusterReader
from predrain.actions.cluster.recorded_cluster import ClusterRecording, read_recording
from predrain.actions.core.decision_answers import Step
from predrain.actions.core.drain_policy import Policy
from predrain.actions.core.pg_survey import survey_pgs
from predrain.actions.core.situation import Context, SentMemory
from predrain.actions.engine.decision import decide_drain_steps
from predrain.actions.engine.plan_building import plan_drain
from predrain.data.drain import Drain, DrainState, Intent
from predrain.data.ids import OsdId

SAMPLES = Path(__file__).parents[1] / "data" / "recorded"
NAMES = ("pacific-draining", "reef-degraded", "tentacle-clean", "tentacle-mgr_restarted")

Json = Any


@lru_cache
def sample(name: str) -> ClusterRecording:
    """Return the recording with this name, one of NAMES."""
    return read_recording(SAMPLES / f"{name}.zip")


CLEAN = sample("tentacle-clean").answers


def view_of(answers: RawAnswers) -> ClusterView:
    """Return the view that a reader makes of these answers at its first poll."""
    return ClusterReader().view(answers)


def changed(answers: RawAnswers, name: str, change: Callable[[Json], object]) -> RawAnswers:
    """The answers with one of them parsed, changed in place by `change`, and printed again."""
    whole = json.loads(answers.raw[name])
    change(whole)
    return replaced(answers, name, json.dumps(whole).encode())


def replaced(answers: RawAnswers, name: str, raw: bytes) -> RawAnswers:
    """The answers with other bytes in one of them."""
    return replace(answers, raw={**answers.raw, name: raw})


def without(answers: RawAnswers, *names: str) -> RawAnswers:
    """Return the answers without the named ones."""
    return replace(answers, raw={name: raw for name, raw in answers.raw.items() if name not in names})


def pg_rows(whole: Json) -> list[Json]:
    """The rows of a `pg dump` that was parsed."""
    rows: list[Json] = whole["pg_map"]["pg_stats"]
    return rows


def brief(answers: RawAnswers) -> RawAnswers:
    """Return the answers that a poll of a large cluster gets at the same moment: with `pg dump sum` and
    `pg dump pgs_brief` in place of `pg dump`.
    """
    whole = json.loads(answers.raw["pg_dump"])
    kept = ("pgid", "state", "up", "acting", "up_primary", "acting_primary")
    rows = [{key: row[key] for key in kept} for row in pg_rows(whole)]
    sums = {"version": whole["pg_map"]["version"], "stamp": whole["pg_map"]["stamp"]}
    raw = {
        **answers.raw,
        "pg_sum": json.dumps({"pg_ready": whole["pg_ready"], "pg_map": sums}).encode(),
        "pg_brief": json.dumps({"pg_ready": whole["pg_ready"], "pg_stats": rows}).encode(),
    }
    return without(replace(answers, raw=raw), "pg_dump")


def steps(view: ClusterView) -> list[Step]:
    """Return the steps that the engine sends for a drain of osd.0 that is under way on this view. All earlier commands
    count as settled, and the balancer is off.
    """
    policy, osd = Policy(), OsdId(0)
    memory = SentMemory(view.as_of - timedelta(minutes=1), view.mgr_id, view.dump_version)
    drain = Drain(
        "osd.0-1", view.osds[osd].device, (osd,), DrainState.DRAINING, Intent.REPLACE, "person", "a test",
        view.as_of, view.as_of,
    )  # fmt: skip
    context = Context(survey_pgs(view), {}, (), view.as_of, memory)
    ready = replace(drain, plan=plan_drain(view, drain, policy, context))
    quiet = replace(view, balancer_active=False)
    answers = decide_drain_steps(
        quiet, policy, replace(context, survey=survey_pgs(quiet), drains=(ready,))
    ).answers
    return [answer for answer in answers if isinstance(answer, Step)]
