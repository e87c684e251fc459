"""The forecast's place in a process: who scores, since when, in whose shadow, and how well that goes."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import structlog

from predrain.data.clock import Clock
from predrain.data.ids import DeviceId
from predrain.data.log.port import Log
from predrain.data.refusal import Refusal
from predrain.data.residence import ResidenceLimits
from predrain.data.scorebook import Scorebook
from predrain.data.store.port import Store
from predrain.service.log_recall import keep_events
from predrain.service.outlook_announcements import Announcements
from predrain.service.scoring import succession
from predrain.service.scoring.deployed_models import Lineup
from predrain.service.scoring.fleet_experience import load_experience
from predrain.service.scoring.forecasting import Forecaster
from predrain.service.scoring.latest import Latest
from predrain.service.scoring.sender import Sender
from predrain.service.scoring.shadow import Shadow
from predrain.service.scoring.shared_forecasts import copy_forecasts, read_states
from predrain.service.scoring.worked import Worked
from predrain.service.scoring.worker import NAMED_LIMITS, Worker

if TYPE_CHECKING:
    from predrain.service.scoring.watch import Health


RELEARN = timedelta(minutes=10)
"""After so long a process takes over what another one has learned from the fleet."""


class NotReady(Refusal):
    """The forecaster is not loaded yet."""


class Scorer:
    """One worker under the bundle that is promoted now. One thread steps; any may look.

    reigns: told since when the champion reigns in place of another (None: it is the first), before its first
    outlook. Without a scorebook no bundle is compared with another. shared: other processes score, too, or alone: what
    they forecast is judged and learned from here, and what any of them has learned is taken over.
    """

    def __init__(
        self,
        log: Log,
        store: Store,
        clock: Clock,
        lineup: Lineup,
        fleet: Latest,
        announcements: Announcements,
        sender: Sender,
        scorebook: Scorebook | None = None,
        reigns: Callable[[datetime | None], None] = lambda _: None,
        limits: ResidenceLimits = NAMED_LIMITS,
        *,
        shared: bool = False,
    ) -> None:
        self._limits, self._shared = limits, shared
        self._log, self._store, self._clock, self._sender = log, store, clock, sender
        self._fleet, self._announcements, self._reigns = fleet, announcements, reigns
        self.lineup, self.scorebook = lineup, scorebook
        self.health: Health | None = None
        """What the last `watch` found."""
        self._shadow = Shadow(scorebook) if scorebook is not None else None
        self._unwatched: str | None = None
        self._learned_at: datetime | None = None
        self._scoring: tuple[Forecaster[Any] | None, Forecaster[Any] | None] = (None, None)
        self._worker: Worker[Any] | None = None

    @property
    def ready(self) -> bool:
        """Whether the forecaster is loaded and what must be remembered is read back."""
        return self._worker is not None

    @property
    def troubles(self) -> dict[str, str]:
        """What is wrong with the forecast's own upkeep, by part, while disks are scored all the same."""
        told = {
            "bundle": self.lineup.trouble,
            "scorebook": self._shadow.trouble if self._shadow else None,
            "watch": self._unwatched,
        }
        return {part: why for part, why in told.items() if why is not None}

    def start(self, *, whole: bool) -> None:
        """Load the forecaster; `whole`: and what every device of the store came to, as who scores alone should."""
        self.lineup.follow()
        champion = self.lineup.champion
        assert champion is not None
        self._learn_experience()
        worker = Worker(
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
        devices = worker.rebuild() if whole else None
        keep_events(self._store, self._announcements)
        self._reign(champion)
        self._worker = worker
        structlog.get_logger().info("scoring", bundle=champion.name, devices=devices)

    def follow(self) -> bool:
        """Score with what is promoted now; returns whether champion or challenger changed."""
        if self._worker is None:
            return False
        self.lineup.follow()
        champion = self.lineup.champion
        if champion is None:
            return False
        if self._scoring == (champion, self.lineup.challenger):
            if self._shared and (self._learned_at is None or self._clock.now() - self._learned_at >= RELEARN):
                self._learn_experience()
            return False
        self._learn_experience()
        self._reign(champion)
        self._worker.succeed(champion)
        shadowed = self.lineup.challenger.name if self.lineup.challenger else None
        structlog.get_logger().info("scoring", bundle=champion.name, challenger=shadowed)
        return True

    def step(self) -> Worked:
        """Take one batch from the log. Raises NotReady before `start`."""
        if self._worker is None:
            raise NotReady("The forecaster is not loaded yet; ask again in a few seconds.")
        return self._worker.step()

    def watch(self) -> bool:
        """Judge the forecast by what became of drives, and by the drives that are scored here (where others score, by
        all drives); whether it could be."""
        from predrain.service.scoring.watch import COMPARED, look

        elsewhere = not self.ready and self._shared and self.scorebook is not None
        try:
            if elsewhere:
                self.lineup.follow()
            champion, now = self.lineup.champion, self._clock.now()
            if champion is None or not (self.ready or elsewhere):
                return False
            if elsewhere and succession.reign(self._store) is None:
                return False
            if self._shared and self.scorebook is not None:
                copy_forecasts(self._store, self.scorebook, champion, (now - COMPARED).astimezone(UTC).date())
            states = self._worker.states() if self._worker is not None else read_states(self._store, champion)
            challenger = None if elsewhere else self.lineup.challenger
            found = look(champion, challenger, states, self.scorebook, self._store, now)
        except Refusal as refusal:
            self._unwatched = str(refusal)
            return False
        self.health, self._unwatched = found.after(self.health), None
        return True

    def family(self, device: DeviceId) -> tuple[float, ...] | None:
        """How long drives of this device's family and age live, on the fixed grid; None where that is not known."""
        return self._worker.family(device) if self._worker else None

    def _learn_experience(self) -> None:
        """Let champion and challenger learn what `watch` has counted before, here or in another process."""
        for one in (self.lineup.champion, self.lineup.challenger):
            if one is not None:
                one.learn_experience(load_experience(self._store, one.fingerprint))
        self._learned_at = self._clock.now()

    def _reign(self, champion: Forecaster[Any]) -> None:
        """Write a new champion down before its first outlook, so that no proposal rests on it too soon."""
        self._reigns(succession.since(self._store, champion.fingerprint, self._clock.now()))
        if self._shadow is not None:
            self._shadow.champion, self._shadow.challenger = champion.fingerprint, self.lineup.challenger
        self._scoring = champion, self.lineup.challenger
