"""The policy preview for the page: computed in a process of its own, one at a time, and kept until its basis
changes.

The replay computes for seconds to minutes. In a thread it would compete with the rest of the service.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any

from predrain.actions.core.drain_policy import Policy
from predrain.data.refusal import Refusal
from predrain.data.scorebook import Scorebook, ScorebookForecasts
from predrain.data.store.store_port import Store
from predrain.service.forecasting.forecaster import Forecaster
from predrain.service.runtime.child_work import run_in_child

if TYPE_CHECKING:
    from predrain.data.ids import DeviceId
    from predrain.data.lifespan import Lifespans
    from predrain.data.reading import Reading
    from predrain.models.forecast.calibration import Thresholds
    from predrain.service.forecasting.cost_replay import CostPreview


@dataclass(frozen=True, slots=True)
class PreviewState:
    """The newest preview, and whether another one is being made."""

    days: int
    running: bool = False
    preview: CostPreview | None = None
    made_at: datetime | None = None
    trouble: str | None = None
    """The reason why there is no preview; None if all is well."""


@dataclass(frozen=True, slots=True)
class _Basis:
    """The inputs that determine a preview: another basis gives another preview."""

    days: int
    bundle: str
    today: date
    policy: Policy


class PolicyPreviewer:
    """Makes previews. Any number of threads may ask."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._basis: _Basis | None = None
        self._state = PreviewState(0)

    def request_preview(
        self,
        days: int,
        champion: Forecaster[Any],
        scorebook: Scorebook,
        store: Store,
        policy: Policy,
        now: datetime,
    ) -> PreviewState:
        """Return the preview over the last `days`.

        If there is none yet, its computation begins, and `running` is true. Returns at once.
        """
        basis = _Basis(days, champion.fingerprint, now.astimezone(UTC).date(), policy)
        with self._lock:
            if self._state.running or self._basis == basis:
                return self._state
            before = self._state if self._state.days == days else PreviewState(days)
            self._basis, self._state = basis, replace(before, running=True, trouble=None)
            Thread(
                target=self._make,
                args=(basis, champion.thresholds, scorebook, store, now),
                name="policy-preview",
                daemon=True,
            ).start()
            return self._state

    def _make(
        self, basis: _Basis, thresholds: Thresholds, scorebook: Scorebook, store: Store, now: datetime
    ) -> None:
        from predrain.data.history import EPOCH  # imports numpy, for which a start need not wait
        from predrain.service.forecasting.known_fates import lives_of

        made = PreviewState(basis.days, trouble="The replay failed; the service's log says where.")
        try:
            first = basis.today - timedelta(days=basis.days)
            book = scorebook.read(basis.bundle, (first - EPOCH).days)
            lives, readings = lives_of(store, first), store.latest_readings()
            found = run_in_child(
                "the replay", _compute_preview, book, lives, readings, basis.policy, thresholds
            )
            made = PreviewState(basis.days, preview=found, made_at=now)
        except Refusal as refusal:
            made = replace(made, trouble=str(refusal))
        finally:
            with self._lock:
                self._state = made


def _compute_preview(
    book: ScorebookForecasts,
    lives: Lifespans,
    readings: Mapping[DeviceId, Reading],
    policy: Policy,
    thresholds: Thresholds,
) -> CostPreview:
    from predrain.service.forecasting.cost_replay import preview_policy

    return preview_policy(book, lives, readings, policy, thresholds)
