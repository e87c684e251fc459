"""One cluster after the other, day by day: what the engine decides of its drives, and how far their bytes come.

Every day at the hour at which the policy's window opens (noon without one) the day's forecasts are in and
`actions.decide` answers, again whenever a drain has come to its end. It proposes, believes or refuses,
approves, withdraws and begins drains; from there on a model of movement stands in for the steps of a drain.

Assumed: a drain moves one PG at a time (the pace without a latency signal), `move_bytes_per_second` each and at
most `in_flight_max` of them, while the window is open. A person approves what is proposed at once, also in mode
propose. A drive dies, or is taken away, at the hour of the day's look. A dead drive is out and its data healed at
the next look; dead and drained drives are replaced after `SWAP_DAYS`. The cluster is well otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

import numpy as np

from actions.cluster.view import ClusterView, Osd
from actions.context import Memory
from actions.crush.map import CrushMap
from actions.decide import decide
from actions.guards import Refuse
from actions.policy import Mode, Policy
from actions.states import ENDED, Event, after
from actions.steps import Hold, Propose, Refusal, Turn
from actions.worth.given import Fates, Forecasts, Ints, Layout, Notch
from data.drain import Drain, DrainState
from data.ids import DeviceId, HostName, OsdId
from data.outlook import Outlook, Status, borne_out

SWAP_DAYS = 7
NOON = 12
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
class Replayed:
    """What was done. Drives are numbered as in the fates."""

    first: int
    last: int
    drains: tuple[Drained, ...]
    refused: Mapping[str, frozenset[int]]
    """Guard's code -> drives that it held back at least once before their drain began."""


def replay(forecasts: Forecasts, fates: Fates, layout: Layout, policy: Policy, notch: Notch) -> Replayed:
    """Replay the forecasts' days, and on until the fates end or the last forecast is too old to act on."""
    last = min(fates.end, forecasts.first + forecasts.days - 1)
    drains: list[Drained] = []
    refused: dict[str, set[int]] = {}
    for number in np.unique(layout.cluster):
        cluster = _Cluster.of(number, forecasts, fates, layout, policy, notch)
        for day in range(forecasts.first, last + 1):
            cluster.live(day)
        drains.extend(cluster.closed(last + 1))
        for code, drives in cluster.refused.items():
            refused.setdefault(code, set()).update(drives)
    found = {code: frozenset(drives) for code, drives in sorted(refused.items())}
    return Replayed(forecasts.first, last, tuple(drains), found)


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

    members: Ints
    fates: Fates
    layout: Layout
    policy: Policy
    notch: Notch
    first_day: int
    watched: Mapping[OsdId, list[float]]
    """p_fail_30d, day by day, of every OSD that is ever bad: no decision looks at the others' outlooks."""
    slots: Mapping[DeviceId, OsdId]
    """OSD of each watched device."""
    happenings: Mapping[int, list[OsdId]]
    """Day -> OSDs whose drive comes, dies or goes on it."""
    osds: dict[OsdId, Osd]
    outlooks: dict[DeviceId, Outlook] = field(default_factory=dict)
    bad_since: dict[DeviceId, datetime] = field(default_factory=dict)
    drains: dict[OsdId, Drain] = field(default_factory=dict)
    """The last drain of each OSD."""
    movers: dict[OsdId, _Mover] = field(default_factory=dict)
    held: set[OsdId] = field(default_factory=set)
    """Movers that a guard holds back since the last look."""
    planned: dict[str, tuple[int, datetime]] = field(default_factory=dict)
    """Fingerprint of the map under which each drain was planned, and when."""
    swaps: dict[OsdId, int] = field(default_factory=dict)
    """OSDs that are out, and the day on which a new disk is in their place."""
    done: list[Drained] = field(default_factory=list)
    refused: dict[str, set[int]] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        number: int,
        forecasts: Forecasts,
        fates: Fates,
        layout: Layout,
        policy: Policy,
        notch: Notch,
    ) -> _Cluster:
        """The cluster as it stands on the first day, every slot filled."""
        members = np.flatnonzero(layout.cluster == number)
        own = forecasts.p_fail_30d[members]
        watched = np.flatnonzero((own >= notch.bad).any(axis=1))
        happenings: dict[int, list[OsdId]] = {}
        for place, drive in enumerate(members):
            for day in {int(fates.first[drive]), _leaves(fates, int(drive))}:
                happenings.setdefault(day, []).append(OsdId(place))
        if policy.mode is Mode.PROPOSE:
            policy = replace(policy, mode=Mode.ACT)
        cluster = cls(
            members, fates, layout, policy, notch, forecasts.first,
            {OsdId(int(place)): own[place].tolist() for place in watched},
            {DeviceId(str(fates.devices[members[place]])): OsdId(int(place)) for place in watched},
            happenings, {},
        )  # fmt: skip
        for place, drive in enumerate(members):
            there = fates.first[drive] <= forecasts.first < _leaves(fates, int(drive))
            cluster._plug(OsdId(place), str(fates.devices[drive]) if there else f"other than {drive}")
        return cluster

    def live(self, day: int) -> None:
        """One day: fates, forecasts, then decisions and movement until the window closes."""
        self.osds = dict(self.osds)  # earlier views keep theirs
        for osd in [osd for osd, on in self.swaps.items() if on <= day]:
            self._swap(osd, day)
        for osd in self.happenings.get(day, ()):
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
            step = min(step, hours - passed)
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

    def _plug(self, osd: OsdId, device: str) -> None:
        drive = int(self.members[osd])
        self.osds[osd] = Osd(
            id=osd,
            host=HostName(f"host-{self.layout.host[drive]}"),
            rack=f"rack-{self.layout.rack[drive]}",
            device=DeviceId(device),
            up=True,
            reweight=1.0,
            crush_weight=1.0,
            size_bytes=int(self.layout.size_bytes[drive]),
            used_bytes=int(self.layout.used_bytes[drive]),
            model=str(self.fates.models[drive]),
        )

    def _device(self, osd: OsdId) -> DeviceId:
        return DeviceId(str(self.fates.devices[self.members[osd]]))

    def _happen(self, osd: OsdId, day: int) -> None:
        drive = int(self.members[osd])
        if day == self.fates.first[drive] and day < _leaves(self.fates, drive):
            self._plug(osd, self._device(osd))
        elif self.osds[osd].device == self._device(osd) and osd not in self.swaps:
            self._forget(osd)
            if osd in self.movers:
                self._stop(osd, float(day))
            if self.fates.died[drive]:
                self._out(osd, day, up=False)
            else:
                self._hand_over(osd)
                self._plug(osd, f"next after {drive}")

    def _out(self, osd: OsdId, day: int, *, up: bool) -> None:
        self.osds[osd] = replace(self.osds[osd], up=up, reweight=0.0)
        self.swaps[osd] = day + SWAP_DAYS

    def _swap(self, osd: OsdId, day: int) -> None:
        del self.swaps[osd]
        self._forget(osd)
        self._hand_over(osd)
        self._plug(osd, f"swapped in on {day} for {self.members[osd]}")

    def _hand_over(self, osd: OsdId) -> None:
        drain = self.drains.get(osd)
        if drain is not None and drain.state is DrainState.VERIFIED:
            self.drains[osd] = after(drain, Event.HAND_OVER, drain.updated_at)

    def _forget(self, osd: OsdId) -> None:
        self.outlooks.pop(self._device(osd), None)
        self.bad_since.pop(self._device(osd), None)

    # -- what is known and decided

    def _forecast(self, day: int) -> None:
        now = _EPOCH + timedelta(days=day, hours=_window(self.policy)[0])
        column = day - self.first_day
        for osd, chances in self.watched.items():
            device, p = self._device(osd), chances[column]
            if p != p or self.osds[osd].device != device or osd in self.swaps:
                continue
            status = Status.GOOD
            if p >= self.notch.bad:
                status = Status.BAD
            elif p >= self.notch.warning:
                status = Status.WARNING
            said = Outlook(device, now, status, "model:replayed", (), "", p_fail_30d=p)
            self.outlooks[device] = borne_out(said, self.outlooks.get(device))
            if status is Status.BAD:
                self.bad_since.setdefault(device, now)
            else:
                self.bad_since.pop(device, None)

    def _settle(self, day: int, opened: datetime, passed: float) -> None:
        """Look and do what is decided, until a look decides nothing new."""
        now = opened + timedelta(hours=passed)
        for _ in range(_LOOKS_MAX):
            if not self._anything_to_decide():
                return
            view = ClusterView(now, day, "reef", dict(self.osds), {}, {}, CrushMap({}, {}), {})
            decisions = decide(
                view,
                self.outlooks,
                self._remembered(now),
                self.policy,
                now,
                Memory(now, planned=self.planned),
                bad_since=self.bad_since,
            )
            answers = decisions.answers
            self.planned.update(decisions.planned)
            self.held = {answer.drain.osds[0] for answer in answers if isinstance(answer, Hold)}
            taken = [self._take(answer, day + passed / 24) for answer in answers]
            if not any(taken):
                return
        raise RuntimeError(f"decisions do not come to rest on day {day}")

    def _anything_to_decide(self) -> bool:
        if self.movers or any(drain.state in _WAITING for drain in self.drains.values()):
            return True
        return any(
            outlook.status is Status.BAD and self.slots[device] not in self.swaps
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
            case Refusal(device=device, refusals=refusals):
                self._note(self.slots[device], refusals)
            case _:
                pass
        return False

    def _turn(self, drain: Drain, at: float) -> None:
        osd = drain.osds[0]
        if drain.state is DrainState.PREPARING:
            drain = after(drain, Event.PREPARED, drain.updated_at)
            proposed = (drain.created_at - _EPOCH) / timedelta(days=1) - _window(self.policy)[0] / 24
            self.movers[osd] = _Mover(osd, proposed, at, float(self.layout.used_bytes[self.members[osd]]))
        self.drains[osd] = drain

    def _note(self, osd: OsdId, refusals: tuple[Refuse, ...]) -> None:
        for refuse in refusals:
            self.refused.setdefault(refuse.code, set()).add(int(self.members[osd]))

    # -- how bytes move

    def _arrive(self, osd: OsdId, day: int, at: float) -> None:
        self._stop(osd, at)
        self._out(osd, day, up=True)

    def _stop(self, osd: OsdId, at: float) -> None:
        """The drain ends: nothing is left to move, whether it was emptied, died or was taken away."""
        mover = self.movers.pop(osd)
        drive = int(self.members[osd])
        moved = round(float(self.layout.used_bytes[drive]) - max(mover.left, 0.0))
        whole = mover.left <= 0.5
        self.done.append(Drained(drive, mover.proposed, mover.begun, at, moved, whole))
        drain = self.drains[osd]
        for event in (Event.EMPTIED, Event.COUNTED):
            drain = after(drain, event, drain.updated_at)
        self.drains[osd] = drain


def _leaves(fates: Fates, drive: int) -> int:
    """The day from which on the drive serves no more: of its death, or after its last reading."""
    last = int(fates.last[drive])
    if fates.died[drive]:
        return last
    return last + 1 if last < fates.end else fates.end + 1


def _window(policy: Policy) -> tuple[int, int]:
    """(hour at which data may begin to move, hours for which it may)."""
    if policy.window is None:
        return NOON, 24
    start, end = policy.window
    return start, (end - start) % 24 or 24


def _bytes_an_hour(policy: Policy, movers: int) -> float:
    """What each of so many drains moves."""
    return policy.move_bytes_per_second * 3600 * min(1.0, policy.in_flight_max / max(movers, 1))
