"""Outlooks of live drives: a rule's where one speaks, else the bundle's forecast with its reasons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from data.ids import DeviceId
from data.outlook import Life, Outlook, trust
from features.schema import reported
from features.state import DriveState, day_of, matrix
from models.bundle import YOUNG, Bundle
from models.explain import explained
from models.rules import judge


def outlooks(
    bundle: Bundle,
    states: Sequence[DriveState],
    now: datetime,
    before: Mapping[DeviceId, Outlook] | None = None,
) -> list[Outlook]:
    """One outlook a state, in their order. before: last outlooks, from which trust is counted on."""
    before = {} if before is None else before
    said: dict[int, Outlook] = {}
    to_model: list[int] = []
    for place, state in enumerate(states):
        verdict = judge(state)
        if verdict is None:
            to_model.append(place)
            continue
        readings, span_hours = trust(verdict.status, state.taken_at, before.get(state.device))
        said[place] = Outlook(
            device=state.device,
            as_of=state.taken_at,
            status=verdict.status,
            source=f"rule:{verdict.rule}",
            reasons=verdict.reasons,
            prescription=verdict.advice.sentence,
            hard=verdict.hard,
            readings=readings,
            span_hours=span_hours,
            rule_score=verdict.score,
            advice=verdict.advice,
            clears=verdict.clears,
            endurance=verdict.endurance,
        )
    modelled = _modelled(bundle, [states[place] for place in to_model], now, before)
    said.update(zip(to_model, modelled, strict=True))
    return [said[place] for place in range(len(states))]


def _modelled(
    bundle: Bundle, states: Sequence[DriveState], now: datetime, before: Mapping[DeviceId, Outlook]
) -> list[Outlook]:
    if not states:
        return []
    day = max(day_of(now), max(state.day for state in states))
    x = matrix(states, day)
    model = np.array([state.face.model if state.face else "" for state in states], dtype=object)
    young = np.array([day - state.first_day + 1 < YOUNG for state in states])
    forecast = bundle.forecast(x, model, ~young & reported(x))
    told = explained(bundle, forecast, x, model, np.full(len(states), day), young)
    source, made = f"model:{bundle.name}", list[Outlook]()
    for state, why, (p_7d, p_14d, p_30d), curve, life in zip(
        states, told, forecast.p_fail.tolist(), forecast.survival.tolist(), _lives(forecast.life), strict=True
    ):
        readings, span_hours = trust(why.status, state.taken_at, before.get(state.device))
        made.append(
            Outlook(
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
                advice=why.advice,
                clears=why.clears,
            )
        )
    return made


def _lives(days: NDArray[np.float64]) -> list[Life]:
    """Of (drives, 3) days; NaN is beyond the grid."""
    told = days.astype(object)
    told[np.isnan(days)] = None
    return [Life(*row) for row in told.tolist()]
