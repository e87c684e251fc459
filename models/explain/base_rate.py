"""What is known of how often drives of a model die, in an operator's words."""

from __future__ import annotations

from datetime import date
from functools import cache
from typing import TYPE_CHECKING

from predrain.data.outlook import Reason
from predrain.models.family import MAKERS, PublicTable, load_public_counts, maker_of, normalize_model, years

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from predrain.models.bundle import Bundle

CODE = "base-rate"


def tell_base_rate(bundle: Bundle, model: str, hours: NDArray[np.float32]) -> Reason:
    """A reason that says how often drives of this model die at this age, and who counted them.

    hours: (1,) power-on hours, NaN where they are not known.
    """
    rates, family = bundle.facts.rates, normalize_model(model)
    rate = _percent_a_year(rates.by_age(model)[int(years(hours)[0])])
    own = bundle.experience.get(family)
    here = f"here: {_count(own.drives, 'drive')}, {_count(round(own.deaths), 'failure')}" if own else ""
    counted = _load_table().models.get(family) if bundle.facts.until is None else None
    maker = maker_of(model)
    typical = "all makers" if maker is None else MAKERS[maker]
    if counted is not None:
        day = date.fromisoformat(_load_table().until)
        public = (
            f"public counts to {day:%b %Y}: {_count(counted[0], 'drive')}, {_count(counted[1], 'failure')}"
        )
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


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


@cache
def _load_table() -> PublicTable:
    return load_public_counts()
