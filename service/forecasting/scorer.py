"""The scoring of one process: the deployed models, their worker, their deployment periods, and the forecast's
health.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import structlog

from predrain.data.clock import Clock
from predrain.data.ids import DeviceId
from predrain.data.log.log_port import Log
from predrain.data.reading import Reading
from predrain.data.refusal import Refusal
from predrain.data.residence import ResidenceLimits
from predrain.data.scorebook import Scorebook
from predrain.data.store.store_port import Store
from predrain.service.forecasting import model_succession
from predrain.service.forecasting.challenger_trial import ShadowForecasts
from predrain.service.forecasting.deployed_models import DeployedModels
from predrain.service.forecasting.fleet_experience import load_experience
from predrain.service.forecasting.forecaster import Forecaster
from predrain.service.forecasting.newest_outlooks import NewestOutlooks
from predrain.service.forecasting.shared_forecasts import copy_forecasts, read_states
from predrain.service.forecasting.worker import NAMED_LIMITS, ScoringWorker
from predrain.service.forecasting.worker_step_result import WorkerStepResult
from predrain.service.storage.record_sender import RecordSender
from predrain.service.streams.kept_announcements import recall_announced
from predrain.service.streams.log_recall import keep_events
from predrain.service.streams.outlook_announcements import Announcements

if TYPE_CHECKING:
    from predrain.service.forecasting.forecast_health import ForecastHealth


RELEARN = timedelta(minutes=10)
"""The time after which a process takes over what another one has learned from the fleet."""


class NotReady(Refusal):
    """The forecaster is not loaded yet."""


class Scorer:
    """One worker with the bundle that is promoted now. One thread steps; any thread may read.

    `on_deployment`: called before the first outlook of a champion, with the time since which it replaces another
    one (None: the champion is the first). Without a scorebook no bundle is compared with another. `shared`:
    other processes score, too, or alone. Their forecasts are judged and learned from here, and what any of them
    has learned is taken over.
    """

    def __init__(
        self,
        log: Log,
        store: Store,
        clock: Clock,
        deployed_models: DeployedModels,
        fleet: NewestOutlooks,
        announcements: Announcements,
        sender: RecordSender,
        scorebook: Scorebook | None = None,
        on_deployment: Callable[[datetime | None], None] = lambda _: None,
        limits: ResidenceLimits = NAMED_LIMITS,
        *,
        shared: bool = False,
    ) -> None:
        self._limits, self._shared = limits, shared
        self._log, self._store, self._clock, self._sender = log, store, clock, sender
        self._fleet, self._announcements, self._on_deployment = fleet, announcements, on_deployment
        self.deployed_models, self.scorebook = deployed_models, scorebook
        self.health: ForecastHealth | None = None
        """The result of the last `update_forecast_health`."""
        self._shadow = ShadowForecasts(scorebook) if scorebook is not None else None
        self._unwatched: str | None = None
        self._learned_at: datetime | None = None
        self._scoring: tuple[Forecaster[Any] | None, Forecaster[Any] | None] = (None, None)
        self._worker: ScoringWorker[Any] | None = None

    @property
    def ready(self) -> bool:
        """True if the forecaster is loaded and its states are read back."""
        return self._worker is not None

    @property
    def troubles(self) -> dict[str, str]:
        """A sentence for each part of the forecast's upkeep that is broken although disks are scored."""
        told = {
            "bundle": self.deployed_models.trouble,
            "scorebook": self._shadow.trouble if self._shadow else None,
            "watch": self._unwatched,
        }
        return {part: why for part, why in told.items() if why is not None}

    def start(self, latest: Mapping[DeviceId, Reading] | None = None) -> None:
        """Load the forecaster.

        latest: the newest reading of every device of the store, for a process that scores alone: the state of each is
        loaded, too.
        """
        self.deployed_models.load_promoted_models()
        champion = self.deployed_models.champion
        assert champion is not None
        self._learn_experience()
        worker = ScoringWorker(
            self._log,
            self._store,
            self._clock,
            champion,
            self._fleet,
            self._announcements,
            self._sender,
            self._shadow,
            self._limits,
        )
        devices = worker.rebuild(latest) if latest is not None else None
        recall_announced(self._store, self._announcements)
        keep_events(self._store, self._announcements)
        self._note_deployment(champion)
        self._worker = worker
        structlog.get_logger().info("scoring", bundle=champion.name, devices=devices)

    def adopt_promoted_models(self) -> bool:
        """Score with the bundles that are promoted now; return whether champion or challenger changed."""
        if self._worker is None:
            return False
        self.deployed_models.load_promoted_models()
        champion = self.deployed_models.champion
        if champion is None:
            return False
        if self._scoring == (champion, self.deployed_models.challenger):
            if self._shared and (self._learned_at is None or self._clock.now() - self._learned_at >= RELEARN):
                self._learn_experience()
            return False
        self._learn_experience()
        self._note_deployment(champion)
        self._worker.switch_forecaster(champion)
        shadowed = self.deployed_models.challenger.name if self.deployed_models.challenger else None
        structlog.get_logger().info("scoring", bundle=champion.name, challenger=shadowed)
        return True

    def step(self) -> WorkerStepResult:
        """Process one batch from the log. Raises NotReady before `start`."""
        if self._worker is None:
            raise NotReady("The forecaster is not loaded yet; ask again in a few seconds.")
        return self._worker.step()

    def update_forecast_health(self) -> bool:
        """Judge the forecast by the drives' outcomes and by the drives scored here; return whether the judgement
        was possible.

        If other processes score, the judgement is by all drives.
        """
        from predrain.service.forecasting.forecast_health import COMPARED, assess_forecast

        elsewhere = not self.ready and self._shared and self.scorebook is not None
        try:
            if elsewhere:
                self.deployed_models.load_promoted_models()
            champion, now = self.deployed_models.champion, self._clock.now()
            if champion is None or not (self.ready or elsewhere):
                return False
            if elsewhere and model_succession.find_last_deployment(self._store) is None:
                return False
            if self._shared and self.scorebook is not None:
                copy_forecasts(self._store, self.scorebook, champion, (now - COMPARED).astimezone(UTC).date())
            states = self._worker.states() if self._worker is not None else read_states(self._store, champion)
            challenger = None if elsewhere else self.deployed_models.challenger
            found = assess_forecast(champion, challenger, states, self.scorebook, self._store, now)
        except Refusal as refusal:
            self._unwatched = str(refusal)
            return False
        self.health, self._unwatched = found.merge_earlier_concerns(self.health), None
        return True

    def find_family_survival(self, device: DeviceId) -> tuple[float, ...] | None:
        """Return the survival curve of this device's family and age on the fixed grid, or None if it is not
        known.
        """
        return self._worker.find_family_survival(device) if self._worker else None

    def _learn_experience(self) -> None:
        """Let champion and challenger learn from the counts of an earlier judgement, here or in another process."""
        for one in (self.deployed_models.champion, self.deployed_models.challenger):
            if one is not None:
                one.learn_experience(load_experience(self._store, one.fingerprint))
        self._learned_at = self._clock.now()

    def _note_deployment(self, champion: Forecaster[Any]) -> None:
        """Record a new champion before its first outlook, so that no proposal rests on it too soon."""
        self._on_deployment(
            model_succession.record_deployment(self._store, champion.fingerprint, self._clock.now())
        )
        if self._shadow is not None:
            self._shadow.champion, self._shadow.challenger = (
                champion.fingerprint,
                self.deployed_models.challenger,
            )
        self._scoring = champion, self.deployed_models.challenger
