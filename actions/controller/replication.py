"""Every drain is stored twice: in the store and in the cluster's config-key store, so that either suffices to go on.

A drain is written to the store first, then to the cluster, and only then is its command sent. Each has one name,
`drain/osd.N` after its first OSD. The name is removed when the drain ends, and a line in `ended` stays, so that a
store that was offline at the end does not resume the drain.

Progress alone is not copied, because it can be counted again on the map. So a store may be many revisions ahead of the
cluster's copy. If another controller has held the lease since, these revisions do not count, because no command is
sent before the cluster has accepted its drain.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime

from predrain.actions.cluster.cluster_port import ClusterUnreachable, ConfigKeyStore, DamagedConfigKey
from predrain.actions.controller.leadership import is_store_superseded
from predrain.actions.core.state_machine import ENDED, Event, apply_event, can_take_event
from predrain.data.drain import Drain, DrainState, Intent, JournalEntry
from predrain.data.setting import ValueBefore
from predrain.data.store.store_port import RevisionConflict, Store
from predrain.data.wire.strict_json import InvalidValue
from predrain.data.wire.wire_bodies import DRAIN

_NAMES = "drain/"
_ENDED = "ended"
_VERSION = "predrain-drain 1"
_ENDS_KEPT = 200


class CopyUnreadable(ClusterUnreachable):
    """A drain in the cluster that this version cannot read. Nothing may be done before a person has checked it."""


@dataclass(frozen=True, slots=True)
class _End:
    revision: int
    state: DrainState


@dataclass(slots=True)
class DrainReplication:
    """Saves drains in the store and, if there is one, in the config-key store. Not safe for two threads at once.

    unchallenged: returns whether no other controller has acted since this one did. It is called before each copy, so
    that a controller that was suspended does not overwrite its successor's copy. Raises ClusterUnreachable.
    """

    store: Store
    keep: ConfigKeyStore | None = None
    unchallenged: Callable[[], bool] = lambda: True
    recovered: bool = False
    """True once store and cluster hold the same drains, or there is no cluster to hold any."""
    _behind: dict[str, Drain] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.mark_unrecovered()

    def save(self, drain: Drain) -> bool:
        """Save a new revision. Return whether the cluster has it, too. Raises RevisionConflict, and nothing is saved
        then.
        """
        self.store.save_drain(drain)
        if self.keep is None:
            return True
        self._behind[drain.id] = drain
        try:
            self.catch_up()
        except ClusterUnreachable:
            return False
        return True

    def save_progress(self, drain: Drain, drains: Iterable[Drain]) -> None:
        """Save in the store alone the progress since `drains` were read. Raises RevisionConflict.

        A drain that stands still keeps the record of it until something moves, even if its pacing changes.
        """
        old = next((known for known in drains if known.id == drain.id), None)
        if old is not None and old.revision == drain.revision and old != drain:
            still = old.progress.movement_key == drain.progress.movement_key
            waits = still and drain.state in (DrainState.DRAINING, DrainState.CANCELLING)
            kept = drain if waits else replace(drain, held_by=(), held_osd=None)
            since = drain.held_since if still else None
            self.store.save_drain(replace(kept, revision=drain.revision + 1, held_since=since))

    def catch_up(self) -> None:
        """Copy the drains that could not be copied when they were saved. Raises ClusterUnreachable."""
        for drain in tuple(self._behind.values()):
            self._copy(drain)
            del self._behind[drain.id]

    def mark_unrecovered(self) -> None:
        """Note that another controller may have written to the cluster, so that `recover` must run again."""
        self.recovered = self.keep is None

    def recover(self, now: datetime, *, outranked: bool = False) -> None:
        """Bring store and cluster to one state. Raises ClusterUnreachable.

        The higher revision wins. If the store is outranked (`leadership.is_store_superseded`), the cluster's copy
        wins. Equal revisions that differ become FAILED, with every value to restore that either of them had. Each
        recovery is recorded in the journal.
        """
        ended = self._ends()
        stored = {drain.id: drain for drain in self.store.drains()}
        wanted = {name_of(drain) for drain in stored.values() if drain.state not in ENDED}
        kept = {drain.id: drain for drain in self._kept(wanted)}
        names = {name_of(drain) for drain in kept.values()} if outranked else set[str]()
        for id_ in sorted(kept.keys() | {drain.id for drain in stored.values() if drain.state not in ENDED}):
            if id_ not in kept and id_ not in ended and name_of(stored[id_]) in names:
                self._yield(stored[id_], now)
            else:
                self._reconcile(stored.get(id_), kept.get(id_), ended.get(id_), now, outranked)
        self._behind.clear()
        self.recovered = True

    def mirror(self, now: datetime) -> bool:
        """Copy into the store what the controller with the lease has written. Return whether anything was new.

        The cluster's own texts stay as they are. Raises ClusterUnreachable.
        """
        assert self.keep is not None
        outranks = is_store_superseded(self.store, self.keep)
        ends = self._ends()
        stored = {drain.id: drain for drain in self.store.drains()}
        kept = {drain.id: drain for drain in self._kept({name_of(drain) for drain in stored.values()})}
        if outranks:
            kept = {id_: _outrank_stored_drain(drain, stored.get(id_)) for id_, drain in kept.items()}
            ends = {id_: _outrank_stored_end(end, stored.get(id_)) for id_, end in ends.items()}
        newer = [drain for drain in kept.values() if drain.revision > _read_revision(stored.get(drain.id))]
        over = [
            _apply_end(drain, end, now)
            for id_, drain in stored.items()
            if (end := ends.get(id_)) is not None
            and _is_ended_elsewhere(drain, end)
            and end.revision > drain.revision
        ]
        for drain in (*newer, *over):
            with suppress(RevisionConflict):
                self.store.save_drain(drain)
        return bool(newer or over)

    def _reconcile(
        self, stored: Drain | None, copy: Drain | None, end: _End | None, now: datetime, outranked: bool
    ) -> None:
        kept = copy if copy is None or not outranked else _outrank_stored_drain(copy, stored)
        end = end if end is None or not outranked else _outrank_stored_end(end, stored)
        known = [drain for drain in (stored, kept) if drain is not None]
        newest = max(known, key=lambda drain: drain.revision)
        if end is not None and _is_ended_elsewhere(newest, end):
            newest = _apply_end(newest, end, now)
            self._say(newest, now, f"{end.state.value} at revision {end.revision} by another controller")
        elif stored is not None and kept is not None and stored.revision == kept.revision and stored != kept:
            newest = _merge_conflicting_drains(stored, kept, now)
            self._say(newest, now, "store and cluster hold different drains of the same revision")
        elif kept is None:
            self._say(newest, now, "the cluster had no copy; it was written again from the store")
        elif stored is None:
            self._say(
                newest, now, f"recovered from the cluster at revision {kept.revision}; the store had none"
            )
        elif kept.revision > stored.revision:
            what = f"revision {kept.revision} recovered from the cluster; the store had {stored.revision}"
            self._say(newest, now, what)
        if newest != stored:
            self.store.save_drain(newest)
        if newest != copy:
            self._copy(newest)

    def _yield(self, stored: Drain, now: datetime) -> None:
        """End a drain that the cluster never accepted and in place of which it now has another drain of
        the same OSD.
        """
        why = "the cluster never had it, and has another drain of the OSD, by another controller"
        self._say(stored, now, why)
        self.store.save_drain(_apply_end(stored, _End(stored.revision + 1, DrainState.CANCELLED), now))

    def _say(self, drain: Drain, now: datetime, what: str) -> None:
        self.store.add_journal(
            [JournalEntry(drain.id, now, what, "recover", cluster=self.store.get_cluster())]
        )

    def _copy(self, drain: Drain) -> None:
        assert self.keep is not None
        if not self.unchallenged():
            raise ClusterUnreachable("another controller acted since")
        if drain.state not in ENDED:
            self.keep.write(name_of(drain), encode_drain_copy(drain))
            return
        ends = {**self._ends(), drain.id: _End(drain.revision, drain.state)}
        lines = [f"{id_} {end.revision} {end.state.value}" for id_, end in ends.items()]
        self.keep.write(_ENDED, "\n".join(lines[-_ENDS_KEPT:]))
        standing = self.keep.read(name_of(drain))
        if standing is not None and decode_drain_copy(name_of(drain), standing).id == drain.id:
            self.keep.remove(name_of(drain))

    def _kept(self, rewritable: set[str]) -> tuple[Drain, ...]:
        """Return every drain in the cluster. A damaged one counts as absent if the store has it."""
        assert self.keep is not None
        found: list[Drain] = []
        for name in list_drain_names(self.keep):
            try:
                text = self.keep.read(name)
            except DamagedConfigKey:
                if name in rewritable:
                    continue
                raise
            if text is not None:
                found.append(decode_drain_copy(name, text))
        return tuple(found)

    def _ends(self) -> Mapping[str, _End]:
        assert self.keep is not None
        ends: dict[str, _End] = {}
        for line in (self.keep.read(_ENDED) or "").splitlines():
            words = line.split(" ")
            if (
                len(words) == 3
                and words[1].isdecimal()
                and words[2] in (DrainState.CANCELLED, DrainState.HANDED_OVER)
            ):
                ends[words[0]] = _End(int(words[1]), DrainState(words[2]))
        return ends


def _outrank_stored_drain(kept: Drain, stored: Drain | None) -> Drain:
    """Return the cluster's copy with a revision above the stored one; unchanged if they differ only in the revision."""
    if stored is None or replace(kept, revision=stored.revision) == stored:
        return kept
    return replace(kept, revision=max(kept.revision, stored.revision + 1))


def _outrank_stored_end(end: _End, stored: Drain | None) -> _End:
    """Return the end with a revision above that of the stored drain, because no state follows an end."""
    return end if stored is None else replace(end, revision=max(end.revision, stored.revision + 1))


def _is_ended_elsewhere(drain: Drain, end: _End) -> bool:
    return drain.state not in ENDED and end.revision >= drain.revision


def _apply_end(drain: Drain, end: _End, now: datetime) -> Drain:
    """Return the drain as another controller ended it."""
    return replace(
        drain,
        state=end.state,
        revision=end.revision,
        updated_at=now,
        held_by=(),
        held_osd=None,
        ours={},
        ended_why="ended by another controller",
    )


def _read_revision(drain: Drain | None) -> int:
    return -1 if drain is None else drain.revision


def list_drain_names(keep: ConfigKeyStore) -> tuple[str, ...]:
    """Return the names of all drains in the config-key store, also of unverified ones. Raises ClusterUnreachable."""
    return keep.names(_NAMES)


def name_of(drain: Drain) -> str:
    """Return the name of a drain in the config-key store."""
    kind = ".quarantine" if drain.intent is Intent.QUARANTINE else ""
    return f"{_NAMES}osd.{drain.osds[0]}{kind}"


def encode_drain_copy(drain: Drain) -> str:
    """Encode a drain as text, headed by the version of the form."""
    return f"{_VERSION}\n{DRAIN.write(drain).decode()}"


def decode_drain_copy(name: str, text: str) -> Drain:
    """Decode a text of `encode_drain_copy`. Raises CopyUnreadable."""
    version, _, body = text.partition("\n")
    if version != _VERSION:
        raise CopyUnreadable(
            f"the cluster's copy of {name} is headed '{version[:40]}' and this version reads '{_VERSION}'; update "
            f"predrain, or look at it with `ceph config-key get predrain/{name}`"
        )
    try:
        return DRAIN.read(body.encode())
    except InvalidValue as error:
        raise CopyUnreadable(
            f"the cluster's copy of {name} cannot be read ({error}); look at it with "
            f"`ceph config-key get predrain/{name}` and remove it if it is nobody's"
        ) from error


def _merge_conflicting_drains(stored: Drain, kept: Drain, now: datetime) -> Drain:
    """Merge two drains into one that needs a person and has every value to restore that either of them had."""
    base, other = (kept, stored) if stored.state in ENDED else (stored, kept)
    ours = {**other.ours, **base.ours}
    for key, value in other.ours.items():
        if not isinstance(key, ValueBefore) and base.ours.get(key, value) != value:
            ours.setdefault(ValueBefore(key), value)
    both = replace(base, saved={**other.saved, **base.saved}, ours=ours)
    why = (
        f"Store and cluster hold different drains {base.id} of revision {base.revision} "
        f"({stored.state.value} and {kept.state.value}); two controllers may have been at work. See what is right, "
        "then resume or cancel."
    )
    if can_take_event(both, Event.BREAK):
        return apply_event(both, Event.BREAK, now, why=why)
    stopped = (
        apply_event(both, Event.PAUSE, now)
        if can_take_event(both, Event.PAUSE)
        else replace(both, revision=both.revision + 1)
    )
    return replace(stopped, held_by=(why,), held_for=(), held_osd=None, updated_at=now)
