"""Outlooks of live drives: a rule's where one speaks, else the bundle's forecast with its reasons."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from data.ids import DeviceId
from data.outlook import Life, Outlook, hold_severity, trust
from features.schema import reported
from features.state import DriveState, day_of, matrix
from models.bundle import YOUNG, Bundle
from models.explain import Explanation, explained
from models.rules import Verdict, judge

Told = tuple[Explanation, list[float], list[float], Life]
"""Of one drive what explains it, its chances within 7, 14 and 30 days, its curve, and how long it may live."""


def outlooks(
    bundle: Bundle,
    states: Sequence[DriveState],
    now: datetime,
    before: Mapping[DeviceId, Outlook] | None = None,
) -> list[Outlook]:
    """One outlook a state, in their order: of a drive that is there several times, the older states stand first.

    before: last outlooks, from which trust is counted on.
    """
    last, source, made = dict(before or {}), f"model:{bundle.name}", list[Outlook]()
    verdicts = [judge(state) for state in states]
    unjudged = [state for state, verdict in zip(states, verdicts, strict=True) if verdict is None]
    told = _told(bundle, unjudged, now)
    for state, verdict in zip(states, verdicts, strict=True):
        known = last.get(state.device)
        one = (
            _modelled(state, source, next(told), known) if verdict is None else _ruled(state, verdict, known)
        )
        last[state.device] = one
        made.append(one)
    return made


def _ruled(state: DriveState, verdict: Verdict, before: Outlook | None) -> Outlook:
    readings, span_hours = trust(verdict.status, state.taken_at, before)
    return Outlook(
        device=state.device,
        as_of=state.taken_at,
        status=verdict.status,
        source=f"rule:{verdict.rule}",
        reasons=verdict.reasons,
        prescription=verdict.advice.sentence,
        hard=verdict.hard,
        readings=readings,
        span_hours=span_hours,
        held=hold_severity(verdict.status, readings, before),
        rule_score=verdict.score,
        advice=verdict.advice,
        clears=verdict.clears,
        endurance=verdict.endurance,
    )


def _modelled(state: DriveState, source: str, told: Told, before: Outlook | None) -> Outlook:
    why, (p_7d, p_14d, p_30d), curve, life = told
    readings, span_hours = trust(why.status, state.taken_at, before)
    return Outlook(
        device=state.device,
        as_of=state.taken_at,
        status=why.status,
        source=source,
        reasons=why.reasons,
        prescription=why.advice.sentence,
        p_fail_7d=p_7d,
        p_fail_14d=p_14d,
        p_fail_30d=p_30d,
        survival=tuple(curve),
        life=life,
        readings=readings,
        span_hours=span_hours,
        held=hold_severity(why.status, readings, before),
        advice=why.advice,
        clears=why.clears,
    )


def _told(bundle: Bundle, states: Sequence[DriveState], now: datetime) -> Iterator[Told]:
    """What the bundle says of each state. All are forecast at once, which costs little more than one."""
    if not states:
        return iter(())
    day = max(day_of(now), max(state.day for state in states))
    x = matrix(states, day)
    model = np.array([state.face.model if state.face else "" for state in states], dtype=object)
    young = np.array([day - state.first_day + 1 < YOUNG for state in states])
    forecast = bundle.forecast(x, model, ~young & reported(x))
    why = explained(bundle, forecast, x, model, np.full(len(states), day), young)
    return zip(why, forecast.p_fail.tolist(), forecast.survival.tolist(), _lives(forecast.life), strict=True)


def _lives(days: NDArray[np.float64]) -> list[Life]:
    """Of (drives, 3) days; NaN is beyond the grid."""
    told = days.astype(object)
    told[np.isnan(days)] = None
    return [Life(*row) for row in told.tolist()]
