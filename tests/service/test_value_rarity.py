"""How rare a value is among the drives in service, and how often the drives of a model fail."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from predrain.data.ids import DeviceId, HostName
from predrain.data.reading import Attribute, Counters, Identity, Protocol, Reading, Smart, Unreadable
from predrain.service.fleet.drive_models import compute_failure_rate
from predrain.service.fleet.smart_meanings import UNKNOWN_MEANING, find_attribute_meaning
from predrain.service.fleet.value_rarity import ValueRarity, compare_values, list_value_meanings
from predrain.service.rest.attribute_routes import thin_points
from predrain.service.rest.operating_limit import find_operating_limit

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


def drive(
    model: str, name: str = "Reallocated_Sector_Ct", raw: int = 0, value: int = 100, id_: int = 5
) -> Smart:
    attributes = {id_: Attribute(name, raw, value, value, 10)}
    return Smart(Protocol.ATA, Identity(model=model), True, Counters(), attributes)


def read(number: int, seen: Smart | Unreadable) -> Reading:
    return Reading(DeviceId(f"disk-{number}"), HostName("stor-1"), NOON, NOON, seen)


def test_a_value_is_compared_with_drives_of_its_model_where_there_are_enough() -> None:
    fleet = [read(n, drive("A", raw=n % 2)) for n in range(4)] + [read(9, drive("B", raw=50))]
    found = compare_values(DeviceId("disk-own"), drive("A", raw=1), fleet, least=4)
    assert found[5] == ValueRarity(compared=4, better=2, equal=2, same_model=True)


def test_with_too_few_of_its_model_all_that_report_it_are_compared() -> None:
    fleet = [read(1, drive("A", raw=0)), read(2, drive("B", raw=50))]
    found = compare_values(DeviceId("disk-own"), drive("A", raw=1), fleet, least=20)
    assert found[5] == ValueRarity(compared=2, better=1, equal=0, same_model=False)


def test_a_drive_is_compared_neither_with_itself_nor_with_one_that_cannot_be_read() -> None:
    fleet = [read(1, drive("A")), read(2, Unreadable(NOON, "it does not answer"))]
    assert compare_values(DeviceId("disk-1"), drive("A"), fleet) == {}


def test_rates_of_errors_are_compared_by_their_normalised_value() -> None:
    own = drive("A", "Raw_Read_Error_Rate", raw=1, value=60, id_=1)
    fleet = [read(1, drive("A", "Raw_Read_Error_Rate", raw=10**8, value=100, id_=1))]
    assert compare_values(DeviceId("disk-own"), own, fleet, least=1)[1].better == 1


def test_an_id_that_means_something_else_on_another_model_is_not_compared() -> None:
    own = drive("A", "Runtime_Bad_Block", id_=183)
    fleet = [read(1, drive("B", "SATA_Iface_Downshift", id_=183))]
    assert compare_values(DeviceId("disk-own"), own, fleet) == {}


def test_a_name_that_nobody_documents_has_no_meaning_and_an_imported_one_has_the_usual() -> None:
    assert find_attribute_meaning(5, "Vendor_Thing") is UNKNOWN_MEANING
    assert find_attribute_meaning(5, "smart_5").title == "Reallocated sectors"


@pytest.mark.parametrize(
    ("failures", "low", "high"),
    [(0, 0.0, 3.689), (1, 0.0253, 5.572), (10, 4.795, 18.39), (100, 81.36, 121.63)],
)
def test_the_interval_of_a_failure_rate_is_that_of_a_poisson_count(
    failures: int, low: float, high: float
) -> None:
    rate = compute_failure_rate(failures, 1.0)
    assert rate is not None
    assert rate.low == pytest.approx(low, rel=0.02, abs=0.02)
    assert rate.high == pytest.approx(high, rel=0.02)


def test_drives_that_were_watched_for_no_time_have_no_failure_rate() -> None:
    assert compute_failure_rate(0, 0.0) is None


def test_a_small_chart_keeps_the_highest_value_of_each_share_of_the_time() -> None:
    points = [(NOON.replace(minute=minute), 7 if minute == 31 else 0) for minute in range(60)]
    thin = thin_points(points, most=6)
    assert [value for _, value in thin] == [0, 0, 0, 7, 0, 0]


def test_a_drive_states_its_temperature_limit_by_the_threshold_of_attribute_190() -> None:
    airflow = Attribute("Airflow_Temperature_Cel", 30, 70, 50, 40)
    seen = replace(drive("A"), attributes={190: airflow})
    assert find_operating_limit(seen) == 60
    assert find_operating_limit(replace(seen, temperature_limit_c=55)) == 55
    assert find_operating_limit(drive("A")) is None


def test_hours_and_temperature_are_listed_once_unless_the_attribute_packs_more_into_its_raw_value() -> None:
    plain = replace(
        drive("A"),
        attributes={194: Attribute("Temperature_Celsius", 31, 69, 50, 0)},
        temperature_c=31,
        power_on_hours=None,
    )
    assert "temperature_c" not in list_value_meanings(plain)
    packed = replace(plain, attributes={194: Attribute("Temperature_Celsius", 31 + (20 << 16), 69, 50, 0)})
    assert "temperature_c" in list_value_meanings(packed)
