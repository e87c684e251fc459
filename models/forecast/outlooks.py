"""Outlooks of live drives: from a rule if one applies, else the bundle's forecast with its reasons."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from predrain.data.ids import DeviceId
from predrain.data.outlook import (
    GRAVITY,
    Advice,
    Life,
    Outlook,
    Status,
    SurvivalCurve,
    hold_severity,
    measure_status_persistence,
)
from predrain.data.reading import Protocol
from predrain.features.drive_state import DriveState, compute_state_matrix, day_of
from predrain.features.feature_schema import has_reported_counters
from predrain.models.forecast.bundle import Bundle
from predrain.models.forecast.explanations import (
    CODES,
    Explanation,
    describe_beside_symptoms,
    explain_forecasts,
)
from predrain.models.forecast.rules import RuleVerdict, judge_drive

Told = tuple[Explanation, list[float], SurvivalCurve, Life]
"""The forecast of one drive: explanation, probabilities within 7, 14 and 30 days, survival curve, life expectancy."""


def build_outlooks(
    bundle: Bundle,
    states: Sequence[DriveState],
    now: datetime,
    before: Mapping[DeviceId, Outlook] | None = None,
) -> list[Outlook]:
    """Build one outlook for each state, in their order. If a drive occurs several times, its older states come first.

    before: last outlooks, from which the persistence of a status is counted on.
    """
    last, source, made = dict(before or {}), f"model:{bundle.name}", list[Outlook]()
    judged = [judge_drive(state) for state in states]
    unjudged = [state for state, rules in zip(states, judged, strict=True) if rules.verdict is None]
    told = _forecast_states(bundle, unjudged, now)
    for state, rules in zip(states, judged, strict=True):
        known = last.get(state.device)
        if rules.verdict is None:
            one = _choose_graver_outlook(state, source, next(told), rules.symptoms, known)
        else:
            one = _build_rule_outlook(state, rules.verdict, known)
        last[state.device] = one
        made.append(one)
    return made


def _choose_graver_outlook(
    state: DriveState, source: str, told: Told, symptoms: RuleVerdict | None, before: Outlook | None
) -> Outlook:
    """Return the forecast's outlook, or the rules' outlook if that is graver.

    A disk with symptoms counts as such whichever maker it has and however short it was watched.
    """
    why, chances, curve, life = told
    if symptoms is None:
        return _build_model_outlook(state, source, told, before)
    if why.status is not Status.UNKNOWN and symptoms.status is Status.BAD and not symptoms.unread:
        # The forecast knows these counters, their history and the model, so only the forecast calls such a
        # drive bad.
        symptoms = replace(symptoms, status=Status.WARNING, advice=Advice.REPLACE_SOON)
    if GRAVITY[symptoms.status] > GRAVITY[why.status]:
        graver = _build_rule_outlook(state, symptoms, before)
        return graver if why.status is Status.UNKNOWN else _with_chances(graver, told)
    return _build_model_outlook(state, source, (_with_symptoms(why, symptoms), chances, curve, life), before)


def _with_chances(graver: Outlook, told: Told) -> Outlook:
    """Add the forecast's probabilities and life to a rule's outlook: they are still the best known."""
    _, (p_7d, p_14d, p_30d), curve, life = told
    return replace(graver, p_fail_7d=p_7d, p_fail_14d=p_14d, p_fail_30d=p_30d, survival=curve, life=life)


def _with_symptoms(why: Explanation, symptoms: RuleVerdict) -> Explanation:
    """Add reasons of the rules to the forecast's explanation. The advice is never "nothing" if the rules advise
    something.

    A forecast that judged the drive has weighed the counters that it reads, so no more reasons are added for those.
    """
    if why.status is Status.UNKNOWN:
        told = Advice.WATCH if symptoms.advice is Advice.NOTHING else symptoms.advice
        return replace(why, reasons=(*symptoms.reasons, *why.reasons), advice=told)
    silent = why.advice is Advice.NOTHING
    advice = symptoms.advice if silent else why.advice
    known = {reason.code for reason in why.reasons}
    if not silent or symptoms.advice is Advice.NOTHING:
        known |= set(CODES)
    more = tuple(reason for reason in symptoms.reasons if reason.code not in known)
    if more and silent:
        return replace(why, reasons=(*more, *describe_beside_symptoms(why)), advice=advice)
    return replace(why, reasons=(*why.reasons, *more), advice=advice)


def _build_rule_outlook(state: DriveState, verdict: RuleVerdict, before: Outlook | None) -> Outlook:
    readings, span_hours = measure_status_persistence(verdict.status, state.taken_at, before)
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


def _build_model_outlook(state: DriveState, source: str, told: Told, before: Outlook | None) -> Outlook:
    why, (p_7d, p_14d, p_30d), curve, life = told
    readings, span_hours = measure_status_persistence(why.status, state.taken_at, before)
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
        survival=curve,
        life=life,
        readings=readings,
        span_hours=span_hours,
        held=hold_severity(why.status, readings, before),
        advice=why.advice,
        clears=why.clears,
    )


def _forecast_states(bundle: Bundle, states: Sequence[DriveState], now: datetime) -> Iterator[Told]:
    """Forecast all states at once, which costs little more than one state."""
    if not states:
        return iter(())
    day = max(day_of(now), max(state.day for state in states))
    x = compute_state_matrix(states, day)
    model = np.array([state.face.model if state.face else "" for state in states], dtype=object)
    forecast = bundle.forecast(x, model, has_reported_counters(x))
    watched = np.array([day - state.first_day + 1 for state in states], dtype=np.int64)
    sas = np.array([state.face is not None and state.face.protocol is Protocol.SCSI for state in states])
    why = explain_forecasts(bundle, forecast, x, model, np.full(len(states), day), watched, sas)
    failed = (1.0 - forecast.survival).astype(np.float32)
    curves = [SurvivalCurve.from_failure_chances(row.tobytes()) for row in failed]
    return zip(why, forecast.p_fail.tolist(), curves, _build_lives(forecast.life), strict=True)


def _build_lives(days: NDArray[np.float64]) -> list[Life]:
    """Convert (drives, 3) days to lives. NaN, which is beyond the grid, becomes None."""
    told = days.astype(object)
    told[np.isnan(days)] = None
    return [Life(*row) for row in told.tolist()]
