"""The death rate of drives of a model, in an operator's words."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING

from predrain.data.outlook import Reason
from predrain.models.forecast.drive_family import (
    MAKERS,
    compute_age_years,
    load_public_counts,
    maker_of,
    normalize_model,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from predrain.models.forecast.bundle import Bundle

CODE = "base-rate"


def tell_base_rate(bundle: Bundle, model: str, hours: NDArray[np.float32]) -> Reason:
    """Return a reason that says how often drives of this model die at this age, and where they were counted.

    hours: (1,) power-on hours, NaN where they are not known.
    """
    rates, family = bundle.facts.rates, normalize_model(model)
    rate = _percent_a_year(rates.by_age(model)[int(compute_age_years(hours)[0])])
    own = bundle.experience.get(family)
    here = (
        f"here: {_format_count(own.drives, 'drive')}, {_format_count(round(own.deaths), 'failure')}"
        if own
        else ""
    )
    counted = load_public_counts().models.get(family) if bundle.facts.until is None else None
    maker = maker_of(model)
    typical = "all makers" if maker is None else MAKERS[maker]
    if counted is not None:
        day = date.fromisoformat(load_public_counts().until)
        drives, failures = _format_count(counted[0], "drive"), _format_count(counted[1], "failure")
        public = f"public counts to {day:%b %Y}: {drives}, {failures}"
        told = f"Drives of this model fail at {rate} a year ({'; '.join(filter(None, (public, here)))})."
    elif own is not None:
        told = f"Drives of this model fail at {rate} a year (typical of {typical}; {here})."
    elif family in bundle.facts.rates.models or model in bundle.facts.rates.models:
        told = f"Drives of this model fail at {rate} a year, in the histories that were learned from."
    else:
        told = (
            f"No count of this model is known: {rate} a year is typical of {typical}, "
            "and may be several times too high or too low."
        )
    return Reason(CODE, told)


def _percent_a_year(rate: float) -> str:
    return f"{100 * rate:.1f} %" if rate < 0.1 else f"{100 * rate:.0f} %"


def _format_count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" + ("" if number == 1 else "s")
