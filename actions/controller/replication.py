"""Every drain twice: in the store and in the cluster's own keys, so that either suffices to go on.

The store comes first, then the cluster, then the command that the drain speaks of. One name a drain, `drain/osd.N`
after its first OSD; it goes when the drain ends, and a line in `ended` stays, so that a store that slept through the
end does not take the drain up again. Progress alone is not copied: it is counted anew on the map. So a store may be
many revisions ahead of the cluster's copy; where another controller has led since, they count for nothing, for no
command is sent whose drain the cluster has not taken.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime

from predrain.actions.cluster.port import ClusterUnreachable, Damaged, Keep
from predrain.actions.controller.leadership import superseded
from predrain.actions.core.state_machine import ENDED, Event, after, can
from predrain.data.drain import Drain, DrainState, Intent, JournalEntry
from predrain.data.setting import Before
from predrain.data.store.port import RevisionConflict, Store
from predrain.data.wire.bodies import DRAIN
from predrain.data.wire.shape import Misshapen

_NAMES = "drain/"
_ENDED = "ended"
_VERSION = "predrain-drain 1"
_ENDS_KEPT = 200


class CopyUnreadable(ClusterUnreachable):
    """A drain in the cluster that this version cannot read; nothing may be done before a person has looked."""


@dataclass(frozen=True, slots=True)
class _End:
    revision: int
    state: DrainState


@dataclass(slots=True)
class Copies:
    """Saves drains in the store and, where there is one, in the keep. Not for two threads at once.

    unchallenged: whether nobody else has led since we did; asked before each copy, so that a controller that was
    stopped does not write its copy over its successor's. Raises ClusterUnreachable.
    """

    store: Store
    keep: Keep | None = None
    unchallenged: Callable[[], bool] = lambda: True
    _recovered: bool = False
    _behind: dict[str, Drain] = field(default_factory=dict)

    def save(self, drain: Drain) -> bool:
        """Save a new revision; whether the cluster has it, too. Raises RevisionConflict, and then saved nothing."""
        self.store.save_drain(drain)
        if self.keep is None:
            return True
        self._behind[drain.id] = drain
        try:
            self.catch_up()
        except ClusterUnreachable:
            return False
        return True

    def progressed(self, drain: Drain, drains: Iterable[Drain]) -> None:
        """Save what was counted since `drains` were read, in the store alone. Raises RevisionConflict. What stands
        still says so until something moves, however pacing goes on.
        """
        old = next((known for known in drains if known.id == drain.id), None)
        if old is not None and old.revision == drain.revision and old != drain:
            still = old.progress.counted == drain.progress.counted
            waits = still and drain.state in (DrainState.DRAINING, DrainState.CANCELLING)
            held_by, since = drain.held_by if waits else (), drain.held_since if still else None
            self.store.save_drain(
                replace(drain, revision=drain.revision + 1, held_by=held_by, held_since=since)
            )

    def catch_up(self) -> None:
        """Copy what could not be copied when it was saved. Raises ClusterUnreachable."""
        for drain in tuple(self._behind.values()):
            self._copy(drain)
            del self._behind[drain.id]

    def forget(self) -> None:
        """Another controller may have written meanwhile: `recover` must look again."""
        self._recovered = False

    def recover(self, now: datetime, *, outranked: bool = False) -> None:
        """Bring store and cluster to one state, once. Raises ClusterUnreachable.

        The higher revision wins; where the store is outranked (`leading.superseded`), the cluster's copy. Equal
        revisions that differ become FAILED, with what both knew to put back. What was recovered is journalled.
        """
        if self._recovered or self.keep is None:
            return
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
        self._recovered = True

    def mirror(self, now: datetime) -> bool:
        """Take over into the store what the controller that leads has written; whether anything was new.

        The cluster's own texts stay as they are. Raises ClusterUnreachable.
        """
        assert self.keep is not None
        outranks = superseded(self.store, self.keep)
        ends = self._ends()
        stored = {drain.id: drain for drain in self.store.drains()}
        kept = {drain.id: drain for drain in self._kept({name_of(drain) for drain in stored.values()})}
        if outranks:
            kept = {id_: _outranking(drain, stored.get(id_)) for id_, drain in kept.items()}
            ends = {id_: _last(end, stored.get(id_)) for id_, end in ends.items()}
        newer = [drain for drain in kept.values() if drain.revision > _revision(stored.get(drain.id))]
        over = [
            _ended(drain, end, now)
            for id_, drain in stored.items()
            if (end := ends.get(id_)) is not None and _over(drain, end) and end.revision > drain.revision
        ]
        for drain in (*newer, *over):
            with suppress(RevisionConflict):
                self.store.save_drain(drain)
        return bool(newer or over)

    def _reconcile(
        self, stored: Drain | None, copy: Drain | None, end: _End | None, now: datetime, outranked: bool
    ) -> None:
        kept = copy if copy is None or not outranked else _outranking(copy, stored)
        end = end if end is None or not outranked else _last(end, stored)
        known = [drain for drain in (stored, kept) if drain is not None]
        newest = max(known, key=lambda drain: drain.revision)
        if end is not None and _over(newest, end):
            newest = _ended(newest, end, now)
            self._say(newest, now, f"{end.state.value} at revision {end.revision} by another controller")
        elif stored is not None and kept is not None and stored.revision == kept.revision and stored != kept:
            newest = _broken(stored, kept, now)
            self._say(newest, now, "store and cluster hold different drains of the same revision")
        elif kept is None:
            self._say(newest, now, "the cluster had no copy; it was written anew from the store")
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
        """The cluster never took this drain, and by now has another one of the OSD."""
        why = "the cluster never had it, and has another drain of the OSD, by another controller"
        self._say(stored, now, why)
        self.store.save_drain(_ended(stored, _End(stored.revision + 1, DrainState.CANCELLED), now))

    def _say(self, drain: Drain, now: datetime, what: str) -> None:
        self.store.add_journal([JournalEntry(drain.id, now, what, "recover")])

    def _copy(self, drain: Drain) -> None:
        assert self.keep is not None
        if not self.unchallenged():
            raise ClusterUnreachable("another controller acted since")
        if drain.state not in ENDED:
            self.keep.write(name_of(drain), written(drain))
            return
        ends = {**self._ends(), drain.id: _End(drain.revision, drain.state)}
        lines = [f"{id_} {end.revision} {end.state.value}" for id_, end in ends.items()]
        self.keep.write(_ENDED, "\n".join(lines[-_ENDS_KEPT:]))
        standing = self.keep.read(name_of(drain))
        if standing is not None and read(name_of(drain), standing).id == drain.id:
            self.keep.remove(name_of(drain))

    def _kept(self, rewritable: set[str]) -> tuple[Drain, ...]:
        """Every drain in the cluster; a damaged one counts as absent where the store has it."""
        assert self.keep is not None
        found: list[Drain] = []
        for name in self.keep.names():
            if not name.startswith(_NAMES):
                continue
            try:
                text = self.keep.read(name)
            except Damaged:
                if name in rewritable:
                    continue
                raise
            if text is not None:
                found.append(read(name, text))
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


def _outranking(kept: Drain, stored: Drain | None) -> Drain:
    """The cluster's copy as it follows what the store has; unchanged where they differ in nothing but revision."""
    if stored is None or replace(kept, revision=stored.revision) == stored:
        return kept
    return replace(kept, revision=max(kept.revision, stored.revision + 1))


def _last(end: _End, stored: Drain | None) -> _End:
    """An end that follows what the store has: nothing leads on from an end."""
    return end if stored is None else replace(end, revision=max(end.revision, stored.revision + 1))


def _over(drain: Drain, end: _End) -> bool:
    return drain.state not in ENDED and end.revision >= drain.revision


def _ended(drain: Drain, end: _End, now: datetime) -> Drain:
    """A drain that another controller brought to its end."""
    return replace(
        drain,
        state=end.state,
        revision=end.revision,
        updated_at=now,
        held_by=(),
        ours={},
        ended_why="ended by another controller",
    )


def _revision(drain: Drain | None) -> int:
    return -1 if drain is None else drain.revision


def name_of(drain: Drain) -> str:
    """Where the cluster keeps a drain."""
    kind = ".quarantine" if drain.intent is Intent.QUARANTINE else ""
    return f"{_NAMES}osd.{drain.osds[0]}{kind}"


def written(drain: Drain) -> str:
    """A drain as text, headed by its version."""
    return f"{_VERSION}\n{DRAIN.write(drain).decode()}"


def read(name: str, text: str) -> Drain:
    """The inverse of `written`. Raises CopyUnreadable."""
    version, _, body = text.partition("\n")
    if version != _VERSION:
        raise CopyUnreadable(
            f"the cluster's copy of {name} is headed '{version[:40]}' and this version reads '{_VERSION}'; update "
            f"predrain, or look at it with `ceph config-key get predrain/{name}`"
        )
    try:
        return DRAIN.read(body.encode())
    except Misshapen as error:
        raise CopyUnreadable(
            f"the cluster's copy of {name} cannot be read ({error}); look at it with "
            f"`ceph config-key get predrain/{name}` and remove it if it is nobody's"
        ) from error


def _broken(stored: Drain, kept: Drain, now: datetime) -> Drain:
    """One drain of two: it needs a person, and knows everything that either would put back."""
    base, other = (kept, stored) if stored.state in ENDED else (stored, kept)
    ours = {**other.ours, **base.ours}
    for key, value in other.ours.items():
        if not isinstance(key, Before) and base.ours.get(key, value) != value:
            ours.setdefault(Before(key), value)
    both = replace(base, saved={**other.saved, **base.saved}, ours=ours)
    why = (
        f"Store and cluster hold different drains {base.id} of revision {base.revision} "
        f"({stored.state.value} and {kept.state.value}); two controllers may have been at work. See what is right, "
        "then resume or cancel."
    )
    if can(both, Event.BREAK):
        return after(both, Event.BREAK, now, why=why)
    stopped = (
        after(both, Event.PAUSE, now) if can(both, Event.PAUSE) else replace(both, revision=both.revision + 1)
    )
    return replace(stopped, held_by=(why,), updated_at=now)
