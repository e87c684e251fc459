"""A comparison of bundles by outcomes: champion and challenger on the same disks and days, by the protocol.

A failure is foretold when the bundle called the disk warning (or bad) on one of the 30 days before it. A false
alarm is a healthy window with such a call: a disk's 30 days after which the disk is known to have lived 30 days
more. Brier score and expected over observed are those of p_fail_30d. Each bundle is judged by its own thresholds,
as it would have acted. Below 30 failures these figures are no evidence, and the sentence says so. A test that may
be read every day decides whether a challenger is better (models.deploy.sequential_test).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import reduce
from typing import Final

import numpy as np
from numpy.typing import NDArray

from predrain.data.lifespan import Lifespans
from predrain.data.outlook import Status
from predrain.data.scorebook import ScorebookForecasts
from predrain.models.deploy.poisson_limits import compute_poisson_limits
from predrain.models.deploy.sequential_test import ENOUGH_EVIDENCE, estimate_days_left, weigh_evidence

HORIZON: Final = 30
ENOUGH: Final = 30
"""Number of failures below which a figure is no evidence (docs/explanation/evaluation.md)."""
RESAMPLES: Final = 400
MORE_ALARMS: Final = 0.25
"""Share of the champion's false alarms by which a challenger's may exceed them."""
FEW_ALARMS: Final = 5
"""Number of false alarms by which a challenger's may exceed the champion's in any case."""


@dataclass(frozen=True, slots=True)
class BundleComparison:
    """The figures of one bundle. Shares are None if there is nothing to divide by."""

    bundle: str
    detected: int
    """Failures with a warning or bad in the 30 days before."""
    detected_bad: int
    false_alarms: int
    """Healthy windows with a warning or bad."""
    false_alarms_bad: int
    brier: float | None
    expected: float
    """Sum of p_fail_30d over the rows whose outcome is known."""
    lead_days: float | None
    """Median days from the first call to the failure, over the foretold failures."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Bundles compared on the same disks and days."""

    standings: tuple[BundleComparison, ...]
    failures: int
    windows: int
    rows: int
    """Forecasts whose outcome 30 days later is known."""
    observed: int
    """Number of these forecasts whose disk failed."""
    recall_gain: tuple[float, float] | None
    """95 % interval (drives resampled) of the second bundle's foretold share minus the first's; None if there are
    too few."""
    brier_gain: tuple[float, float] | None
    """The same interval of the first bundle's Brier score minus the second's. Above 0 the second bundle is better."""
    only_first: int = 0
    """Failures that the first bundle foretold and the second did not."""
    only_second: int = 0
    """Failures that the second bundle foretold and the first did not."""
    days: int = 0
    """Days from the first compared forecast to the last."""

    @property
    def has_enough_failures(self) -> bool:
        """True if there are enough failures for these figures to be evidence."""
        return self.failures >= ENOUGH

    @property
    def evidence(self) -> float:
        """The e-value for "the second foretells more": how many times likelier the failures are under it than by
        chance."""
        return weigh_evidence(self.only_second, self.only_first)

    @property
    def days_left(self) -> float | None:
        """Days until the evidence is enough, at the present rate of failures. 0: it is enough. None: nothing
        favours the second."""
        return estimate_days_left(self.only_second, self.only_first, self.days)

    @property
    def is_second_better(self) -> bool:
        """True if the second bundle really foretells more, without more false alarms or worse probabilities."""
        return self.evidence >= ENOUGH_EVIDENCE and not self._costs()

    def sentence(self) -> str:
        """Return the conclusion that the figures support."""
        if len(self.standings) < 2:
            return (
                "There is no challenger to compare with."
                if self.has_enough_failures
                else f"Too few to judge: {self.failures} failures on record, {ENOUGH} are wanted."
            )
        first, second = (standing.bundle for standing in self.standings)
        if not self.failures:
            return f"No failure is on record yet, so nothing tells {second} from {first}."
        failures = "1 failure" if self.failures == 1 else f"{self.failures} failures"
        seen = (
            f"Of {failures} in {self.days} days {self.only_second} were foretold by {second} alone and "
            f"{self.only_first} by {first} alone"
        )
        costs = self._costs()
        if self.evidence >= ENOUGH_EVIDENCE:
            return f"{seen}: {second} really foretells more" + (
                f", but {costs}; a person has to choose." if costs else "."
            )
        if weigh_evidence(self.only_first, self.only_second) >= ENOUGH_EVIDENCE:
            return f"{seen}: {second} really foretells less."
        left = self.days_left
        if left is None:
            return f"{seen}: nothing speaks for {second} so far."
        return f"{seen}: too few to tell them apart. As failures come here, it takes about {_words_of_days(left)} more."

    def _costs(self) -> str:
        """Describe a disadvantage of the second bundle, although it may foretell more; return "" if there is none."""
        if len(self.standings) < 2:
            return ""
        first, second = self.standings
        more = second.false_alarms - first.false_alarms
        if more > max(MORE_ALARMS * first.false_alarms, FEW_ALARMS):
            return (
                f"it calls {second.false_alarms} healthy windows of {self.windows}, and {first.bundle} "
                f"{first.false_alarms}"
            )
        if self.brier_gain is not None and self.brier_gain[1] < 0:
            return "its chances are really worse (Brier score)"
        return ""


def _words_of_days(days: float) -> str:
    if days < 60:
        return f"{max(1, round(days))} days"
    return f"{round(days / 30.4)} months" if days < 3 * 365 else "three years or"


class CalibrationVerdict(StrEnum):
    """The verdict on a family's probabilities from its expected and observed failures.

    DOUBTFUL: they differ by more than chance, on fewer failures than an alert needs. TOO_FEW: they agree, but there
    are so few failures that nearly any probabilities would.
    """

    FITS = "fits"
    OFF = "off"
    DOUBTFUL = "doubtful"
    TOO_FEW = "too_few"


@dataclass(frozen=True, slots=True)
class Calibrated:
    """Failures expected and observed in one family, each disk counted once in 30 days."""

    family: str
    expected: float
    observed: int
    low: float
    """Lower end of the 95 % interval of expected over observed (exact Poisson; Garwood 1936)."""
    high: float | None
    """Upper end of that interval; None while nothing has failed."""

    @property
    def ratio(self) -> float | None:
        """Expected over observed; None while nothing has failed."""
        return self.expected / self.observed if self.observed else None

    @property
    def verdict(self) -> CalibrationVerdict:
        """The verdict by the figures alone: outside 0.8 to 1.25 by more than chance or not, on enough failures or
        not."""
        enough = max(self.observed, self.expected) >= ENOUGH
        ratio = self.expected / max(self.observed, 0.5)
        differs = not 0.8 <= ratio <= 1.25 and (self.low > 1 or (self.high is not None and self.high < 1))
        if differs:
            return CalibrationVerdict.OFF if enough else CalibrationVerdict.DOUBTFUL
        return CalibrationVerdict.FITS if enough else CalibrationVerdict.TOO_FEW

    @property
    def is_off(self) -> bool:
        """True if the probabilities are evidently wrong."""
        return self.verdict is CalibrationVerdict.OFF


def compare_bundles(books: Mapping[str, ScorebookForecasts], ends: Lifespans, *, seed: int = 0) -> Comparison:
    """Judge bundles on the disks and days that all of them forecast. ends: by device id, as far as they are known."""
    common = _find_common_rows(list(books.values()))
    judged = [
        _Judged(book.select_lines(rows), ends) for book, rows in zip(books.values(), common, strict=True)
    ]
    standings = tuple(one.summarize_bundle(name) for name, one in zip(books, judged, strict=True))
    if not judged:
        return Comparison((), 0, 0, 0, 0, None, None)
    first = judged[0]
    apart = _foretold_apart(*judged) if len(judged) == 2 else (0, 0)
    day = first.book.day
    gains: tuple[tuple[float, float] | None, tuple[float, float] | None] = (None, None)
    if len(judged) == 2 and first.failures >= ENOUGH:
        gains = _bootstrap_gains(first, judged[1], np.random.default_rng(seed))
    return Comparison(
        standings,
        first.failures,
        first.windows,
        int(first.known.sum()),
        int(first.y[first.known].sum()),
        *gains,
        *apart,
        int(day.max() - day.min()) + 1 if len(day) else 0,
    )


def measure_family_calibration(
    book: ScorebookForecasts, ends: Lifespans, family: Callable[[str], str]
) -> tuple[Calibrated, ...]:
    """Count expected and observed failures by family, from each disk's first forecast in every 30 days; sorted by
    name."""
    if not len(book):
        return ()
    judged = _Judged(book, ends)
    first = np.flatnonzero(np.diff(judged.window, prepend=-1) != 0)
    first = first[judged.known[first]]
    names = {str(model): family(str(model)) for model in set(book.model[first].tolist())}
    families = np.array([names[str(model)] for model in book.model[first]], dtype=object)
    found = []
    for name in sorted(set(families.tolist())):
        rows = first[families == name]
        expected, observed = float(book.p[rows, 2].sum()), int(judged.y[rows].sum())
        least, most = compute_poisson_limits(observed)
        found.append(
            Calibrated(name, expected, observed, expected / most, expected / least if least else None)
        )
    return tuple(found)


class _Judged:
    """The rows of one book with the outcomes of their disks. Rows are sorted by device and day."""

    def __init__(self, book: ScorebookForecasts, ends: Lifespans) -> None:
        self.book = book
        devices, self.drive = _group_rows_by_drive(book)
        self.drives = len(devices)
        at = ends.find_positions(devices)
        there = at >= 0
        death = (
            np.where(there & ends.died[at], ends.last[at], _NEVER)
            if len(ends.last)
            else np.zeros(0, np.int64)
        )
        last = np.where(there, ends.last[at], -1) if len(ends.last) else np.zeros(0, np.int64)
        self.to_death = death[self.drive] - book.day
        self.y = (self.to_death > 0) & (self.to_death <= HORIZON)
        alive = (last[self.drive] >= book.day + HORIZON) & ~self.y
        end = int(ends.last.max(initial=0))
        self.known = (self.y | alive) & (book.day + HORIZON <= end)
        start = int(book.day.min()) if len(book) else 0
        blocks = (int(book.day.max()) - start) // HORIZON + 1 if len(book) else 1
        self.window = self.drive * blocks + (book.day - start) // HORIZON
        self.bad = book.status == Status.BAD
        self.called = self.bad | (book.status == Status.WARNING)
        self.failed = np.unique(self.drive[self.y])
        sick = np.unique(self.window[self.y])
        self.healthy = alive & ~np.isin(self.window, sick)
        self.failures, self.windows = len(self.failed), len(np.unique(self.window[self.healthy]))
        self.error = (book.p[:, 2] - self.y) ** 2

    def summarize_bundle(self, name: str) -> BundleComparison:
        known = self.known
        first_call = np.full(self.drives, -1)
        np.maximum.at(first_call, self.drive[self.y & self.called], self.to_death[self.y & self.called])
        lead = first_call[first_call > 0]
        return BundleComparison(
            bundle=name,
            detected=len(np.unique(self.drive[self.y & self.called])),
            detected_bad=len(np.unique(self.drive[self.y & self.bad])),
            false_alarms=len(np.unique(self.window[self.healthy & self.called])),
            false_alarms_bad=len(np.unique(self.window[self.healthy & self.bad])),
            brier=float(self.error[known].mean()) if known.any() else None,
            expected=float(self.book.p[known, 2].sum()),
            lead_days=float(np.median(lead)) if len(lead) else None,
        )


_NEVER: Final = 1 << 40


def _group_rows_by_drive(book: ScorebookForecasts) -> tuple[NDArray[np.object_], NDArray[np.int64]]:
    """Return the disks of a book in order, and each row's place among them."""
    new = np.ones(len(book), dtype=bool)
    new[1:] = book.device[1:] != book.device[:-1]
    return book.device[new], np.cumsum(new) - 1


def _find_common_rows(books: list[ScorebookForecasts]) -> list[NDArray[np.int64]]:
    """Find the rows of each book whose disk and day all books have, in the books' common order."""
    found = [_group_rows_by_drive(book) for book in books]
    devices = {device: code for code, device in enumerate(sorted({d for names, _ in found for d in names}))}
    keys = [
        np.array([devices[name] for name in names], dtype=np.int64)[drive] * (1 << 20) + book.day
        for book, (names, drive) in zip(books, found, strict=True)
    ]
    shared = reduce(np.intersect1d, keys) if keys else np.empty(0, np.int64)
    return [np.searchsorted(key, shared) for key in keys]


def _foretold_apart(first: _Judged, second: _Judged) -> tuple[int, int]:
    """Count the failures that only the first bundle foretold, and those that only the second foretold."""
    one, two = (np.unique(each.drive[each.y & each.called]) for each in (first, second))
    return len(np.setdiff1d(one, two)), len(np.setdiff1d(two, one))


def _bootstrap_gains(
    first: _Judged, second: _Judged, chance: np.random.Generator
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Compute paired 95 % intervals: disks are drawn with replacement, and both bundles judged on the same draw."""

    def sums(values: NDArray[np.float64], judged: _Judged, which: NDArray[np.bool_]) -> NDArray[np.float64]:
        summed = np.bincount(judged.drive[which], values[which], minlength=judged.drives)
        return summed.astype(np.float64)

    ones = np.ones(len(first.book))
    rows = sums(ones, first, first.known)
    error = [sums(one.error, one, one.known) for one in (first, second)]
    foretold = [sums(ones, one, one.y & one.called) > 0 for one in (first, second)]
    failed = np.zeros(first.drives)
    failed[first.failed] = 1
    weight = chance.multinomial(first.drives, np.full(first.drives, 1 / first.drives), size=RESAMPLES).astype(
        np.float64
    )
    recall = (weight @ (foretold[1].astype(float) - foretold[0])) / np.maximum(weight @ failed, 1)
    brier = (weight @ (error[0] - error[1])) / np.maximum(weight @ rows, 1)
    return _compute_interval(recall), _compute_interval(brier)


def _compute_interval(values: NDArray[np.float64]) -> tuple[float, float]:
    low, high = np.percentile(values, (2.5, 97.5))
    return float(low), float(high)
