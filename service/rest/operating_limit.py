"""The temperature up to which a drive may run by its own word."""

from __future__ import annotations

from predrain.data.reading import Smart

AIRFLOW = 190
"""The attribute whose normalised value is 100 less the temperature on drives that state a limit by its threshold."""


def find_operating_limit(seen: Smart) -> int | None:
    """Return the drive's own limit of operation in °C, or None.

    A drive without one in its report may have it in attribute 190: 100 less the threshold, if the normalised value is
    100 less the temperature. Readings before version 5 have that one alone.
    """
    if seen.temperature_limit_c is not None:
        return seen.temperature_limit_c
    airflow = seen.attributes.get(AIRFLOW)
    if airflow is None or airflow.value is None or not airflow.threshold:
        return None
    return 100 - airflow.threshold if airflow.value == 100 - airflow.raw else None
