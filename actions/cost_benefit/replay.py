"""One cluster after the other, day by day: what the engine decides of its drives, and how far their bytes come.

Every day at the hour at which the policy's window opens (noon without one) the day's forecasts are in and
`actions.engine.decide` answers, again whenever a drain has come to its end. It proposes, believes or refuses,
approves, withdraws and begins drains; from there on a model of movement stands in for the steps of a drain.

Drains are decided by cost. A daily score stands for the readings of the 24 hours after it: they are one every
`reading_hours`, and all say what it says, so that evidence is confirmed within the day or by the next score.

Assumed: a drain moves one PG at a time (the pace without a latency signal), `move_bytes_per_second` each and at
most `in_flight_max` of them, while the window is open. A person approves what is proposed at once, also in mode
propose. A drive dies, or is taken away, at the hour of the day's look. A dead drive is out and its data healed at
the next look (`actions.cost_benefit.slots`). The cluster is well otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

import numpy as np

from predrain.actions.cluster.view import ClusterView
from predrain.actions.core.answers import Hold, ProposalRefusal, Propose, Turn
from predrain.actions.core.drain_cost import ChanceCurve
from predrain.actions.core.forecast_confirmation import ForecastPoint
from predrain.actions.core.forecast_history import may_pay
from predrain.actions.core.policy import Mode, Policy
from predrain.actions.core.situation import Memory
from predrain.actions.core.state_machine import ENDED, Event, after
from predrain.actions.cost_benefit.given import DailyForecasts, Fates, Layout, Notch
from predrain.actions.cost_benefit.slots import Slots
from predrain.actions.crush.map import CrushMap
from predrain.actions.engine.decide import decide
from predrain.actions.guards import Refuse
from predrain.data.drain import Drain, DrainState
from predrain.data.ids import DeviceId, HostName, OsdId
from predrain.data.outlook import Outlook, Status, borne_out

NOON = 12
_A_DAY = timedelta(days=1)
_HOST = HostName("replayed")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_WAITING = (DrainState.PROPOSED, DrainState.APPROVED)
_LOOKS_MAX = 100
"""More looks than any drain has states; a decision that never rests is a fault, not a long day."""


@dataclass(frozen=True, slots=True)
class Drained:
    """One drain that began. Days are fractions, counted from 1970-01-01 at the hour of the daily look."""

    drive: int
    proposed: float
    begun: float
    ended: float
    """When it was empty, dead or taken away; the end of the replay if none of these."""
    moved_bytes: int
    whole: bool
    """Emptied before it died."""


@dataclass(frozen=True, slots=True)
class ReplayResult:
    """What was done. Drives are numbered as in the fates."""

    first: int
    last: int
    drains: tuple[Drained, ...]
    refused: Mapping[str, frozenset[int]]
    """Guard's code -> drives that it held back at least once before their drain began."""


def replay(
    forecasts: DailyForecasts,
    fates: Fates,
    layout: Layout,
    policy: Policy,
    notch: Notch,
    *,
    reading_hours: int = 1,
) -> ReplayResult:
    """Replay the forecasts' days, but no longer than the fates are known.

    reading_hours: hours between two readings of a disk, 1 to 24.
    """
    last = min(fates.end, forecasts.first + forecasts.days - 1)
    drains: list[Drained] = []
    refused: dict[str, set[int]] = {}
    for number in np.unique(layout.cluster):
        cluster = _Cluster.of(number, forecasts, fates, layout, policy, notch, reading_hours)
        for day in range(forecasts.first, last + 1):
            cluster.live(day)
        drains.extend(cluster.closed(last + 1))
        for code, drives in cluster.refused.items():
            refused.setdefault(code, set()).update(drives)
    found = {code: frozenset(drives) for code, drives in sorted(refused.items())}
    return ReplayResult(forecasts.first, last, tuple(drains), found)


@dataclass(slots=True)
class _Mover:
    """A drain under way."""

    osd: OsdId
    proposed: float
    begun: float
    left: float


@dataclass(slots=True)
class _Cluster:
    """One cluster; OSD n holds the n-th of `members`."""

    slots: Slots
    policy: Policy
    notch: Notch
    first_day: int
    reading_hours: int
    watched: Mapping[OsdId, list[ChanceCurve | None]]
    """The chances, day by day, of every OSD that is ever bad or worth a drain: no decision looks at the others."""
    stands: Mapping[DeviceId, OsdId]
    """OSD of each watched device."""
    outlooks: dict[DeviceId, Outlook] = field(default_factory=dict)
    points: dict[DeviceId, tuple[ForecastPoint, ...]] = field(default_factory=dict)
    """Of the last days, of disks whose drain could pay."""
    pending: bool = False
    """Whether evidence waits for a further reading since the last look."""
    bad_since: dict[DeviceId, datetime] = field(default_factory=dict)
    drains: dict[OsdId, Drain] = field(default_factory=dict)
    """The last drain of each OSD."""
    movers: dict[OsdId, _Mover] = field(default_factory=dict)
    held: set[OsdId] = field(default_factory=set)
    """Movers that a guard holds back since the last look."""
    planned: dict[str, tuple[int, datetime]] = field(default_factory=dict)
    """Fingerprint of the map under which each drain was planned, and when."""
    done: list[Drained] = field(default_factory=list)
    refused: dict[str, set[int]] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        number: int,
        forecasts: DailyForecasts,
        fates: Fates,
        layout: Layout,
        policy: Policy,
        notch: Notch,
        reading_hours: int,
    ) -> _Cluster:
        """The cluster as it stands on the first day, every slot filled."""
        members = np.flatnonzero(layout.cluster == number)
        own = forecasts.p_fail_30d[members]
        # No PG is known here, so that none can be lost; a lower sieve looks at fewer drives.
        policy = replace(policy, loss_cost=1.0, loss_cost_of=())
        least = min(notch.bad, 1 / (2 * policy.dearest_death))
        watched = np.flatnonzero((own >= least).any(axis=1))
        if policy.mode is Mode.PROPOSE:
            policy = replace(policy, mode=Mode.ACT)
        return cls(
            Slots.of(members, fates, layout, forecasts.first),
            policy,
            notch,
            forecasts.first,
            reading_hours,
            {OsdId(int(place)): forecasts.curves_of(int(members[place])) for place in watched},
            {DeviceId(str(fates.devices[members[place]])): OsdId(int(place)) for place in watched},
        )

    def live(self, day: int) -> None:
        """One day: fates, forecasts, then decisions and movement until the window closes."""
        for osd in self.slots.swapped_on(day):
            self._forget(osd)
            self._hand_over(osd)
        for osd in self.slots.happening_on(day):
            self._happen(osd, day)
        self._forecast(day)
        opens, hours = _window(self.policy)
        opened = _EPOCH + timedelta(days=day, hours=opens)
        passed = 0.0
        while True:
            self._settle(day, opened, passed)
            moving = {osd: mover for osd, mover in self.movers.items() if osd not in self.held}
            rate = _bytes_an_hour(self.policy, len(moving))
            step = min((mover.left / rate for mover in moving.values()), default=float(hours))
            step = min(step, hours - passed, self._until_reading(passed) if self.pending else step)
            passed += step
            for osd, mover in moving.items():
                mover.left -= rate * step
                if mover.left <= 0.5:
                    self._arrive(osd, day, day + passed / 24)
            if passed >= hours:
                return

    def closed(self, day: int) -> tuple[Drained, ...]:
        """All that was drained; what is under way ends unfinished on `day`."""
        for osd in list(self.movers):
            self._stop(osd, float(day))
        return tuple(self.done)

    # -- what happens to drives

    def _happen(self, osd: OsdId, day: int) -> None:
        """Its drive dies or is taken away, if it is still the one that serves there."""
        self._forget(osd)
        if osd in self.movers:
            self._stop(osd, float(day))
        if self.slots.died(osd):
            self.slots.out(osd, day, up=False)
        else:
            self._hand_over(osd)
            self.slots.taken(osd)

    def _hand_over(self, osd: OsdId) -> None:
        drain = self.drains.get(osd)
        if drain is not None and drain.state is DrainState.VERIFIED:
            self.drains[osd] = after(drain, Event.HAND_OVER, drain.updated_at)

    def _forget(self, osd: OsdId) -> None:
        self.outlooks.pop(self.slots.device(osd), None)
        self.bad_since.pop(self.slots.device(osd), None)
        self.points.pop(self.slots.device(osd), None)

    # -- what is known and decided

    def _forecast(self, day: int) -> None:
        now = _EPOCH + timedelta(days=day, hours=_window(self.policy)[0])
        column = day - self.first_day
        for osd, chances in self.watched.items():
            device, curve = self.slots.device(osd), chances[column]
            if curve is None or not self.slots.serves(osd):
                continue
            p = curve.within_30d
            status = Status.GOOD
            if p >= self.notch.bad:
                status = Status.BAD
            elif p >= self.notch.warning:
                status = Status.WARNING
            said = Outlook(device, now, status, "model:replayed", (), "", *_chances(curve))
            self.outlooks[device] = borne_out(said, self.outlooks.get(device))
            self._note_forecast(device, ForecastPoint(now, _HOST, curve, sound=True))
            if status is Status.BAD:
                self.bad_since.setdefault(device, now)
            else:
                self.bad_since.pop(device, None)

    def _note_forecast(self, device: DeviceId, point: ForecastPoint) -> None:
        oldest = point.at - self.policy.suspicion_window - timedelta(days=1)
        kept = tuple(known for known in self.points.get(device, ()) if known.at >= oldest)
        self.points[device] = (*kept, point)

    def _until_reading(self, passed: float) -> float:
        return self.reading_hours - passed % self.reading_hours

    def _forecasts_by(self, now: datetime, passed: float) -> dict[DeviceId, tuple[ForecastPoint, ...]]:
        """Of each disk what its readings have said until now: the last one says what the day's score says."""
        hours = passed - passed % self.reading_hours
        read_at = now - timedelta(hours=passed - hours)
        return {
            device: (*points, replace(points[-1], at=read_at))
            if timedelta(0) < read_at - points[-1].at < _A_DAY
            else points
            for device, points in self.points.items()
        }

    def _settle(self, day: int, opened: datetime, passed: float) -> None:
        """Look and do what is decided, until a look decides nothing new."""
        now = opened + timedelta(hours=passed)
        self.pending = False
        forecasts = self._forecasts_by(now, passed)
        for _ in range(_LOOKS_MAX):
            if not self._anything_to_decide():
                return
            view = ClusterView(now, day, "reef", self.slots.osds(), {}, {}, CrushMap({}, {}), {})
            decisions = decide(
                view,
                self.outlooks,
                self._remembered(now),
                self.policy,
                now,
                Memory(now, planned=self.planned),
                bad_since=self.bad_since,
                forecasts=forecasts,
            )
            answers = decisions.answers
            self.planned.update(decisions.planned)
            self.pending = any(map(_waits_for_readings, answers))
            self.held = {answer.drain.osds[0] for answer in answers if isinstance(answer, Hold)}
            taken = [self._take(answer, day + passed / 24) for answer in answers]
            if not any(taken):
                return
        raise RuntimeError(f"decisions do not come to rest on day {day}")

    def _anything_to_decide(self) -> bool:
        if self.movers or any(drain.state in _WAITING for drain in self.drains.values()):
            return True
        return any(
            (outlook.severity is Status.BAD or may_pay(outlook, self.policy))
            and self.slots.serves(self.stands[device])
            for device, outlook in self.outlooks.items()
        )

    def _remembered(self, now: datetime) -> tuple[Drain, ...]:
        return tuple(
            drain
            for drain in self.drains.values()
            if drain.state not in ENDED or now - drain.updated_at < self.policy.propose_again_after
        )

    def _take(self, answer: object, at: float) -> bool:
        """Carry an answer out; whether it changed anything. Steps of drains that have begun are the model's."""
        match answer:
            case Propose(drain=drain):
                self.drains[drain.osds[0]] = drain
                return True
            case Turn(drain=drain) if self.drains[drain.osds[0]].state in _WAITING:
                self._turn(drain, at)
                return True
            case Turn(drain=drain) if drain.state is DrainState.DRAINING:
                self.drains[drain.osds[0]] = drain  # planned anew
                return True
            case Hold(drain=drain, refusals=refusals) if drain.state in _WAITING:
                self._note(drain.osds[0], refusals)
                self.drains[drain.osds[0]] = drain
            case ProposalRefusal(device=device, refusals=refusals):
                self._note(self.stands[device], refusals)
            case _:
                pass
        return False

    def _turn(self, drain: Drain, at: float) -> None:
        osd = drain.osds[0]
        if drain.state is DrainState.PREPARING:
            drain = after(drain, Event.PREPARED, drain.updated_at)
            proposed = (drain.created_at - _EPOCH) / timedelta(days=1) - _window(self.policy)[0] / 24
            self.movers[osd] = _Mover(osd, min(proposed, at), at, float(self.slots.used_bytes(osd)))
        self.drains[osd] = drain

    def _note(self, osd: OsdId, refusals: tuple[Refuse, ...]) -> None:
        for refuse in refusals:
            self.refused.setdefault(refuse.code, set()).add(self.slots.drive(osd))

    # -- how bytes move

    def _arrive(self, osd: OsdId, day: int, at: float) -> None:
        self._stop(osd, at)
        self.slots.out(osd, day, up=True)

    def _stop(self, osd: OsdId, at: float) -> None:
        """The drain ends: nothing is left to move, whether it was emptied, died or was taken away."""
        mover = self.movers.pop(osd)
        moved = round(self.slots.used_bytes(osd) - max(mover.left, 0.0))
        whole = mover.left <= 0.5
        self.done.append(Drained(self.slots.drive(osd), mover.proposed, mover.begun, at, moved, whole))
        drain = self.drains[osd]
        for event in (Event.EMPTIED, Event.COUNTED):
            drain = after(drain, event, drain.updated_at)
        self.drains[osd] = drain


def _chances(curve: ChanceCurve) -> tuple[float, float, float]:
    return curve.within_7d, curve.within_14d, curve.within_30d


def _waits_for_readings(answer: object) -> bool:
    """Whether a drain pays, and only further readings are wanted."""
    return isinstance(answer, ProposalRefusal) and any(
        "wanted_hours" in one.numbers for one in answer.refusals
    )


def _window(policy: Policy) -> tuple[int, int]:
    """(hour at which data may begin to move, hours for which it may)."""
    if policy.window is None:
        return NOON, 24
    start, end = policy.window
    return start, (end - start) % 24 or 24


def _bytes_an_hour(policy: Policy, movers: int) -> float:
    """What each of so many drains moves."""
    return policy.move_bytes_per_second * 3600 * min(1.0, policy.in_flight_max / max(movers, 1))
