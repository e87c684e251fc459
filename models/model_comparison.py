"""How bundles stand on what has happened: champion and challenger on the same disks and days, by the protocol.

A failure is foretold when the bundle called the disk warning (or bad) on one of the 30 days before it; a false alarm is
a healthy window (a disk's 30 days that it is known to have lived beyond by 30) with such a call. Brier score and
expected over observed are those of p_fail_30d. Each bundle is judged by its own thresholds, as it would have acted.
Below 30 failures these figures are no evidence, and that is said. Whether a challenger is better is decided by a test
that may be looked at every day (models.sequential_test).
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
from predrain.models.sequential_test import ENOUGH_EVIDENCE, estimate_days_left, weigh_evidence

HORIZON: Final = 30
ENOUGH: Final = 30
"""Failures below which a figure is no evidence (docs/explanation/evaluation.md)."""
RESAMPLES: Final = 400
MORE_ALARMS: Final = 0.25
"""By how much of the champion's false alarms a challenger may exceed them..."""
FEW_ALARMS: Final = 5
"""...and by how many in any case."""


@dataclass(frozen=True, slots=True)
class BundleComparison:
    """One bundle on what has happened. Shares are None where there is nothing to share."""

    bundle: str
    foretold: int
    """Failures with a warning or bad in the 30 days before."""
    foretold_bad: int
    alarmed: int
    """Healthy windows with a warning or bad."""
    alarmed_bad: int
    brier: float | None
    expected: float
    """Sum of p_fail_30d over the rows whose outcome is known."""
    lead_days: float | None
    """Median days from the first call to the failure, of those foretold."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Bundles on the same disks and days."""

    standings: tuple[BundleComparison, ...]
    failures: int
    windows: int
    rows: int
    """Forecasts whose outcome 30 days later is known."""
    observed: int
    """Of them, those whose disk failed."""
    recall_gain: tuple[float, float] | None
    """95 % interval (drives resampled) of the second bundle's share foretold less the first's; None: too few."""
    brier_gain: tuple[float, float] | None
    """The same of the first bundle's Brier score less the second's: above 0 the second is better."""
    only_first: int = 0
    """Failures that the first bundle foretold and the second did not..."""
    only_second: int = 0
    """...and the other way round."""
    days: int = 0
    """From the first forecast that is compared to the last."""

    @property
    def enough(self) -> bool:
        """Whether these figures are evidence."""
        return self.failures >= ENOUGH

    @property
    def evidence(self) -> float:
        """How many times likelier what was seen is than by chance, if the second foretells more (an e-value)."""
        return weigh_evidence(self.only_second, self.only_first)

    @property
    def days_left(self) -> float | None:
        """Days until the evidence is enough, as failures came so far; 0: it is; None: nothing speaks for the second."""
        return estimate_days_left(self.only_second, self.only_first, self.days)

    @property
    def better(self) -> bool:
        """Whether the second bundle really foretells more, without more false alarms or worse chances."""
        return self.evidence >= ENOUGH_EVIDENCE and not self._costs()

    def sentence(self) -> str:
        """What may be said."""
        if len(self.standings) < 2:
            return (
                "There is no challenger to compare with."
                if self.enough
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
        """What is worse about the second bundle, though it may foretell more; empty where nothing is."""
        if len(self.standings) < 2:
            return ""
        first, second = self.standings
        more = second.alarmed - first.alarmed
        if more > max(MORE_ALARMS * first.alarmed, FEW_ALARMS):
            return f"it calls {second.alarmed} healthy windows of {self.windows}, and {first.bundle} {first.alarmed}"
        if self.brier_gain is not None and self.brier_gain[1] < 0:
            return "its chances are really worse (Brier score)"
        return ""


def _words_of_days(days: float) -> str:
    if days < 60:
        return f"{max(1, round(days))} days"
    return f"{round(days / 30.4)} months" if days < 3 * 365 else "three years or"


class CalibrationVerdict(StrEnum):
    """What expected and seen failures of a family say of its chances. DOUBTFUL: they differ by more than chance, on
    fewer failures than an alert wants. TOO_FEW: they agree, and would on nearly any chances."""

    FITS = "fits"
    OFF = "off"
    DOUBTFUL = "doubtful"
    TOO_FEW = "too_few"


@dataclass(frozen=True, slots=True)
class Calibrated:
    """Failures expected and seen in one family, each disk counted once in 30 days."""

    family: str
    expected: float
    observed: int
    low: float
    """95 % interval of expected over observed (exact Poisson; Garwood 1936)..."""
    high: float | None
    """...without an upper end while nothing has failed."""

    @property
    def ratio(self) -> float | None:
        """Expected over observed; None while nothing has failed."""
        return self.expected / self.observed if self.observed else None

    @property
    def verdict(self) -> CalibrationVerdict:
        """By the figures alone: outside 0.8 to 1.25 by more than chance or not, on enough failures or not."""
        enough = max(self.observed, self.expected) >= ENOUGH
        ratio = self.expected / max(self.observed, 0.5)
        differs = not 0.8 <= ratio <= 1.25 and (self.low > 1 or (self.high is not None and self.high < 1))
        if differs:
            return CalibrationVerdict.OFF if enough else CalibrationVerdict.DOUBTFUL
        return CalibrationVerdict.FITS if enough else CalibrationVerdict.TOO_FEW

    @property
    def off(self) -> bool:
        """Whether the chances are evidently wrong."""
        return self.verdict is CalibrationVerdict.OFF


def compare(books: Mapping[str, ScorebookForecasts], ends: Lifespans, *, seed: int = 0) -> Comparison:
    """Judge bundles on the disks and days that all of them forecast. ends: by device id, as far as they are known."""
    common = _common(list(books.values()))
    judged = [_Judged(book.only(rows), ends) for book, rows in zip(books.values(), common, strict=True)]
    standings = tuple(one.standing(name) for name, one in zip(books, judged, strict=True))
    if not judged:
        return Comparison((), 0, 0, 0, 0, None, None)
    first = judged[0]
    apart = _foretold_apart(*judged) if len(judged) == 2 else (0, 0)
    day = first.book.day
    gains: tuple[tuple[float, float] | None, tuple[float, float] | None] = (None, None)
    if len(judged) == 2 and first.failures >= ENOUGH:
        gains = _gains(first, judged[1], np.random.default_rng(seed))
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


def calibration(
    book: ScorebookForecasts, ends: Lifespans, family: Callable[[str], str]
) -> tuple[Calibrated, ...]:
    """Expected and observed failures by family, from each disk's first forecast in every 30 days; in order of names."""
    if not len(book):
        return ()
    from scipy.stats import chi2

    judged = _Judged(book, ends)
    first = np.flatnonzero(np.diff(judged.window, prepend=-1) != 0)
    first = first[judged.known[first]]
    names = {str(model): family(str(model)) for model in set(book.model[first].tolist())}
    families = np.array([names[str(model)] for model in book.model[first]], dtype=object)
    found = []
    for name in sorted(set(families.tolist())):
        rows = first[families == name]
        expected, observed = float(book.p[rows, 2].sum()), int(judged.y[rows].sum())
        most = float(chi2.ppf(0.975, 2 * observed + 2)) / 2
        least = float(chi2.ppf(0.025, 2 * observed)) / 2 if observed else 0.0
        found.append(
            Calibrated(name, expected, observed, expected / most, expected / least if least else None)
        )
    return tuple(found)


class _Judged:
    """Rows of one book with what became of their disks. Rows stand sorted by device and day."""

    def __init__(self, book: ScorebookForecasts, ends: Lifespans) -> None:
        self.book = book
        devices, self.drive = _drives(book)
        self.drives = len(devices)
        at = ends.of(devices)
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

    def standing(self, name: str) -> BundleComparison:
        known = self.known
        first_call = np.full(self.drives, -1)
        np.maximum.at(first_call, self.drive[self.y & self.called], self.to_death[self.y & self.called])
        lead = first_call[first_call > 0]
        return BundleComparison(
            bundle=name,
            foretold=len(np.unique(self.drive[self.y & self.called])),
            foretold_bad=len(np.unique(self.drive[self.y & self.bad])),
            alarmed=len(np.unique(self.window[self.healthy & self.called])),
            alarmed_bad=len(np.unique(self.window[self.healthy & self.bad])),
            brier=float(self.error[known].mean()) if known.any() else None,
            expected=float(self.book.p[known, 2].sum()),
            lead_days=float(np.median(lead)) if len(lead) else None,
        )


_NEVER: Final = 1 << 40


def _drives(book: ScorebookForecasts) -> tuple[NDArray[np.object_], NDArray[np.int64]]:
    """The disks of a book in order, and each row's place among them."""
    new = np.ones(len(book), dtype=bool)
    new[1:] = book.device[1:] != book.device[:-1]
    return book.device[new], np.cumsum(new) - 1


def _common(books: list[ScorebookForecasts]) -> list[NDArray[np.int64]]:
    """Rows of each book whose disk and day all books have, in the books' common order."""
    found = [_drives(book) for book in books]
    devices = {device: code for code, device in enumerate(sorted({d for names, _ in found for d in names}))}
    keys = [
        np.array([devices[name] for name in names], dtype=np.int64)[drive] * (1 << 20) + book.day
        for book, (names, drive) in zip(books, found, strict=True)
    ]
    shared = reduce(np.intersect1d, keys) if keys else np.empty(0, np.int64)
    return [np.searchsorted(key, shared) for key in keys]


def _foretold_apart(first: _Judged, second: _Judged) -> tuple[int, int]:
    """Failures that the first bundle alone foretold, and those that the second alone did."""
    one, two = (np.unique(each.drive[each.y & each.called]) for each in (first, second))
    return len(np.setdiff1d(one, two)), len(np.setdiff1d(two, one))


def _gains(
    first: _Judged, second: _Judged, chance: np.random.Generator
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Paired 95 % intervals: disks are drawn with replacement, and both bundles judged on the same draw."""

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
    return _interval(recall), _interval(brier)


def _interval(values: NDArray[np.float64]) -> tuple[float, float]:
    low, high = np.percentile(values, (2.5, 97.5))
    return float(low), float(high)
