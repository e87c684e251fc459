"""Explanations: what is said is true of the drive, and what is promised to clear a flag clears it."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pytest

from predrain.data.history import HistoryFiles
from predrain.data.outlook import Advice, Outlook, Status
from predrain.features import DriveState, observe_reading
from predrain.features.drive_history_rows import ledger_of
from predrain.features.drive_state import compute_state_vector
from predrain.features.feature_schema import NAMES_IN_ORDER, POSITION
from predrain.features.feature_vectors import compute_feature_vectors
from predrain.models.forecast.bundle import Bundle
from predrain.models.forecast.explanations import FACTS, explain_forecasts
from predrain.models.forecast.explanations.clearing_condition import SINCE, STILL, simulate_quiet_days
from predrain.models.forecast.explanations.reasons import choose_advice
from tests.models.test_outlooks import look, reading, sick
from tests.models.test_outlooks import quiet as lived_quietly

DAILY = Path(__file__).parents[1] / "data" / "drives" / "daily.parquet"
LEVELS = [i for i, name in enumerate(NAMES_IN_ORDER) if re.fullmatch(r"smart_(5|187|188|197|198)", name)]
TOUCHED = [*STILL, *SINCE, *LEVELS, *(POSITION[name] for name in ("hours", "symptoms", "pending_fallen"))]


@pytest.fixture(scope="module")
def bundle() -> Bundle:
    return Bundle.load()


@pytest.mark.parametrize("days", [30, 90])
def test_a_quiet_time_by_arithmetic_is_a_quiet_time_by_the_kernel(days: int) -> None:
    history = HistoryFiles([DAILY], threads=1).read()
    ledger, drive = ledger_of(history), np.arange(history.drives, dtype=np.int64)
    last = history.day[history.start[1:] - 1].astype(np.int64)
    now, later = (
        compute_feature_vectors(ledger, drive, last),
        compute_feature_vectors(ledger, drive, last + days),
    )
    assert (now[:, STILL] > 0).any()
    np.testing.assert_array_equal(simulate_quiet_days(now, days)[:, TOUCHED], later[:, TOUCHED])


def test_rewritten_sectors_by_arithmetic_are_those_that_a_drive_reports() -> None:
    state = sick()
    now = compute_state_vector(state, state.day)[None, :]
    healed = observe_reading(state, reading(23, smart_197=0, smart_198=0, smart_187=12))
    later = compute_state_vector(healed, state.day + 30)
    np.testing.assert_array_equal(simulate_quiet_days(now, 30, rewritten=True)[0, TOUCHED], later[TOUCHED])


@pytest.mark.parametrize(
    "rises",
    [
        [{"smart_197": 8, "smart_198": 8}],
        [{"smart_5": 8}],
        [{"smart_5": 8}, {"smart_5": 96}],
        [{"smart_187": 1}],
        [{"smart_197": 8, "smart_187": 2}, {"smart_197": 48, "smart_187": 12}],
    ],
)
def test_a_flag_clears_after_the_promised_quiet_days_and_stays_where_no_clearing_is_promised(
    bundle: Bundle, rises: list[dict[str, int]]
) -> None:
    state = lived_quietly(20)
    for day, raw in enumerate(rises, start=20):
        state = observe_reading(state, reading(day, **raw))
    outlook = look(bundle, state)
    if outlook.status is Status.GOOD:
        assert outlook.clears == ""
        return
    found = re.fullmatch(
        r"((?:Clears|May clear) when nothing rises for (\d+) days( and the .* rewritten)?\."
        r"|Does not clear soon: after (\d+) quiet days( and rewritten sectors)? .*)",
        outlook.clears,
    )
    assert found is not None, outlook.clears
    days, rewritten = int(found[2] or found[4]), bool(found[3] or found[5])
    last = {**rises[-1], **({"smart_197": 0, "smart_198": 0} if rewritten else {})}
    end = 19 + len(rises)
    for day in range(end + 1, end + days + 1):
        state = observe_reading(state, reading(day, **last))
    after = look(bundle, state)
    assert (after.status is Status.GOOD) is (found[2] is not None), after


def test_rises_are_told_in_the_shortest_window_that_holds_them_with_their_date(bundle: Bundle) -> None:
    state = observe_reading(lived_quietly(1), reading(1, smart_187=3))
    for day in range(2, 60):
        grown = 3 + 5 * max(0, (day - 47) // 2 + 1) if day >= 47 else 3
        state = observe_reading(state, reading(day, smart_187=grown))
    told = {reason.code: reason.sentence for reason in look(bundle, state).reasons}["uncorrectable-rose"]
    assert told.startswith(
        "Reported uncorrectable errors rose on 7 of the last 15 days, 3 to 38, last on 29 Jun."
    )


def test_a_month_with_falls_tells_the_rises_and_where_the_count_is_now(bundle: Bundle) -> None:
    state = lived_quietly(20)
    for day, pending in ((20, 8), (55, 8), (56, 24), (57, 0), (58, 16)):
        state = observe_reading(state, reading(day, smart_197=pending))
    told = {reason.code: reason.sentence for reason in look(bundle, state).reasons}["pending-rose"]
    assert told.startswith("Pending sectors rose on 2 of the last 3 days, by 32, 16 now, last on 28 Jun.")


def held(*codes: str) -> list[int]:
    return [place for place, fact in enumerate(FACTS) if fact.code in codes]


@pytest.mark.parametrize(
    ("status", "codes", "advice"),
    [
        (Status.BAD, ("pending-rose",), Advice.DRAIN_NOW),
        (Status.BAD, (), Advice.DRAIN_NOW),
        (Status.WARNING, ("reallocated-rose", "crc-rose"), Advice.REPLACE_SOON),
        (Status.WARNING, ("uncorrectable-old",), Advice.SELF_TEST),
        (Status.WARNING, ("hot",), Advice.COOL),
        (Status.WARNING, ("hot", "pending-old"), Advice.SELF_TEST),
        (Status.WARNING, (), Advice.WATCH),
        (Status.WARNING, ("timeouts-rose", "crc-rose"), Advice.CHECK_CABLE),
        (Status.GOOD, ("crc-rose",), Advice.CHECK_CABLE),
        (Status.GOOD, ("crc-rose", "pending-old"), Advice.NOTHING),
        (Status.GOOD, ("hot",), Advice.NOTHING),
    ],
)
def test_the_prescription_follows_from_what_holds(
    status: Status, codes: tuple[str, ...], advice: Advice
) -> None:
    assert choose_advice(status, held(*codes)) is advice


def on_its_own(state: DriveState) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return (
        compute_state_vector(state, state.day)[None, :],
        np.array(["ST4000DM000"], dtype=object),
        np.array([state.day], dtype=np.int64),
    )


def test_a_disk_whose_cable_is_to_blame_is_never_bad(bundle: Bundle) -> None:
    state = lived_quietly(20)
    for day in range(20, 24):
        state = observe_reading(state, reading(day, smart_199=53 * (day - 19), smart_188=day - 19))
    x, model, day_ = on_its_own(state)
    forecast = bundle.forecast(x, model, np.ones(1, dtype=bool))
    as_bad = replace(forecast, status=np.array([Status.BAD], dtype=object))
    told = explain_forecasts(bundle, as_bad, x, model, day_, np.full(1, 90))[0]
    assert (told.status, told.advice) == (Status.WARNING, Advice.CHECK_CABLE)
    assert told.clears == "Clears when CRC errors stand still for 30 days."


def test_only_flagged_drives_are_asked_what_moved_their_forecast(
    bundle: Bundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    contributions = bundle.contributions
    monkeypatch.setattr(
        bundle, "contributions", lambda x, model: (asked.append(len(x)), contributions(x, model))[1]
    )
    x = np.vstack(
        [compute_state_vector(lived_quietly(20), sick().day)] * 5 + [compute_state_vector(sick(), sick().day)]
    )
    model = np.array(["ST4000DM000"] * 6, dtype=object)
    forecast = bundle.forecast(x, model, np.ones(6, dtype=bool))
    told = explain_forecasts(bundle, forecast, x, model, np.full(6, sick().day), np.full(6, 90))
    assert asked == [1]
    assert [why.advice for why in told[:5]] == [Advice.NOTHING] * 5


def test_an_outlook_carries_the_prescription_for_people_and_for_programs(bundle: Bundle) -> None:
    outlook: Outlook = look(bundle, sick())
    assert outlook.advice is not None
    assert outlook.prescription == outlook.advice.sentence
    assert outlook.rule_score is None


def test_a_flagged_drive_of_a_model_that_dies_lately_is_told_so_and_others_are_not(bundle: Bundle) -> None:
    dying = Bundle(msgspec.structs.replace(bundle.facts, lately={"ST4000DM000": 1.84}), bundle.booster)
    state = sick()
    x, day = compute_state_vector(state, state.day)[None, :], np.array([state.day])
    model, yes = np.array(["ST4000DM000"], dtype=object), np.array([True])

    def codes(asked: Bundle) -> list[str]:
        said = explain_forecasts(asked, asked.forecast(x, model, yes), x, model, day, np.full(1, 90))[0]
        return [reason.code for reason in said.reasons]

    assert codes(dying)[-1] == "model-lately"
    assert "model-lately" not in codes(
        Bundle(msgspec.structs.replace(bundle.facts, lately={}), bundle.booster)
    )
    before, after = (one.forecast(x, model, yes).p_fail[0] for one in (bundle, dying))
    assert (after > before).all()
