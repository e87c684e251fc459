"""Outlooks of live drives: consistent by construction, explained in sentences, continued from the last outlook."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from predrain.data.history import EPOCH, HistoryFiles
from predrain.data.ids import DeviceId, HostName
from predrain.data.outlook import GRID_DAYS, Advice, Outlook, Status
from predrain.data.reading import Attribute, Counters, Identity, Protocol, Reading, Smart
from predrain.features import SCHEMA, DriveState, observe_reading, replay_readings
from predrain.models.forecast.bundle import Bundle
from predrain.models.forecast.explanations import CODES, explain_forecasts, format_probability
from predrain.models.forecast.history_scores import score_history
from predrain.models.forecast.outlooks import build_outlooks

DAILY = Path(__file__).parents[1] / "data" / "drives" / "daily.parquet"
START = datetime(2018, 5, 1, 12, tzinfo=UTC)


@pytest.fixture(scope="module")
def bundle() -> Bundle:
    return Bundle.load()


def reading(day: int, hour: int = 0, model: str = "ST4000DM000", **raw: int) -> Reading:
    """A hard disk's reading; raw values as smart_N."""
    values = {5: 0, 187: 0, 188: 0, 197: 0, 198: 0, 199: 0} | {int(k[6:]): v for k, v in raw.items()}
    at = START + timedelta(days=day, hours=hour)
    smart = Smart(
        Protocol.ATA,
        Identity(model=model, serial="Z1", rotation_rpm=5900),
        True,
        Counters(),
        {n: Attribute(str(n), v) for n, v in values.items()},
        power_on_hours=20_000 + 24 * day + hour,
        temperature_c=24,
    )
    return Reading(DeviceId(f"{model}_Z1"), HostName("h"), at, at, smart)


def quiet(days: int, **options: str) -> DriveState:
    state = replay_readings(reading(d, **options) for d in range(days))  # type: ignore[arg-type]
    assert state is not None
    return state


def sick(model: str = "ST4000DM000") -> DriveState:
    state = quiet(20, model=model)
    for day, pending in ((20, 8), (21, 16), (22, 48)):
        raw = {"smart_197": pending, "smart_198": pending, "smart_187": pending // 4}
        state = observe_reading(state, reading(day, model=model, **raw))
    return state


def look(bundle: Bundle, state: DriveState, before: Outlook | None = None) -> Outlook:
    return build_outlooks(bundle, [state], state.taken_at, {} if before is None else {state.device: before})[
        0
    ]


def test_a_quiet_drive_is_good_and_says_how_little_that_means(bundle: Bundle) -> None:
    outlook = look(bundle, quiet(20))
    assert outlook.status is Status.GOOD
    assert outlook.source == f"model:{bundle.name}"
    assert outlook.reasons[0].code == "no-symptom"
    assert "about 4 in 10 failures give no sign" in outlook.reasons[0].sentence


def test_a_drive_whose_sectors_go_is_flagged_with_numbers_and_a_prescription(bundle: Bundle) -> None:
    outlook = look(bundle, sick())
    assert outlook.status in (Status.WARNING, Status.BAD)
    pending = next(reason for reason in outlook.reasons if reason.counter == "pending")
    assert pending.sentence.startswith(
        "First pending sectors on 21 May; they rose on 3 days, 0 to 48, last on 23 May."
    )
    assert outlook.advice in (Advice.REPLACE_SOON, Advice.DRAIN_NOW)
    assert outlook.prescription == outlook.advice.sentence
    assert outlook.clears
    assert outlook.p_fail_30d is not None
    assert outlook.p_fail_30d > 5 * (look(bundle, quiet(20)).p_fail_30d or 0)


def test_crc_errors_alone_point_at_the_cable(bundle: Bundle) -> None:
    state = quiet(20)
    for day in range(20, 24):
        state = observe_reading(state, reading(day, smart_199=53 * (day - 19)))
    outlook = look(bundle, state)
    assert "crc-rose" in [reason.code for reason in outlook.reasons]
    assert outlook.prescription.startswith("Check cable or backplane")
    assert outlook.clears == "Clears when CRC errors stand still for 30 days."


def test_a_drive_read_once_or_of_an_unknown_maker_is_judged_by_its_counters(bundle: Bundle) -> None:
    for state in (quiet(1), quiet(9, model="WUHQ 721")):
        outlook = look(bundle, state)
        assert (outlook.status, outlook.reasons[0].code) == (Status.GOOD, "no-symptom")
        assert outlook.p_fail_30d is not None


def test_a_drive_of_an_unknown_maker_whose_sectors_go_is_flagged_as_any_other(bundle: Bundle) -> None:
    known, unknown = look(bundle, sick()), look(bundle, sick(model="ACME DH18000"))
    assert unknown.status is known.status is not Status.GOOD
    assert {reason.code for reason in unknown.reasons} == {reason.code for reason in known.reasons}


def test_trust_counts_readings_and_hours_that_bear_the_status_out(bundle: Bundle) -> None:
    state = sick()
    first = look(bundle, state)
    assert (first.readings, first.span_hours) == (1, 0.0)
    state = observe_reading(state, reading(22, 6, smart_197=48, smart_198=48, smart_187=12))
    second = look(bundle, state, first)
    assert (second.readings, second.span_hours) == (2, 6.0)
    assert look(bundle, state, second) == second
    assert look(bundle, quiet(30), second).readings == 1


def test_outlooks_come_in_the_order_of_the_states_whoever_judges_them(bundle: Bundle) -> None:
    worn = Smart(Protocol.NVME, Identity(model="NV"), True, Counters(percentage_used=101))
    nvme = observe_reading(None, Reading(DeviceId("NV_1"), HostName("h"), START, START, worn))
    found = build_outlooks(bundle, [sick(), nvme, quiet(9)], START + timedelta(days=30))
    assert [outlook.source.split(":")[0] for outlook in found] == ["model", "rule", "model"]
    assert found[1].p_fail_30d is None
    assert found[1].survival is None


def test_the_stream_forecasts_what_the_batch_scores(bundle: Bundle) -> None:
    past = HistoryFiles([DAILY], threads=1).read()
    day = int(past.day[past.start[1] - 1])
    table = score_history(past, bundle, np.array([day], dtype=np.int64)).to_pylist()
    state = None
    for row in range(past.start[0], past.start[1]):
        raw = {
            f"smart_{n}": int(values[row]) for n, values in past.raw.items() if n not in (9, 194, 241, 242)
        }
        at = datetime.combine(EPOCH, datetime.min.time(), UTC) + timedelta(days=int(past.day[row]))
        smart = Smart(
            Protocol.ATA,
            Identity(model="ST4000DM000", rotation_rpm=5900),
            True,
            Counters(bytes_written=int(past.raw[241][row]) * 512, bytes_read=int(past.raw[242][row]) * 512),
            {int(k[6:]): Attribute(k, v) for k, v in raw.items()},
            power_on_hours=int(past.raw[9][row]),
            temperature_c=int(past.raw[194][row]),
        )
        state = observe_reading(state, Reading(DeviceId("x"), HostName("h"), at, at, smart))
    assert state is not None
    outlook = look(bundle, state)
    mine = next(row for row in table if row["serial_number"] == past.serials[0])
    assert outlook.p_fail_30d == mine["p_fail_30d"]
    assert outlook.status == mine["status"]
    for told in (*(reason.sentence for reason in outlook.reasons), outlook.clears):
        assert told in mine["reason"]


ANY = arrays(
    np.float32,
    (6, len(SCHEMA)),
    elements=st.one_of(
        st.just(np.float32("nan")), st.floats(0, 2**20, width=32), st.integers(0, 60).map(float)
    ),
)


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(ANY)
def test_the_forecast_is_consistent_for_any_measured_values(bundle: Bundle, x: np.ndarray) -> None:
    model = np.array(
        ["ST4000DM000", "WDC WD30EFRX", "HGST HMS5C4040ALE640", "FOO", "", "TOSHIBA X"], dtype=object
    )
    found = bundle.forecast(x, model, np.ones(6, dtype=bool))
    assert np.isfinite(found.p_fail).all()
    assert ((found.p_fail >= 0) & (found.p_fail <= 1)).all()
    assert (np.diff(found.p_fail, axis=1) >= 0).all()
    assert found.survival.shape == (6, len(GRID_DAYS))
    assert (found.survival[:, 0] == 1).all()
    assert (np.diff(found.survival, axis=1) <= 0).all()
    for days, column in ((7, 0), (14, 1), (30, 2)):
        at = GRID_DAYS.index(days)
        assert found.survival[:, at] == pytest.approx(1 - found.p_fail[:, column], abs=1e-9)
    life = np.where(np.isnan(found.life), np.inf, found.life)
    assert (life[:, 0] <= life[:, 1]).all()
    assert (life[:, 1] <= life[:, 2]).all()
    told = explain_forecasts(bundle, found, x, model, np.full(6, 17_000), np.arange(6) * 9)
    assert all(why.reasons and all(reason.code in CODES for reason in why.reasons) for why in told)


@pytest.mark.parametrize(
    ("p", "said"),
    [(0.0004, "under 0.1 %"), (0.0042, "0.4 %"), (0.068, "7 %"), (0.68, "68 %"), (0.97, "over 95 %")],
)
def test_a_chance_is_said_as_the_page_says_it(p: float, said: str) -> None:
    assert format_probability(p) == said
