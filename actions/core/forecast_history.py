"""The history of forecasts, reading by reading, for each disk whose drain pays."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from predrain.actions.core.drain_cost import BadChance, ChanceCurve
from predrain.actions.core.drain_policy import Policy
from predrain.actions.core.forecast_confirmation import ForecastPoint, is_sound
from predrain.data.ids import DeviceId
from predrain.data.outlook import Outlook
from predrain.data.store.store_port import Store


def read_chances(outlook: Outlook) -> ChanceCurve | None:
    """Return the chances of an outlook; None if it gives none, or values that are no valid chances."""
    month = outlook.p_fail_30d
    if month is None:
        return None
    try:
        if outlook.p_fail_7d is None or outlook.p_fail_14d is None:
            return ChanceCurve.of_month(month)
        return ChanceCurve(outlook.p_fail_7d, outlook.p_fail_14d, month)
    except BadChance:
        return None


def may_pay(outlook: Outlook, policy: Policy) -> bool:
    """Return whether a drain could pay under the highest costs that are set.

    The test is coarse. It misses no drain that pays and takes less than a month.
    """
    month = outlook.p_fail_30d
    return month is not None and month * 2 * policy.dearest_death >= 1


@dataclass(slots=True)
class ForecastHistory:
    """The forecast history, continued from poll to poll; after a start it is read back from the store."""

    points: dict[DeviceId, tuple[ForecastPoint, ...]] = field(default_factory=dict)
    """Forecasts, oldest first, of disks whose drain pays, has paid, or has begun."""

    def update_forecasts(
        self,
        wanted: Collection[DeviceId],
        outlooks: Mapping[DeviceId, Outlook],
        store: Store,
        policy: Policy,
        now: datetime,
    ) -> None:
        """Add the forecasts that are new since the last poll, for `wanted` disks and disks already followed.

        A disk without a forecast for twice the suspicion window is dropped.
        """
        oldest = now - 2 * max(policy.mass_suspicion_window, timedelta(days=1))
        for device in {*wanted, *self.points} & outlooks.keys():
            outlook, known = outlooks[device], self.points.get(device, ())
            if known and known[-1].at >= outlook.as_of:
                continue
            since = known[-1].at if known else oldest
            fresh = _read_points(device, outlook, since, store)
            self.points[device] = (
                *(point for point in known if point.at >= oldest),
                *(point for point in fresh if not known or point.at > since),
            )
        for device in list(self.points):
            if device not in outlooks or outlooks[device].as_of < oldest:
                del self.points[device]


def _read_points(
    device: DeviceId, newest: Outlook, since: datetime, store: Store
) -> tuple[ForecastPoint, ...]:
    """Read the forecasts of a disk from `since` on, each with the reading's host and whether the reading is
    sound.
    """
    told = {outlook.as_of: outlook for outlook in store.outlooks(device, since)}
    told[newest.as_of] = newest
    readings = store.readings(device, since)
    before = dict(zip((reading.taken_at for reading in readings[1:]), readings, strict=False))
    taken = {reading.taken_at: reading for reading in readings}
    points = []
    for at, outlook in sorted(told.items()):
        reading = taken.get(at)
        sound = reading is not None and is_sound(reading, before.get(at))
        points.append(ForecastPoint(at, reading.host if reading else None, read_chances(outlook), sound))
    return tuple(points)
