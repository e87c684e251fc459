"""The worker: readings from the log become history, and history becomes outlooks in the store.

Delivery is at least once, so every effect is idempotent: a reading is keyed by (device, taken_at), an outlook
by (device, as_of) with `as_of` the time of the reading that it rests on, an announcement by the same. What
cannot be read becomes a dead letter before its offset is committed; nothing is dropped. A process killed
anywhere is given the same records again and arrives at the same store. What is remembered of devices is
checkpointed now and then, so that a start reads only the readings that came after.

Where several processes share the topic, a device is one's at a time and may come to another at any moment: whoever
was given or lost a part of the topic forgets what it remembers, and reads each device's past out of the store when
the device's next reading comes.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from itertools import islice, pairwise
from typing import Final, Generic

import structlog

from predrain.data.clock import Clock
from predrain.data.ids import DeviceId
from predrain.data.log.port import Delivered, Log, Record, Topic
from predrain.data.outlook import Outlook
from predrain.data.reading import Reading
from predrain.data.refusal import Refusal
from predrain.data.residence import (
    ResidenceLimits,
    ResidenceVerdict,
    Settler,
    is_apart,
    name_apart,
)
from predrain.data.store.port import Checkpoint, Store
from predrain.data.wire import DeadLetter, accept
from predrain.service.log_recall import recall_announcements
from predrain.service.outlook_announcements import Announcements, tell_alert
from predrain.service.scoring.deadletters import opened
from predrain.service.scoring.forecasting import Forecaster, Patient, Seen, State
from predrain.service.scoring.host_errors import HostErrors
from predrain.service.scoring.latest import Latest
from predrain.service.scoring.residents import Residents, RoutedReadings
from predrain.service.scoring.sender import Sender
from predrain.service.scoring.shadow import Scene, Shadow
from predrain.service.scoring.worked import Worked, sum_worked

GROUP = "worker"
NAMED_LIMITS: Final = ResidenceLimits()
CHECKPOINT_READINGS = 10_000
"""A start reads no more readings anew than these (about 1.5 s), but for those of one device."""
STEP = 500
"""Readings that are taken at once where so many wait. The more at once, the less for each, up to some hundreds: all of
a day are forecast in one go. A step needs 20 kB for each of them for a moment, which Python does not give back."""
REBUILT = 500
"""Devices that a start asks the store for at once: two questions for each of them took most of its time."""
LOOK_BACK = timedelta(days=8)
STOOD_STILL = timedelta(seconds=5)
"""After a step of this length another worker may have announced the same: Kafka gives a silent share away in 10 s."""
EVER = datetime.min.replace(tzinfo=UTC)


class Worker(Generic[State]):
    """One consumer of the readings topic. `rebuild` once, then `step` again and again, from one thread."""

    def __init__(
        self,
        log: Log,
        store: Store,
        clock: Clock,
        forecaster: Forecaster[State],
        fleet: Latest,
        announcements: Announcements,
        sender: Sender,
        shadow: Shadow | None = None,
        limits: ResidenceLimits = NAMED_LIMITS,
    ) -> None:
        self._log, self._store, self._clock = log, store, clock
        self._forecaster, self._fleet, self._announcements = forecaster, fleet, announcements
        self._patient, self._sender, self._shadow = Patient(forecaster), sender, shadow
        self._residents, self._hosts = Residents(store, limits), HostErrors()
        self._states: dict[DeviceId, State] = {}
        self._newest: dict[DeviceId, datetime] = {}
        self._unsaved: dict[DeviceId, int] = {}
        """Devices whose checkpoint is behind, by how many readings; `_behind` counts those of all devices."""
        self._refiled: set[DeviceId] = set()
        """Devices whose history changed hands since they were read: it is read anew with their next reading."""
        self._share, self._began, self._behind = 0, EVER, 0
        self._latest: Sequence[Reading] = ()
        """Of the last step, whose outlooks may have come after those of whoever took the drives over."""
        self._whole = False
        """Whether every device of the store is remembered: one that is not has no past."""

    def succeed(self, forecaster: Forecaster[State]) -> None:
        """Score with another bundle from the next step on; what is remembered of the devices stays."""
        anew = forecaster.layout != self._forecaster.layout
        self._forecaster, self._patient = forecaster, Patient(forecaster)
        if anew and self._whole:
            self.rebuild()
        elif anew:
            self._forget()

    def states(self) -> Mapping[DeviceId, State]:
        """What is remembered of every device now."""
        return dict(self._states)

    def rebuild(self) -> int:
        """Read what is remembered of every device out of the store; returns how many devices there are."""
        latest = dict(self._store.latest_readings())
        for left in self._residents.load(latest, whole=True):
            self._store.forget_newest(left)
            del latest[left]
        for first in range(0, len(latest), REBUILT):
            some = list(islice(latest, first, first + REBUILT))
            checkpoints, later = self._store.checkpoints(some), self._store.find_later_readings(some)
            for device in some:
                state, through = self._restored(checkpoints.get(device))
                # where all of a history was too old to be kept, its newest reading is left
                ever = () if state is not None else self._store.readings(device) or (latest[device],)
                new = ever or later.get(device, ())
                if new:
                    state, through = self._forecaster.fold(state, new), new[-1].taken_at
                assert state is not None
                self._states[device], self._newest[device] = state, through
                self._count({device: len(new)})
                self._save_checkpoints()
        self._whole = True
        return len(self._states)

    def step(self, limit: int = STEP) -> Worked:
        """Take up to `limit` readings from the log, score their devices, commit.

        Raises what log and store raise; then nothing is committed and the next step starts over.
        """
        records, self._began = self._log.read(Topic.READINGS, GROUP, limit), self._clock.now()
        share = self._log.share(Topic.READINGS, GROUP)
        if share != self._share:
            self._forget()
            if self._latest:
                self._again()
            self._correct_announcements()
            self._share = share  # last: what fails is done by the next step
        self._save_checkpoints()
        due = self._residents.list_settled(self._clock.now())
        taken: list[Reading] = []
        worked = [self._move(device, verdict, taken) for device, verdict in due]
        if not records:
            return sum_worked(worked)
        judged, letters = self._judge(records)
        while judged:
            routed = self._residents.route_readings([reading for _, reading in judged], self._clock.now())
            now = self._clock.now()
            letters += [
                DeadLetter.of(Topic.READINGS, judged[place][0], why, now) for place, why in routed.refused
            ]
            worked.append(self._take(routed.readings, taken))
            self._keep(routed)
            if routed.move is not None:
                worked.append(self._move(*routed.move, taken))
            judged = judged[routed.done :]
        self._log.append(Topic.DEAD_LETTERS, [Record(one.key, self._sender.seal(one)) for one in letters])
        self._log.commit(Topic.READINGS, GROUP, records)
        came = max((reading.received_at for reading in taken), default=None)
        waited = max(timedelta(0), self._clock.now() - came) if came is not None else timedelta(0)
        done = sum_worked(worked)
        return replace(done, taken=len(records), dead=len(letters), waited=waited)

    def _take(self, readings: Sequence[Reading], taken: list[Reading]) -> Worked:
        """Keep readings, score their devices, tell what is news. taken: all that this step took so far."""
        if not readings:
            return Worked()
        readings = self._hosts.mark_shared(readings)
        self._store.add_readings(readings)
        states, outlooks, scenes = self._score(readings)
        told = self._announce(outlooks)
        taken += readings
        self._latest = sorted(taken, key=lambda reading: reading.taken_at)
        self._store.save_outlooks(outlooks)
        self._states.update(states)
        for reading in readings:
            self._newest[reading.device] = max(reading.taken_at, self._newest.get(reading.device, EVER))
        self._fleet.take(readings, outlooks)
        self._count(Counter(reading.device for reading in readings))
        if self._shadow is not None:
            self._shadow.take(readings, outlooks, scenes)
        return Worked(outlooks=len(outlooks), alerts=told)

    def _announce(self, outlooks: Sequence[Outlook]) -> int:
        """Tell people those of `outlooks` that are news; returns how many. The caller saves the outlooks after this.

        The order is for a crash: once the store held the outlook, it would be called old, and nobody would be told.
        """
        news = self._announcements.news(outlooks)
        if not news:
            return 0
        self._store.add_cluster_events([tell_alert(one) for one in news])
        # After the events, which are keyed: between this look and the announcement nothing waits for a server.
        if self._clock.now() - self._began > STOOD_STILL:
            recall_announcements(self._log, self._announcements)
            news = self._announcements.news(outlooks)
        announced = [alert.outlook for alert in news]
        self._log.append(Topic.OUTLOOKS, [Record(one.device, self._sender.seal(one)) for one in announced])
        self._announcements.take(news)  # at once: if the store fails now, nothing is announced again
        return len(news)

    def _correct_announcements(self) -> None:
        """Announce the outlooks in the store that are graver than what a frozen worker announced too late.

        It cannot be left to that worker, which may have been killed since.
        """
        newest = self._store.latest_outlooks(self._announcements.last())
        self._announce(sorted(newest.values(), key=lambda outlook: outlook.as_of))

    def _keep(self, routed: RoutedReadings) -> None:
        """Remember where disks live, and end the histories apart whose claims are over."""
        over = set(routed.named)
        for device, residence in routed.residences.items():
            over |= self._names_apart(device)
            over -= {name_apart(device, host) for host in residence.hosts_apart}
        for name in over:
            self._store.forget_newest(name)
            self._forget_device(name)
        self._residents.keep_residences(routed.residences)
        self._fleet.settle(routed.residences)

    def _names_apart(self, device: DeviceId) -> set[DeviceId]:
        known = self._residents.find_residence(device)
        return {name_apart(device, host) for host in known.hosts_apart} if known else set()

    def _move(self, device: DeviceId, verdict: ResidenceVerdict, taken: list[Reading]) -> Worked:
        """Let another host be a disk's home: it takes over the elder home's past, and the disk is judged anew.

        Every part may be done again: a crash before the end leaves the residence as it was, and so the move due.
        """
        before = self._residents.get_residence(device)
        after, came, concerned = self._residents.refile_readings(device, verdict)
        for name in concerned:
            self._forget_device(name)
        self._residents.keep_residences({device: after})
        self._fleet.settle({device: after})
        if verdict.by is Settler.PERSON:
            self._residents.clear_answer(device)
        if before.home == after.home:
            return Worked(moved=1)
        self._fleet.take(self._store.latest_readings([device]).values(), ())
        structlog.get_logger().info(
            "a disk lives in another host", device=device, host=after.home, before=before.home, by=verdict.by
        )
        if came:
            self._newest[device] = came[-1].taken_at  # so that its whole history is read
        return replace(self._take(came, taken), moved=1)

    def _forget_device(self, device: DeviceId) -> None:
        self._states.pop(device, None)
        self._newest.pop(device, None)
        self._unsaved.pop(device, None)
        self._refiled.add(device)
        self._fleet.forget(device)

    def family(self, device: DeviceId) -> tuple[float, ...] | None:
        """The survival of the device's family at its age; None for a device that was not read yet."""
        state = self._states.get(device)
        return None if state is None else self._forecaster.family(state)

    def _forget(self) -> None:
        """Others may have read on where we stopped."""
        self._states.clear()
        self._newest.clear()
        self._unsaved, self._behind = {}, 0
        self._whole = False
        self._residents.forget()
        recall_announcements(self._log, self._announcements)

    def _again(self) -> None:
        """Judge the last step's drives anew by what the store has now: who took them over may have had a late reading
        of theirs before our outlooks came."""
        _, outlooks, _ = self._score(self._latest)
        self._store.save_outlooks(outlooks)
        self._latest = ()
        self._states.clear()
        self._newest.clear()

    def _recover(self, new: Mapping[DeviceId, Sequence[Reading]]) -> None:
        """What the store knows of devices before their readings `new`, which are there already too."""
        checkpoints, unsaved = self._store.checkpoints(new), self._store.unsaved(new)
        held = {device: checkpoint.through for device, checkpoint in checkpoints.items()}
        self._fleet.take((), self._store.latest_outlooks(new).values())
        for device, readings in new.items():
            state, through = self._restored(checkpoints.get(device))
            first, times = readings[0].taken_at, {reading.taken_at for reading in readings}
            others: list[Reading] = []
            if through < held.get(device, through) or not times.issuperset(unsaved.get(device, ())):
                kept = self._store.readings(device, through)
                others = [one for one in kept if one.taken_at > through and one.taken_at not in times]
            if through < first:
                earlier = [one for one in others if one.taken_at < first]
                if earlier:
                    state = self._forecaster.fold(state, earlier)
                if state is not None:
                    self._states[device] = state
            self._newest[device] = max([through, *(one.taken_at for one in others)])

    def _restored(self, checkpoint: Checkpoint | None) -> tuple[State | None, datetime]:
        """The state in a checkpoint, and through when it goes; None when there is none to use."""
        if checkpoint is None or checkpoint.layout != self._forecaster.layout:
            return None, EVER
        state = self._forecaster.unpack(checkpoint.state)
        return (None, EVER) if state is None else (state, checkpoint.through)

    def _count(self, behind: Mapping[DeviceId, int]) -> None:
        """Note readings that no checkpoint has yet."""
        for device, count in behind.items():
            if count:
                self._unsaved[device] = self._unsaved.get(device, 0) + count
                self._behind += count

    def _save_checkpoints(self) -> None:
        """Once many readings are in no checkpoint, save those devices' states.

        Not before the log has said that the devices are still ours: a late reading that another one took meanwhile is
        in no state of ours, and nobody would find it missing in a checkpoint.
        """
        if self._behind < CHECKPOINT_READINGS:
            return
        self._store.save_checkpoints(
            Checkpoint(device, self._forecaster.layout, self._newest[device], self._forecaster.pack(state))
            for device in self._unsaved
            if (state := self._states.get(device)) is not None
        )
        self._unsaved, self._behind = {}, 0

    def _judge(
        self, records: Sequence[Delivered]
    ) -> tuple[list[tuple[Delivered, Reading]], list[DeadLetter]]:
        """Readings in the order of the log, and a letter with the reason for each record that is none."""
        readings, letters, now = list[tuple[Delivered, Reading]](), list[DeadLetter](), self._clock.now()
        for record in records:
            try:
                readings.append((record, accept(opened(record, Reading), now)))
            except Refusal as refusal:
                letters.append(DeadLetter.of(Topic.READINGS, record, refusal, now))
        return readings, letters

    def _score(
        self, readings: Sequence[Reading]
    ) -> tuple[dict[DeviceId, State], list[Outlook], Sequence[Scene]]:
        """States after `readings`, and one outlook for each, so that none depends on how they were batched; and
        the scenes that were scored.

        A late or repeated reading makes its device be judged anew from that reading on.
        """
        due: dict[DeviceId, list[Reading]] = defaultdict(list)
        for reading in readings:
            due[reading.device].append(reading)
        states: dict[DeviceId, State] = {}
        unknown = {device: new for device, new in due.items() if device not in self._newest}
        if self._whole:
            unknown = {one: new for one, new in unknown.items() if is_apart(one) or one in self._refiled}
        if unknown:
            self._recover(unknown)
        for device, new in due.items():
            if new[0].taken_at <= self._newest.get(device, EVER) or _repeats(new):
                history = self._store.readings(device)
                earlier = [reading for reading in history if reading.taken_at < new[0].taken_at]
                due[device] = list(history[len(earlier) :])
                if earlier:
                    states[device] = self._forecaster.fold(None, earlier)
            elif device in self._states:
                states[device] = self._states[device]
        found: list[Outlook] = []
        last = {device: before for device, new in due.items() if (before := self._before(device, new[0]))}
        by_day: dict[date, list[Seen[State]]] = defaultdict(list)
        for device, new in due.items():
            for reading in new:
                states[device] = self._forecaster.fold(states.get(device), [reading])
                by_day[reading.taken_at.date()].append((reading, states[device]))
        scenes = [by_day[day] for day in sorted(by_day)]
        for scene in scenes:
            told = self._patient.outlooks(scene, last)
            last.update((outlook.device, outlook) for outlook in told)
            found += told
        return states, sorted(found, key=lambda outlook: outlook.as_of), scenes

    def _before(self, device: DeviceId, reading: Reading) -> Outlook | None:
        """The device's outlook before `reading`; after a crash the store may hold later ones already."""
        known = self._fleet.outlook(device)
        if known is None or known.as_of < reading.taken_at:
            return known
        for since in (reading.taken_at - LOOK_BACK, None):  # nearly always the first finds it
            for one in reversed(self._store.outlooks(device, since)):
                if one.as_of < reading.taken_at:
                    return one
        return None


def _repeats(readings: Sequence[Reading]) -> bool:
    return any(later.taken_at <= earlier.taken_at for earlier, later in pairwise(readings))
