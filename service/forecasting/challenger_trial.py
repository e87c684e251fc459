"""The challenger in the champion's shadow: it scores the same disks on the same readings, and both are recorded.

Nothing here reaches an outlook, an announcement or a drain. A failure here stops no scoring.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, date
from typing import Any

import structlog

from predrain.data.ids import DeviceId
from predrain.data.outlook import Outlook
from predrain.data.reading import Reading, Smart
from predrain.data.refusal import Refusal
from predrain.data.scorebook import Scorebook, ScorebookLine
from predrain.service.forecasting.forecaster import FallbackForecaster, Forecaster, Seen

EPOCH = date(1970, 1, 1)

ScoredDay = Sequence[Seen[Any]]
"""Readings and states that were scored together."""


class ShadowForecasts:
    """Writes the forecasts of champion and challenger into `scorebook`. For one thread."""

    def __init__(self, scorebook: Scorebook) -> None:
        self._scorebook = scorebook
        self.champion: str = ""
        """The champion's fingerprint."""
        self.challenger: Forecaster[Any] | None = None
        self.trouble: str | None = None
        """The reason why forecasts are not recorded, a sentence; None if they are."""

    def record_forecasts(
        self, readings: Sequence[Reading], outlooks: Sequence[Outlook], days: Sequence[ScoredDay]
    ) -> None:
        """Record the champion's outlooks, and the challenger's for the same readings and states.

        Outlooks by rules have no chance to record.
        """
        models = {
            reading.device: reading.seen.identity.model or ""
            for reading in readings
            if isinstance(reading.seen, Smart)
        }
        try:
            self._scorebook.write(self.champion, make_lines(outlooks, models))
            if self.challenger is not None:
                patient = FallbackForecaster(self.challenger)
                for seen in days:
                    lines = make_lines(patient.compute_outlooks(seen, {}), models)
                    self._scorebook.write(self.challenger.fingerprint, lines)
            self.trouble = None
        except Refusal as refusal:
            if self.trouble is None:
                structlog.get_logger().error("forecasts are not written down", reason=str(refusal))
            self.trouble = str(refusal)


def make_lines(outlooks: Sequence[Outlook], models: Mapping[DeviceId, str]) -> list[ScorebookLine]:
    """Return a line for each outlook that gives chances. models: of the devices, as their readings name them."""
    return [
        ScorebookLine(
            one.device,
            (one.as_of.astimezone(UTC).date() - EPOCH).days,
            models.get(one.device, ""),
            one.status,
            one.p_fail_7d,
            one.p_fail_14d,
            one.p_fail_30d,
        )
        for one in outlooks
        if one.p_fail_7d is not None and one.p_fail_14d is not None and one.p_fail_30d is not None
    ]
