"""What an ATA drive tells twice in one output: power-on hours and temperature, by attribute and by device statistic.

smartctl prints the device statistics last and writes them over what it took from the attributes and from SCT
(`ataprint.cpp`, `set_json_globals_from_device_statistics`), so that `power_on_time` and `temperature` of `-x --json`
are the statistic's. Some SSDs fill that page from a template or lose it at a reset, while their attributes go on.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

_MOST_HOURS = 350_400  # forty years, as data.wire.acceptance has it
"""More hours than any drive that counts them has. A drive that smartctl's database does not know may count minutes or
half minutes under the same name."""
_PARTS_OF_AN_HOUR = (60, 120)
_SECONDS_OF_AN_HOUR = 3600
_SECONDS_JUDGED_FROM_HOURS = 24
"""Below a day, seconds cannot be told from the hours of a drive in service: 5 h are 18,000 s."""
_SAME_SPAN_HOURS, _SAME_SPAN_SHARE = 1.5, 0.02
_SAME_PLACE_C = 5


def choose_power_on_hours(reported: Iterable[int | None], attribute: int | None) -> int | None:
    """Power-on hours out of two counts of the same span; None where neither is plausible.

    reported: hours as smartctl and the statistics tell them, the most trusted first. attribute: raw value of
    attribute 9. Hours never run back, so the smaller of the two counts is the one that was reset or never kept; unless
    the attribute is the same span in minutes, half minutes or seconds.
    """
    hours = next((told for told in reported if told is not None and 0 <= told <= _MOST_HOURS), None)
    if attribute is None or not 0 <= attribute <= _MOST_HOURS:
        return hours
    if hours is None:
        return attribute
    return hours if _counts_parts_of(hours, attribute) else max(hours, attribute)


def _counts_parts_of(hours: int, attribute: int) -> bool:
    units = (*_PARTS_OF_AN_HOUR, _SECONDS_OF_AN_HOUR)
    slack = max(_SAME_SPAN_HOURS, _SAME_SPAN_SHARE * hours)
    return any(
        abs(attribute / unit - hours) <= slack
        for unit in (units if hours >= _SECONDS_JUDGED_FROM_HOURS else _PARTS_OF_AN_HOUR)
    )


def choose_temperature(sensors: Sequence[int | None], statistic: int | None) -> int | None:
    """Degrees Celsius out of several tellers; None where no teller has one.

    sensors: SCT status and attributes 194 and 190, in this order. statistic: `Current Temperature` of the device
    statistics. The first value that another one confirms within 5 degrees; where no two agree, the first of the
    sensors, and the statistic only where there is no sensor.
    """
    told = [value for value in (*sensors, statistic) if value is not None]
    for place, value in enumerate(told):
        others = told[:place] + told[place + 1 :]
        if any(abs(value - other) <= _SAME_PLACE_C for other in others):
            return value
    return next(iter(told), None)
