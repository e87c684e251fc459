"""Outlooks of live drives: a rule's where one speaks, else the bundle's forecast with its reasons."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from predrain.data.ids import DeviceId
from predrain.data.outlook import GRAVITY, Advice, Life, Outlook, Status, hold_severity, trust
from predrain.data.reading import Protocol
from predrain.features.schema import reported
from predrain.features.state import DriveState, day_of, matrix
from predrain.models.bundle import Bundle
from predrain.models.explain import CODES, Explanation, describe_beside_symptoms, explained
from predrain.models.rules import RuleVerdict, judge, judge_symptoms

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
        if verdict is None:
            one = _floored(state, source, next(told), judge_symptoms(state), known)
        else:
            one = _ruled(state, verdict, known)
        last[state.device] = one
        made.append(one)
    return made


def _floored(
    state: DriveState, source: str, told: Told, symptoms: RuleVerdict | None, before: Outlook | None
) -> Outlook:
    """The forecast's outlook, or the rules' where they speak more gravely: a disk with symptoms is one, whoever made
    it and however short it was watched."""
    why, chances, curve, life = told
    if symptoms is None:
        return _modelled(state, source, told, before)
    if why.status is not Status.UNKNOWN and symptoms.status is Status.BAD and not symptoms.unread:
        # The forecast knows these counters, what they did before, and the model: it alone calls such a drive bad.
        symptoms = replace(symptoms, status=Status.WARNING, advice=Advice.REPLACE_SOON)
    if GRAVITY[symptoms.status] > GRAVITY[why.status]:
        graver = _ruled(state, symptoms, before)
        return graver if why.status is Status.UNKNOWN else _with_chances(graver, told)
    return _modelled(state, source, (_with_symptoms(why, symptoms), chances, curve, life), before)


def _with_chances(graver: Outlook, told: Told) -> Outlook:
    """A rule's outlook of a drive that the forecast judges too: its chances and its life are still the best known."""
    _, (p_7d, p_14d, p_30d), curve, life = told
    return replace(
        graver, p_fail_7d=p_7d, p_fail_14d=p_14d, p_fail_30d=p_30d, survival=tuple(curve), life=life
    )


def _with_symptoms(why: Explanation, symptoms: RuleVerdict) -> Explanation:
    """The forecast's explanation with what only the rules say; never "nothing to do" where they say what to do.

    A forecast that judged the drive has weighed the counters that it reads, so that of those no more is told.
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


def _ruled(state: DriveState, verdict: RuleVerdict, before: Outlook | None) -> Outlook:
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
    forecast = bundle.forecast(x, model, reported(x))
    watched = np.array([day - state.first_day + 1 for state in states], dtype=np.int64)
    sas = np.array([state.face is not None and state.face.protocol is Protocol.SCSI for state in states])
    why = explained(bundle, forecast, x, model, np.full(len(states), day), watched, sas)
    return zip(why, forecast.p_fail.tolist(), forecast.survival.tolist(), _lives(forecast.life), strict=True)


def _lives(days: NDArray[np.float64]) -> list[Life]:
    """Of (drives, 3) days; NaN is beyond the grid."""
    told = days.astype(object)
    told[np.isnan(days)] = None
    return [Life(*row) for row in told.tolist()]
