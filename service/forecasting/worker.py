"""The worker: readings from the log become history, and history becomes outlooks in the store.

Delivery is at least once, so every effect is idempotent. A reading is keyed by (device, taken_at). An outlook is
keyed by (device, as_of), with `as_of` the time of its reading, and so is an announcement. A record that cannot be
read becomes a dead letter before its offset is committed; nothing is dropped. A process killed anywhere gets the
same records again and reaches the same store. The states of devices are checkpointed periodically, so that a
start reads only the readings that came after.

If several processes share the topic, one worker at a time has a device, and the device may move to another worker
at any moment. A worker that was given or lost a part of the topic forgets its states, and reads each device's
past from the store at the device's next reading.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from itertools import islice, pairwise
from typing import Final, Generic

import structlog

from predrain.data.clock import Clock
from predrain.data.ids import DeviceId
from predrain.data.log.log_port import Delivered, Log, Record, Topic
from predrain.data.outlook import Outlook
from predrain.data.reading import Reading
from predrain.data.refusal import Refusal
from predrain.data.residence import (
    ResidenceLimits,
    ResidenceVerdict,
    SettledBy,
    name_apart,
)
from predrain.data.store.store_port import Checkpoint, Store
from predrain.data.wire import DeadLetter, accept_reading
from predrain.service.fleet.residents import ResidentDrives, RoutedReadings
from predrain.service.forecasting.challenger_trial import ScoredDay, ShadowForecasts
from predrain.service.forecasting.forecaster import FallbackForecaster, Forecaster, Seen, State
from predrain.service.forecasting.host_errors import HostErrors
from predrain.service.forecasting.newest_outlooks import NewestOutlooks
from predrain.service.forecasting.remembered_states import RememberedStates
from predrain.service.forecasting.worker_step_result import WorkerStepResult, sum_worked
from predrain.service.storage.record_sender import RecordSender
from predrain.service.streams.dead_letters import decode_log_record
from predrain.service.streams.history_import import HANDED_OVER
from predrain.service.streams.kept_announcements import recall_announced, write_announced
from predrain.service.streams.log_recall import recall_announcements
from predrain.service.streams.outlook_announcements import Announcements, tell_alert

GROUP = "worker"
NAMED_LIMITS: Final = ResidenceLimits()
CHECKPOINT_READINGS = 10_000
"""A start reads no more readings again than this (about 1.5 s), except for those of one device."""
STEP = 500
"""The largest number of readings per step. Larger steps, up to some hundreds, cost less per reading, since all
readings of a day are forecast at once. A step needs 20 kB for each reading for a moment, which Python does not
give back.
"""
REBUILT = 500
"""Devices whose checkpoints a start reads from the store at once."""
LOOK_BACK = timedelta(days=8)
STOOD_STILL = timedelta(seconds=5)
"""After a step of this length another worker may have announced the same: Kafka reassigns a silent worker's share
in 10 s.
"""
EVER = datetime.min.replace(tzinfo=UTC)


class ScoringWorker(Generic[State]):
    """One consumer of the readings topic. Call `rebuild` once, then `step` repeatedly, from one thread."""

    def __init__(
        self,
        log: Log,
        store: Store,
        clock: Clock,
        forecaster: Forecaster[State],
        fleet: NewestOutlooks,
        announcements: Announcements,
        sender: RecordSender,
        shadow: ShadowForecasts | None = None,
        limits: ResidenceLimits = NAMED_LIMITS,
    ) -> None:
        self._log, self._store, self._clock = log, store, clock
        self._forecaster, self._fleet, self._announcements = forecaster, fleet, announcements
        self._patient, self._sender, self._shadow = FallbackForecaster(forecaster), sender, shadow
        self._residents, self._hosts = ResidentDrives(store, limits), HostErrors()
        self._states = RememberedStates(forecaster)
        self._newest: dict[DeviceId, datetime] = {}
        self._unsaved: dict[DeviceId, int] = {}
        """Devices whose checkpoint is behind, with the number of readings; `_behind` is the sum over all devices."""
        self._unnoted: dict[DeviceId, Outlook] = {}
        """Announced outlooks whose notes the store has not taken yet."""
        self._share, self._began, self._behind = 0, EVER, 0
        self._latest: Sequence[Reading] = ()
        """The readings of the last step, whose outlooks may have come after those of a worker that took the
        drives over.
        """
        self._whole = False
        """True if the state of every device of the store is in memory, not only of those that were read lately."""

    def switch_forecaster(self, forecaster: Forecaster[State]) -> None:
        """Score with another bundle from the next step on; the states of the devices stay."""
        anew = forecaster.layout != self._forecaster.layout
        self._forecaster, self._patient = forecaster, FallbackForecaster(forecaster)
        if anew:
            self._states.clear()
        self._states.use_forecaster(forecaster)
        if anew and self._whole:
            self.rebuild()
        elif anew:
            self._forget()

    def states(self) -> Mapping[DeviceId, State]:
        """Return the present state of every device."""
        return self._states.copy_states()

    def rebuild(self, latest: Mapping[DeviceId, Reading] | None = None) -> int:
        """Read the state of every device from the store; return the number of devices.

        latest: the newest reading of each device, if the caller has read them already.
        """
        known = dict(self._store.latest_readings() if latest is None else latest)
        for left in self._residents.load(known, whole=True):
            self._store.forget_newest(left)
            del known[left]
        names = iter(known)
        while some := list(islice(names, REBUILT)):
            self._rebuild_devices(some, known)
        self._whole = True
        return len(self._states)

    def _rebuild_devices(self, devices: Collection[DeviceId], known: Mapping[DeviceId, Reading]) -> None:
        """Read the states of `devices` from their checkpoints and their later readings.

        known: the newest reading of each.
        """
        throughs = self._keep_checkpoints(devices)
        unreadable = dict[DeviceId, None]()
        for device, later in self._store.iterate_readings(
            {device: _find_next_time(throughs.get(device, EVER)) for device in devices}
        ):
            if device not in throughs:
                self._fold_history(device, None, later or (known[device],))
            elif not later:
                self._newest[device] = throughs[device]
            elif (state := self._states.get(device)) is not None:
                self._fold_history(device, state, later)
            else:
                unreadable[device] = None
        for device, history in self._store.iterate_readings(unreadable) if unreadable else ():
            self._fold_history(device, None, history or (known[device],))

    def _keep_checkpoints(self, devices: Collection[DeviceId]) -> dict[DeviceId, datetime]:
        """Remember the states in the checkpoints of `devices`; return the time of the last reading in each."""
        throughs: dict[DeviceId, datetime] = {}
        for device, checkpoint in self._store.checkpoints(devices).items():
            if checkpoint.layout != self._forecaster.layout:
                continue
            if not self._states.holds_whole(device):
                self._states.keep_packed(device, checkpoint.state)
            elif (state := self._forecaster.unpack(checkpoint.state)) is not None:
                self._states[device] = state
            else:
                continue
            throughs[device] = checkpoint.through
        return throughs

    def _fold_history(self, device: DeviceId, state: State | None, readings: Sequence[Reading]) -> None:
        """Remember the state of a device after `readings`, which were stored before; `state` is before them.

        Retention may have dropped all of a history but its newest reading, which is then the only one.
        """
        self._states[device] = self._forecaster.fold(state, readings)
        self._newest[device] = readings[-1].taken_at
        self._count({device: len(readings)})
        self._save_checkpoints()

    def step(self, limit: int = STEP) -> WorkerStepResult:
        """Process up to `limit` readings from the log: score their devices and commit.

        Raises what log and store raise; then nothing is committed and the next step starts over.
        """
        records, self._began = self._log.read(Topic.READINGS, GROUP, limit), self._clock.now()
        share = self._log.read_assignment_version(Topic.READINGS, GROUP)
        if share != self._share:
            self._forget()
            if self._latest:
                self._again()
            self._correct_announcements()
            self._share = share  # last, so that the next step repeats what fails
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
                DeadLetter.from_delivered(Topic.READINGS, judged[place][0], why, now)
                for place, why in routed.refused
            ]
            worked.append(self._take_new(routed.readings, taken))
            self._keep(routed)
            if routed.move is not None:
                worked.append(self._move(*routed.move, taken))
            judged = judged[routed.done :]
        self._log.append(
            Topic.DEAD_LETTERS, [Record(one.key, self._sender.encode_envelope(one)) for one in letters]
        )
        self._log.commit(Topic.READINGS, GROUP, records)
        came = max((reading.received_at for reading in taken), default=None)
        waited = max(timedelta(0), self._clock.now() - came) if came is not None else timedelta(0)
        done = sum_worked(worked)
        return replace(done, taken=len(records), dead=len(letters), waited=waited)

    def _take_new(self, readings: Sequence[Reading], taken: list[Reading]) -> WorkerStepResult:
        """Take readings, except those that came before: they are in the states, and the store has their outlooks.

        A reading that an import handed over is taken again: its device has a past that is in no state here.
        """
        first = dict[tuple[DeviceId, datetime], Reading]()
        for one in readings:
            first.setdefault((one.device, one.taken_at), one)
        known = [key for key in first if key[1] <= self._newest.get(key[0], EVER)]
        scored = self._store.find_outlook_keys(known) if known else frozenset()
        imported = (
            {device for device, _ in scored} & self._store.read_notes(HANDED_OVER).keys() if scored else ()
        )
        new = [one for key, one in first.items() if key not in scored or one.device in imported]
        result = self._take(new, taken)
        if imported:
            self._store.write_notes(HANDED_OVER, dict.fromkeys(imported))
        return result

    def _take(self, readings: Sequence[Reading], taken: list[Reading]) -> WorkerStepResult:
        """Store readings, score their devices, and announce the news. taken: all readings of this step so far."""
        if not readings:
            return WorkerStepResult()
        readings = self._hosts.mark_shared(readings)
        self._store.add_readings(readings)
        states, outlooks, days = self._score(readings)
        told = self._announce(outlooks)
        taken += readings
        self._latest = sorted(taken, key=lambda reading: reading.taken_at)
        self._store.save_outlooks(outlooks)
        self._states.update(states)
        for reading in readings:
            self._newest[reading.device] = max(reading.taken_at, self._newest.get(reading.device, EVER))
        self._fleet.update_newest(readings, outlooks)
        self._count(Counter(reading.device for reading in readings))
        if self._shadow is not None:
            self._shadow.record_forecasts(readings, outlooks, days)
        return WorkerStepResult(outlooks=len(outlooks), alerts=told)

    def _announce(self, outlooks: Sequence[Outlook]) -> int:
        """Announce those of `outlooks` that are news; return their number. The caller saves the outlooks after
        this.

        The order matters in a crash: once the store held the outlook, it would not count as news, and would never
        be announced.
        """
        news = self._announcements.select_news(outlooks)
        if not news:
            self._note_announced()
            return 0
        self._store.add_cluster_events([tell_alert(one) for one in news])
        # After the events, which are keyed: between this check and the announcement nothing waits for a
        # server.
        if self._clock.now() - self._began > STOOD_STILL:
            recall_announcements(self._log, self._announcements)
            news = self._announcements.select_news(outlooks)
        announced = [alert.outlook for alert in news]
        self._log.append(
            Topic.OUTLOOKS, [Record(one.device, self._sender.encode_envelope(one)) for one in announced]
        )
        self._announcements.remember_alerts(
            news
        )  # at once, so that nothing is announced again if the store fails now
        self._unnoted |= {one.device: one for one in announced}
        self._note_announced()
        return len(news)

    def _note_announced(self) -> None:
        if self._unnoted:
            write_announced(self._store, self._unnoted.values())
            self._unnoted = {}

    def _correct_announcements(self) -> None:
        """Announce the outlooks in the store that are graver than those that a frozen worker announced too late.

        This cannot be left to the frozen worker, which may have been killed since.
        """
        newest = self._store.latest_outlooks(self._announcements.list_announced_outlooks())
        self._announce(sorted(newest.values(), key=lambda outlook: outlook.as_of))

    def _keep(self, routed: RoutedReadings) -> None:
        """Remember the residences of disks, and end the separate histories whose claims are over."""
        over = set(routed.named)
        for device, residence in routed.residences.items():
            before = self._names_apart(device)
            if not (before or residence.claims):
                continue  # the usual case
            over |= before
            over -= {name_apart(device, host) for host in residence.hosts_apart}
        for name in over:
            self._store.forget_newest(name)
            self._forget_device(name)
        self._residents.keep_residences(routed.residences)
        self._fleet.update_residences(routed.residences)

    def _names_apart(self, device: DeviceId) -> set[DeviceId]:
        known = self._residents.find_residence(device)
        if known is None or not known.claims:
            return set()
        return {name_apart(device, host) for host in known.hosts_apart}

    def _move(self, device: DeviceId, verdict: ResidenceVerdict, taken: list[Reading]) -> WorkerStepResult:
        """Make another host a disk's home: it takes over the previous home's history, and the disk is judged
        again.

        Every part may be repeated: a crash before the end leaves the residence as it was, and so the move due.
        """
        before = self._residents.get_residence(device)
        after, came, concerned = self._residents.refile_readings(device, verdict)
        for name in concerned:
            self._forget_device(name)
        self._residents.keep_residences({device: after})
        self._fleet.update_residences({device: after})
        if verdict.by is SettledBy.PERSON:
            self._residents.clear_answer(device)
        if before.home == after.home:
            return WorkerStepResult(moved=1)
        self._fleet.update_newest(self._store.latest_readings([device]).values(), ())
        structlog.get_logger().info(
            "a disk lives in another host", device=device, host=after.home, before=before.home, by=verdict.by
        )
        if came:
            self._newest[device] = came[-1].taken_at  # so that the whole history is read
        return replace(self._take(came, taken), moved=1)

    def _forget_device(self, device: DeviceId) -> None:
        self._states.pop(device, None)
        self._newest.pop(device, None)
        self._unsaved.pop(device, None)
        self._fleet.forget(device)

    def find_family_survival(self, device: DeviceId) -> tuple[float, ...] | None:
        """Return the survival of the device's family at its age; None for a device without a reading."""
        state = self._states.get(device)
        return None if state is None else self._forecaster.compute_family_survival(state)

    def _forget(self) -> None:
        """Forget all states, since other workers may have read on from here."""
        self._states.clear()
        self._newest.clear()
        self._unsaved, self._behind = {}, 0
        self._whole = False
        self._residents.forget()
        self._unnoted = {}  # they may be older than the notes of a worker that had the devices meanwhile
        recall_announcements(self._log, self._announcements)
        recall_announced(self._store, self._announcements)

    def _again(self) -> None:
        """Judge the last step's drives again with the readings that the store has now.

        A worker that took them over may have had a late reading of theirs before our outlooks came.
        """
        _, outlooks, _ = self._score(self._latest)
        self._store.save_outlooks(outlooks)
        self._latest = ()
        self._states.clear()
        self._newest.clear()

    def _recover(self, new: Mapping[DeviceId, Sequence[Reading]]) -> None:
        """Recover the states of devices before their readings `new`, which are in the store already."""
        self._fleet.update_newest((), self._store.latest_outlooks(new).values())
        restored = self._restore_states(new)
        since = {device: _find_next_time(through) for device, (_, through) in restored.items()}
        for device, kept in self._store.iterate_readings(since):
            state, through = restored[device]
            first, times = new[device][0].taken_at, {reading.taken_at for reading in new[device]}
            others = [one for one in kept if one.taken_at not in times]
            if through < first:
                earlier = [one for one in others if one.taken_at < first]
                if earlier:
                    state = self._forecaster.fold(state, earlier)
                if state is not None:
                    self._states[device] = state
            self._newest[device] = max([through, *(one.taken_at for one in others)])

    def _restore_states(self, devices: Collection[DeviceId]) -> dict[DeviceId, tuple[State | None, datetime]]:
        """Return the state in each device's checkpoint and the time of its last reading."""
        checkpoints = self._store.checkpoints(devices)
        return {device: self._restored(checkpoints.get(device)) for device in devices}

    def _restored(self, checkpoint: Checkpoint | None) -> tuple[State | None, datetime]:
        """Return the state in a checkpoint and the time of its last reading; (None, EVER) if there is no usable
        one.
        """
        if checkpoint is None or checkpoint.layout != self._forecaster.layout:
            return None, EVER
        state = self._forecaster.unpack(checkpoint.state)
        return (None, EVER) if state is None else (state, checkpoint.through)

    def _count(self, behind: Mapping[DeviceId, int]) -> None:
        """Count readings that no checkpoint has yet."""
        for device, count in behind.items():
            if count:
                self._unsaved[device] = self._unsaved.get(device, 0) + count
                self._behind += count

    def _save_checkpoints(self) -> None:
        """Save the states of devices once many readings are in no checkpoint.

        Call it only after the log has confirmed that the devices are still ours. A late reading that another
        worker took meanwhile is in none of our states, and a checkpoint without it would go unnoticed.
        """
        if self._behind < CHECKPOINT_READINGS:
            return
        self._store.save_checkpoints(
            Checkpoint(device, self._forecaster.layout, self._newest[device], self._states.pack_state(device))
            for device in self._unsaved
            if device in self._states
        )
        self._unsaved, self._behind = {}, 0

    def _judge(
        self, records: Sequence[Delivered]
    ) -> tuple[list[tuple[Delivered, Reading]], list[DeadLetter]]:
        """Return the readings in the order of the log, and a dead letter with the reason for each undecodable
        record.
        """
        readings, letters, now = list[tuple[Delivered, Reading]](), list[DeadLetter](), self._clock.now()
        for record in records:
            try:
                readings.append((record, accept_reading(decode_log_record(record, Reading), now)))
            except Refusal as refusal:
                letters.append(DeadLetter.from_delivered(Topic.READINGS, record, refusal, now))
        return readings, letters

    def _score(
        self, readings: Sequence[Reading]
    ) -> tuple[dict[DeviceId, State], list[Outlook], Sequence[ScoredDay]]:
        """Return the states after `readings`, one outlook per reading, and the sequences that were scored
        together.

        The outlooks do not depend on how the readings were batched. A late or repeated reading makes its device
        be judged again from that reading on.
        """
        due: dict[DeviceId, list[Reading]] = defaultdict(list)
        for reading in readings:
            due[reading.device].append(reading)
        held = self._find_states(due)
        unknown = {
            device: new
            for device, new in due.items()
            if device not in self._newest or (device in self._states and device not in held)  # unreadable
        }
        if unknown:
            self._recover(unknown)
            held |= self._find_states(unknown)
        late = {
            device
            for device, new in due.items()
            if new[0].taken_at <= self._newest.get(device, EVER) or _has_repeated_times(new)
        }
        states = {device: state for device, state in held.items() if device not in late}
        for device, history in self._store.iterate_readings(dict.fromkeys(late)):
            earlier = [reading for reading in history if reading.taken_at < due[device][0].taken_at]
            due[device] = list(history[len(earlier) :])
            if earlier:
                states[device] = self._forecaster.fold(None, earlier)
        found: list[Outlook] = []
        last = {device: before for device, new in due.items() if (before := self._before(device, new[0]))}
        by_day: dict[date, list[Seen[State]]] = defaultdict(list)
        for device, new in due.items():
            for reading in new:
                states[device] = self._forecaster.fold(states.get(device), [reading])
                by_day[reading.taken_at.date()].append((reading, states[device]))
        days = [by_day[day] for day in sorted(by_day)]
        for seen in days:
            told = self._patient.compute_outlooks(seen, last)
            last.update((outlook.device, outlook) for outlook in told)
            found += told
        return states, sorted(found, key=lambda outlook: outlook.as_of), days

    def _find_states(self, devices: Iterable[DeviceId]) -> dict[DeviceId, State]:
        """Return the states of those of `devices` that have a readable one."""
        return {device: state for device in devices if (state := self._states.get(device)) is not None}

    def _before(self, device: DeviceId, reading: Reading) -> Outlook | None:
        """Return the device's outlook before `reading`; after a crash the store may hold later ones already."""
        known = self._fleet.outlook(device)
        if known is None or known.as_of < reading.taken_at:
            return known
        for since in (reading.taken_at - LOOK_BACK, None):  # the first lookup nearly always finds it
            for one in reversed(self._store.outlooks(device, since)):
                if one.as_of < reading.taken_at:
                    return one
        return None


def _find_next_time(through: datetime) -> datetime | None:
    """Return the first time after `through`; None for EVER."""
    return None if through == EVER else through + datetime.resolution


def _has_repeated_times(readings: Sequence[Reading]) -> bool:
    return any(later.taken_at <= earlier.taken_at for earlier, later in pairwise(readings))
