"""Membership functions: the degree of a number as evidence, by straight lines between stated breakpoints.

No function is fitted to failures. They express in numbers what specifications and published findings say in words.
The functions of levels with known data of fleets in service are in `fleet`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Final


@dataclass(frozen=True, slots=True)
class DegreeRamp:
    """A function from a number to a degree in [0, 1]. It is flat before the first and after the last breakpoint."""

    measures: str
    points: tuple[tuple[float, float], ...]
    """(number, degree), numbers ascending."""
    source: str
    logarithmic: bool = False
    """True if the lines are straight over the number's logarithm, which suits counts."""

    def __call__(self, number: float) -> float:
        """Return the degree of `number`. It is 0 for a count below the first breakpoint of a logarithmic ramp."""
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


RAMPS: Final[Mapping[str, DegreeRamp]] = {
    "wear": DegreeRamp(
        "percent of its rated life used",
        ((80, 0.0), (100, 0.4), (200, 0.6)),
        "NVMe Base 2.0, 5.16.1.3: 100 is the maker's estimate of its endurance and no failure; wear of 90 % and more "
        "is 2.4 times as common among failed SSDs, wear alone marks 4 % of them",
    ),
    "rated-life": DegreeRamp(
        "days until half the odds are that its rated life is used up",
        ((0, 0.6), (30, 0.4), (365, 0.0)),
        "30 days are the longest horizon of a forecast here; a year is what a replacement is planned in",
    ),
    "spare-left": DegreeRamp(
        "share of the way from 100 % spare to its threshold that is left",
        ((0, 0.35), (0.5, 0.0)),
        "NVMe Base 2.0: the drive warns *below* the threshold; at the threshold 0.03 to 0.32 % of drives in service "
        "stand, most with a threshold of 100",
    ),
    "reallocated-rise": DegreeRamp(
        "sectors newly reallocated within 7 days",
        ((1, 0.4), (100, 0.6)),
        "of 244 failing SSDs of one model 8 % gain any a week or more ahead, 38 % have any two days before the end, "
        "89 % one",
        logarithmic=True,
    ),
    "sectors-rise": DegreeRamp(
        "hard disk: sectors newly pending or offline uncorrectable, or new uncorrectable errors, within 7 days",
        ((1, 0.4), (16, 0.8), (1000, 0.9)),
        "sectors of which data cannot be read now; measured below (hard disks whose forecast is known)",
        logarithmic=True,
    ),
    "remapped-rise": DegreeRamp(
        "hard disk: sectors newly reallocated within 7 days",
        ((1, 0.4), (100, 0.8), (1000, 0.9)),
        "as above; a sector that was reallocated is mended, unlike one that is pending",
        logarithmic=True,
    ),
    "self-test": DegreeRamp(
        "failed self-tests since the newest long one that passed",
        ((1, 0.5), (3, 0.7)),
        "the drive itself found what it cannot read; a failed test is logged on 0.34 % of hard disks and 0.04 % of "
        "SATA SSDs in service in servers",
    ),
    "io-errors": DegreeRamp(
        "I/O errors that the kernel logged within 24 hours",
        ((1, 0.2), (10, 0.4), (1000, 0.75)),
        "a bad sector costs an error each time it is read; thousands are a drive that hardly answers, or the way to "
        "it, so that they never reach bad without a sign of the drive itself; no public fleet tells",
        logarithmic=True,
    ),
    "io-errors-old": DegreeRamp(
        "I/O errors that the kernel logged within 7 days, none of them within 24 hours",
        ((1, 0.1), (1000, 0.3)),
        "as above, and over",
        logarithmic=True,
    ),
    "timeouts-rise": DegreeRamp(
        "hard disk: new command timeouts within 7 days",
        ((1, 0.1), (42, 0.3)),
        "of the way to the drive, its power or itself: above 0 on 11 % of drives in service",
        logarithmic=True,
    ),
    "end-to-end-rise": DegreeRamp(
        "new end-to-end errors within 7 days",
        ((1, 0.4), (100, 0.6)),
        "one of the three hard signals (184, 187, 197) that mark 11 % of failed SSDs",
        logarithmic=True,
    ),
    "uncorrected": DegreeRamp(
        "SAS: uncorrected errors, none of them new",
        ((1, 0.4), (1000, 0.6)),
        "SPC-5, 7.3.4: each is a read or write whose data the drive could not give or keep; as media errors of NVMe, "
        "which 0.4 % of drives in service have; no fleet of SAS drives is public",
        logarithmic=True,
    ),
    "grown-defects-rise": DegreeRamp(
        "grown defects gained within 14 days",
        ((1, 0.4), (10, 0.8), (100, 0.9)),
        "SBC-4: a grown defect is a block that the drive gave up in service; no fleet to measure on",
        logarithmic=True,
    ),
}
