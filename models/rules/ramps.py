"""Membership functions: how strongly a number speaks, by straight lines between stated breakpoints.

None is fitted to failures. They say in numbers what specifications and published findings say in words; but for
NVMe's media errors a level stays below the warning however high it is, since it marks many drives in service and may
be years old.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Final


@dataclass(frozen=True, slots=True)
class Ramp:
    """From a number to a degree in [0, 1]; flat before the first and after the last breakpoint."""

    measures: str
    points: tuple[tuple[float, float], ...]
    """(number, degree), numbers ascending."""
    source: str
    logarithmic: bool = False
    """Lines are straight over the number's logarithm: for counts."""

    def __call__(self, number: float) -> float:
        """The degree of `number`. A count below the first breakpoint of a logarithmic ramp has none."""
        first, last = self.points[0], self.points[-1]
        if number <= first[0]:
            return 0.0 if self.logarithmic and number < first[0] else first[1]
        for (x0, y0), (x1, y1) in pairwise(self.points):
            if number < x1:
                at = (
                    math.log(number / x0) / math.log(x1 / x0)
                    if self.logarithmic
                    else (number - x0) / (x1 - x0)
                )
                return y0 + (y1 - y0) * at
        return last[1]


RAMPS: Final[Mapping[str, Ramp]] = {
    "wear": Ramp(
        "percent of its rated life used",
        ((80, 0.0), (100, 0.4), (200, 0.6)),
        "NVMe Base 2.0, 5.16.1.3: 100 is the maker's estimate of its endurance and no failure; wear of 90 % and more "
        "is 2.4 times as common among failed SSDs, wear alone marks 4 % of them",
    ),
    "rated-life": Ramp(
        "days until half the odds are that its rated life is used up",
        ((0, 0.6), (30, 0.4), (365, 0.0)),
        "30 days are the longest horizon of a forecast here; a year is what a replacement is planned in",
    ),
    "spare-left": Ramp(
        "share of the way from 100 % spare to its threshold that is left",
        ((0, 0.35), (0.5, 0.0)),
        "NVMe Base 2.0: the drive warns *below* the threshold; at the threshold 0.03 to 0.32 % of drives in service "
        "stand, most with a threshold of 100",
    ),
    "media-errors": Ramp(
        "media errors, none of them new",
        ((1, 0.15), (10, 0.4), (1000, 0.6)),
        "above 0 on 0.42 / 1.2 % of drives in service, 10 and more on 0.20 / 0.61 %",
        logarithmic=True,
    ),
    "uncorrectable": Ramp(
        "reported uncorrectable errors, none of them new",
        ((1, 0.2), (100, 0.3)),
        "above 0 on 1.6 / 3.4 % in service and on 11 % of failed: about 14 % a year, no reason to drain",
        logarithmic=True,
    ),
    "reallocated": Ramp(
        "reallocated sectors, none of them new",
        ((1, 0.05), (100, 0.3)),
        "above 0 on 8.8 / 6.2 % in service; 100 and more on 0.45 / 0.95 %, on 3.9 % of failed",
        logarithmic=True,
    ),
    "reallocated-rise": Ramp(
        "sectors newly reallocated within 7 days",
        ((1, 0.4), (100, 0.6)),
        "of 244 failing SSDs of one model 8 % gain any a week or more ahead, 38 % have any two days before the end, "
        "89 % one",
        logarithmic=True,
    ),
    "end-to-end-rise": Ramp(
        "new end-to-end errors within 7 days",
        ((1, 0.4), (100, 0.6)),
        "one of the three hard signals (184, 187, 197) that mark 11 % of failed SSDs",
        logarithmic=True,
    ),
    "uncorrected": Ramp(
        "uncorrected errors of a SAS drive, none of them new",
        ((1, 0.1), (1000, 0.25)),
        "a drive with 536 and 260 grown defects calls itself OK; no fleet to measure on",
        logarithmic=True,
    ),
    "grown-defects": Ramp(
        "grown defects of a SAS drive, none of them new",
        ((1, 0.05), (1000, 0.25)),
        "as above",
        logarithmic=True,
    ),
    "grown-defects-rise": Ramp(
        "grown defects gained within 14 days",
        ((1, 0.4), (10, 0.8), (100, 0.9)),
        "SBC-4: a grown defect is a block that the drive gave up in service; no fleet to measure on",
        logarithmic=True,
    ),
}
