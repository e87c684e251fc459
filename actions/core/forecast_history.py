"""What the forecast said of each disk whose drain pays, reading by reading."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from predrain.actions.core.drain_cost import BadChance, ChanceCurve
from predrain.actions.core.forecast_confirmation import ForecastPoint, is_sound
from predrain.actions.core.policy import Policy
from predrain.data.ids import DeviceId
from predrain.data.outlook import Outlook
from predrain.data.store.port import Store


def read_chances(outlook: Outlook) -> ChanceCurve | None:
    """The chances of an outlook; None where it gives none, or none that can be believed."""
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
    """Whether a drain could pay under the dearest costs that are set; a coarse sieve that lets none slip through that
    takes less than a month.
    """
    month = outlook.p_fail_30d
    return month is not None and month * 2 * policy.dearest_death >= 1


@dataclass(slots=True)
class ForecastHistory:
    """Followed from look to look; after a start read back from the store."""

    points: dict[DeviceId, tuple[ForecastPoint, ...]] = field(default_factory=dict)
    """Oldest first, of disks whose drain pays, did so, or has begun."""

    def follow(
        self,
        wanted: Collection[DeviceId],
        outlooks: Mapping[DeviceId, Outlook],
        store: Store,
        policy: Policy,
        now: datetime,
    ) -> None:
        """Take in what is new since the last look, of `wanted` disks and of those that are followed already. A disk of
        which nothing was said for long is forgotten.
        """
        oldest = now - 2 * max(policy.suspicion_window, timedelta(days=1))
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
    """The forecasts of a disk from `since` on, each with who read the disk and whether the reading is sound."""
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
