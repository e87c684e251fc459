"""Replays one cluster after the other, day by day: the engine's decisions on its drives, and the bytes that
move.

Every day at the hour at which the policy's window opens (noon without one) the day's forecasts arrive.
`actions.engine.decision` answers then, and again whenever a drain has ended. It proposes, believes or refuses,
approves, withdraws and begins drains. From there on a model of movement replaces the steps of a drain.

Drains are decided by cost. A daily score stands for the readings of the 24 hours after it, one every
`reading_hours`, all with the same chances. Evidence is therefore confirmed within the day or by the next
score.

These assumptions hold. A drain moves one PG at a time (the pace without a latency signal), at
`backfill_bytes_per_second`. At most `in_flight_max` PGs move at once, and only while the window is open. A person
approves a proposal at once, also in mode propose. A drive dies or is removed at the hour of the daily poll. A
dead drive is out and its data restored at the next poll (`actions.cost_benefit.drive_slots`). The cluster is
otherwise healthy.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

import numpy as np

from predrain.actions.cluster.cluster_view import ClusterView
from predrain.actions.core.cost_assessment import with_weighed_disks
from predrain.actions.core.decision_answers import DrainProposal, Hold, ProposalRefusal, StateChange
from predrain.actions.core.drain_cost import ChanceCurve
from predrain.actions.core.drain_policy import Mode, Policy
from predrain.actions.core.forecast_confirmation import ForecastPoint
from predrain.actions.core.forecast_history import may_pay
from predrain.actions.core.pg_survey import survey_pgs
from predrain.actions.core.situation import Context, SentMemory
from predrain.actions.core.state_machine import ENDED, Event, apply_event
from predrain.actions.cost_benefit.drive_slots import OsdSlots
from predrain.actions.cost_benefit.replay_input import DailyForecasts, DriveFates, DriveLayout, Notch
from predrain.actions.crush.crush_map import CrushMap
from predrain.actions.engine.decision import decide_drain_steps
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
"""More polls than a drain has states; decisions that still change after so many polls are a fault."""


@dataclass(frozen=True, slots=True)
class ReplayedDrain:
    """One drain that began. Days are fractions, counted from 1970-01-01 at the hour of the daily poll."""

    drive: int
    proposed: float
    begun: float
    ended: float
    """The day on which the drive was empty, dead or removed; the end of the replay if none of these happened.
    """
    moved_bytes: int
    whole: bool
    """True if the drive was emptied before it died."""


@dataclass(frozen=True, slots=True)
class ReplayResult:
    """The drains and refusals of a replay. Drives are numbered as in `DriveFates`."""

    first: int
    last: int
    drains: tuple[ReplayedDrain, ...]
    refused: Mapping[str, frozenset[int]]
    """Guard's code -> drives that it held at least once before their drain began."""


def replay_forecast_days(
    forecasts: DailyForecasts,
    fates: DriveFates,
    layout: DriveLayout,
    policy: Policy,
    notch: Notch,
    *,
    reading_hours: int = 1,
) -> ReplayResult:
    """Replay the days of the forecasts, up to the last day of the outcomes.

    reading_hours: hours between two readings of a disk, 1 to 24.
    """
    last = min(fates.end, forecasts.first + forecasts.days - 1)
    drains: list[ReplayedDrain] = []
    refused: dict[str, set[int]] = {}
    for number in np.unique(layout.cluster):
        cluster = _Cluster.from_layout(number, forecasts, fates, layout, policy, notch, reading_hours)
        for day in range(forecasts.first, last + 1):
            cluster.simulate_day(day)
        drains.extend(cluster.finish_drains(last + 1))
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

    slots: OsdSlots
    policy: Policy
    notch: Notch
    first_day: int
    reading_hours: int
    watched: Mapping[OsdId, list[ChanceCurve | None]]
    """The chances, day by day, of every OSD that is ever bad or worth a drain; no decision reads the others.
    """
    stands: Mapping[DeviceId, OsdId]
    """The OSD of each watched device."""
    outlooks: dict[DeviceId, Outlook] = field(default_factory=dict)
    points: dict[DeviceId, tuple[ForecastPoint, ...]] = field(default_factory=dict)
    """Forecasts of the last days, of disks whose drain could pay."""
    pending: bool = False
    """True if a drain has waited for a further reading since the last poll."""
    bad_since: dict[DeviceId, datetime] = field(default_factory=dict)
    drains: dict[OsdId, Drain] = field(default_factory=dict)
    """The last drain of each OSD."""
    movers: dict[OsdId, _Mover] = field(default_factory=dict)
    held: set[OsdId] = field(default_factory=set)
    """OSDs whose drain a guard has held since the last poll."""
    planned: dict[str, tuple[int, datetime]] = field(default_factory=dict)
    """The fingerprint of the map under which each drain was planned, and the time."""
    done: list[ReplayedDrain] = field(default_factory=list)
    refused: dict[str, set[int]] = field(default_factory=dict)

    @classmethod
    def from_layout(
        cls,
        number: int,
        forecasts: DailyForecasts,
        fates: DriveFates,
        layout: DriveLayout,
        policy: Policy,
        notch: Notch,
        reading_hours: int,
    ) -> _Cluster:
        """Return the cluster on the first day, with every slot filled."""
        members = np.flatnonzero(layout.cluster == number)
        own = forecasts.p_fail_30d[members]
        # No PG is known here, so none can be lost; a lower bound then watches fewer drives.
        policy = replace(policy, loss_cost=1.0, loss_cost_overrides=())
        least = min(notch.bad, 1 / (2 * policy.dearest_death))
        watched = np.flatnonzero((own >= least).any(axis=1))
        if policy.mode is Mode.PROPOSE:
            policy = replace(policy, mode=Mode.ACT)
        return cls(
            OsdSlots.from_fates(members, fates, layout, forecasts.first),
            policy,
            notch,
            forecasts.first,
            reading_hours,
            {OsdId(int(place)): forecasts.curves_of(int(members[place])) for place in watched},
            {DeviceId(str(fates.devices[members[place]])): OsdId(int(place)) for place in watched},
        )

    def simulate_day(self, day: int) -> None:
        """Simulate one day: events of drives, forecasts, then decisions and movement until the window closes."""
        for osd in self.slots.swapped_on(day):
            self._forget(osd)
            self._hand_over(osd)
        for osd in self.slots.happening_on(day):
            self._happen(osd, day)
        self._forecast(day)
        opens, hours = _find_move_window(self.policy)
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

    def finish_drains(self, day: int) -> tuple[ReplayedDrain, ...]:
        """Return all drains; those under way end unfinished on `day`."""
        for osd in list(self.movers):
            self._stop(osd, float(day))
        return tuple(self.done)

    # -- what happens to drives

    def _happen(self, osd: OsdId, day: int) -> None:
        """End the slot's drive by death or removal, if it is still the one that serves there."""
        self._forget(osd)
        if osd in self.movers:
            self._stop(osd, float(day))
        if self.slots.has_fatal_end(osd):
            self.slots.mark_out(osd, day, up=False)
        else:
            self._hand_over(osd)
            self.slots.replace_taken_drive(osd)

    def _hand_over(self, osd: OsdId) -> None:
        drain = self.drains.get(osd)
        if drain is not None and drain.state is DrainState.VERIFIED:
            self.drains[osd] = apply_event(drain, Event.HAND_OVER, drain.updated_at)

    def _forget(self, osd: OsdId) -> None:
        self.outlooks.pop(self.slots.device(osd), None)
        self.bad_since.pop(self.slots.device(osd), None)
        self.points.pop(self.slots.device(osd), None)

    # -- what is known and decided

    def _forecast(self, day: int) -> None:
        now = _EPOCH + timedelta(days=day, hours=_find_move_window(self.policy)[0])
        column = day - self.first_day
        for osd, chances in self.watched.items():
            device, curve = self.slots.device(osd), chances[column]
            if curve is None or not self.slots.is_serving(osd):
                continue
            p = curve.within_30d
            status = Status.GOOD
            if p >= self.notch.bad:
                status = Status.BAD
            elif p >= self.notch.warning:
                status = Status.WARNING
            said = Outlook(device, now, status, "model:replayed", (), "", *_list_curve_chances(curve))
            self.outlooks[device] = borne_out(said, self.outlooks.get(device))
            self._note_forecast(device, ForecastPoint(now, _HOST, curve, sound=True))
            if status is Status.BAD:
                self.bad_since.setdefault(device, now)
            else:
                self.bad_since.pop(device, None)

    def _note_forecast(self, device: DeviceId, point: ForecastPoint) -> None:
        oldest = point.at - self.policy.mass_suspicion_window - timedelta(days=1)
        kept = tuple(known for known in self.points.get(device, ()) if known.at >= oldest)
        self.points[device] = (*kept, point)

    def _until_reading(self, passed: float) -> float:
        return self.reading_hours - passed % self.reading_hours

    def _forecasts_by(self, now: datetime, passed: float) -> dict[DeviceId, tuple[ForecastPoint, ...]]:
        """Return the readings of each disk until now; the last one has the chances of the day's score."""
        hours = passed - passed % self.reading_hours
        read_at = now - timedelta(hours=passed - hours)
        return {
            device: (*points, replace(points[-1], at=read_at))
            if timedelta(0) < read_at - points[-1].at < _A_DAY
            else points
            for device, points in self.points.items()
        }

    def _settle(self, day: int, opened: datetime, passed: float) -> None:
        """Poll and carry out the decisions until a poll decides nothing new. Raises RuntimeError if that does
        not happen.
        """
        now = opened + timedelta(hours=passed)
        self.pending = False
        forecasts = self._forecasts_by(now, passed)
        for _ in range(_LOOKS_MAX):
            if not self._anything_to_decide():
                return
            view = ClusterView(now, day, "reef", self.slots.osds(), {}, {}, CrushMap({}, {}), {})
            context = Context(
                survey=survey_pgs(view),
                outlooks=self.outlooks,
                drains=tuple(self._remembered(now)),
                now=now,
                memory=SentMemory(now, planned=self.planned),
                bad_since=self.bad_since,
                forecasts=forecasts,
            )
            weighed = with_weighed_disks(view, self.policy, context)
            decisions = decide_drain_steps(view, self.policy, weighed)
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
            and self.slots.is_serving(self.stands[device])
            for device, outlook in self.outlooks.items()
        )

    def _remembered(self, now: datetime) -> tuple[Drain, ...]:
        return tuple(
            drain
            for drain in self.drains.values()
            if drain.state not in ENDED or now - drain.updated_at < self.policy.proposal_cooldown
        )

    def _take(self, answer: object, at: float) -> bool:
        """Carry out an answer. Return whether it changed anything.

        The model replaces the steps of drains that have begun.
        """
        match answer:
            case DrainProposal(drain=drain):
                self.drains[drain.osds[0]] = drain
                return True
            case StateChange(drain=drain) if self.drains[drain.osds[0]].state in _WAITING:
                self._turn(drain, at)
                return True
            case StateChange(drain=drain) if drain.state is DrainState.DRAINING:
                self.drains[drain.osds[0]] = drain  # planned again
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
            drain = apply_event(drain, Event.PREPARED, drain.updated_at)
            proposed = (drain.created_at - _EPOCH) / timedelta(days=1) - _find_move_window(self.policy)[
                0
            ] / 24
            self.movers[osd] = _Mover(osd, min(proposed, at), at, float(self.slots.used_bytes(osd)))
        self.drains[osd] = drain

    def _note(self, osd: OsdId, refusals: tuple[Refuse, ...]) -> None:
        for refuse in refusals:
            self.refused.setdefault(refuse.code, set()).add(self.slots.drive(osd))

    # -- how bytes move

    def _arrive(self, osd: OsdId, day: int, at: float) -> None:
        self._stop(osd, at)
        self.slots.mark_out(osd, day, up=True)

    def _stop(self, osd: OsdId, at: float) -> None:
        """End the drain with nothing left to move: the drive was emptied, died or was removed."""
        mover = self.movers.pop(osd)
        moved = round(self.slots.used_bytes(osd) - max(mover.left, 0.0))
        whole = mover.left <= 0.5
        self.done.append(ReplayedDrain(self.slots.drive(osd), mover.proposed, mover.begun, at, moved, whole))
        drain = self.drains[osd]
        for event in (Event.EMPTIED, Event.COUNTED):
            drain = apply_event(drain, event, drain.updated_at)
        self.drains[osd] = drain


def _list_curve_chances(curve: ChanceCurve) -> tuple[float, float, float]:
    return curve.within_7d, curve.within_14d, curve.within_30d


def _waits_for_readings(answer: object) -> bool:
    """Return whether a drain pays and only lacks further readings."""
    return isinstance(answer, ProposalRefusal) and any(
        "wanted_hours" in one.numbers for one in answer.refusals
    )


def _find_move_window(policy: Policy) -> tuple[int, int]:
    """Return (hour at which data may begin to move, hours for which it may)."""
    if policy.window is None:
        return NOON, 24
    start, end = policy.window
    return start, (end - start) % 24 or 24


def _bytes_an_hour(policy: Policy, movers: int) -> float:
    """Return the bytes per hour that each of `movers` drains moves."""
    return policy.backfill_bytes_per_second * 3600 * min(1.0, policy.in_flight_max / max(movers, 1))
