"""Checkers that stand outside the engine: they sit between it and the simulated cluster and read what
really is.

Nothing here asks the engine what it thinks: bytes, members and `up` sets are the simulator's own, and a budget is
counted by what each command did to the map. An override may affect PGs that upmap items of the same step then keep in
place. The places of these PGs are judged when the step is done, unless a halt or a lost answer cut the step short.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from predrain.actions.cluster.cluster_port import (
    ClusterUnreachable,
    Command,
    CommandResult,
    RemoveUpmap,
    SetFlag,
    SetOption,
    SetUpmap,
)
from predrain.actions.cluster.cluster_view import ClusterView
from predrain.actions.core.claimed_settings import FAST_MAPS, key_of, read_setting_value, value_of
from predrain.actions.core.drain_policy import Policy
from predrain.actions.crush.crush_map import ITEM_NONE
from predrain.actions.crush.pool import Pool
from predrain.actions.simulator import SimulatedCluster
from predrain.data.drain import Drain, DrainState, Intent
from predrain.data.ids import OsdId, PgId

_MOVING = (DrainState.PREPARING, DrainState.DRAINING, DrainState.HOLDING)
_TOLD = (DrainState.APPROVED, *_MOVING, DrainState.CANCELLING)


class UnsafeStep(AssertionError):
    """The engine did what it must never do."""


@dataclass
class Watched:
    """A cluster whose every command is judged by what it does to the truth.

    halted, drains: what the store says now. after_command: called when a command has been carried out, so that a
    schedule can say halt between two commands of one step.
    """

    cluster: SimulatedCluster
    policy: Policy
    halted: Callable[[], bool]
    drains: Callable[[], tuple[Drain, ...]]
    after_command: Callable[[], None] = lambda: None
    commands: list[Command] = field(default_factory=list)
    _seen: ClusterView | None = None
    _changed_pgs: dict[PgId, datetime] = field(default_factory=dict)
    _sent: set[PgId] = field(default_factory=set)
    _others: set[PgId] = field(default_factory=set)
    """PGs that were on their way before a command of ours changed them."""
    _members: dict[PgId, tuple[int, ...]] = field(default_factory=dict)
    _crowded: dict[int, tuple[Command, int]] = field(default_factory=dict)
    _changes: list[tuple[Command, Mapping[PgId, tuple[int, ...]]]] = field(default_factory=list)
    _cut_short: bool = False
    _intervals: set[str] = field(default_factory=set)
    """The monitors' interval as each command of ours found it."""

    def __post_init__(self) -> None:
        self._size = {int(osd.id): osd.size_bytes for osd in self.cluster.spec.osds}
        self._host = {int(osd.id): osd.host for osd in self.cluster.spec.osds}
        self._rack = {int(osd.id): osd.rack for osd in self.cluster.spec.osds}
        self._slowest_peering = timedelta(seconds=self.cluster.spec.physics.asking_peering_seconds[1])
        self._remember()

    # ---- the port

    def view(self) -> ClusterView:
        """The port's look; a new look begins a new tick."""
        young = self.cluster.now - self._slowest_peering
        self._changed_pgs = {pg: at for pg, at in self._changed_pgs.items() if at > young}
        on_way = self._on_way()
        self._sent, self._others = self._sent & on_way, self._others & on_way
        self._seen = self.cluster.view()
        return self._seen

    def apply(self, command: Command) -> CommandResult:
        """Send the command, and compare what was with what is."""
        if self.halted() and not self._gives_back(command):
            raise UnsafeStep(f"{command} was sent while everything is halted")
        before = {id_: (pg.copies, pg.up) for id_, pg in self.cluster.life.truth.items()}
        promised = self._promised()
        ours = self._sent.union(*(changed for _, changed in self._changes))
        self._others |= self._on_way() - ours
        if key_of(command) == FAST_MAPS and self._seen is not None:
            self._intervals.add(read_setting_value(self._seen, FAST_MAPS))
        self.commands.append(command)
        try:
            answer = self.cluster.apply(command)
        except ClusterUnreachable:
            self._cut_short = True
            raise
        finally:
            self._judge(command, before, promised)
        self.after_command()
        self._cut_short = self._cut_short or self.halted() or not answer.ok
        return answer

    def cut_short(self) -> None:
        """The process died within a step: what the rest of the step would have mended is not judged."""
        self._cut_short = True

    # ---- one command

    def _gives_back(self, command: Command) -> bool:
        """Return whether the command is allowed under a halt: whether it clears a flag that was set through this
        cluster and stands, or restores fast maps as they were found.
        """
        if isinstance(command, SetOption) and key_of(command) == FAST_MAPS:
            return value_of(command) in self._intervals
        flags = [known for known in self.commands if isinstance(known, SetFlag)]
        last = {flag.flag: flag.on for flag in flags}
        return isinstance(command, SetFlag) and not command.on and last.get(command.flag, False)

    def _judge(
        self,
        command: Command,
        before: Mapping[PgId, tuple[int, tuple[int, ...]]],
        promised: Mapping[int, int],
    ) -> None:
        truth = self.cluster.life.truth
        changed = {id_: up for id_, (_, up) in before.items() if truth[id_].up != up}
        for id_, (copies, _) in before.items():
            if truth[id_].copies < copies:
                raise UnsafeStep(f"{command}: PG {id_} had {copies} copies and has {truth[id_].copies}")
        for id_ in changed:
            self._judge_touch(command, id_, before[id_][0])
        if changed:
            self._judge_peering(command, changed)
            self._judge_share(command, changed)
            self._judge_room(command, promised, changed)
            self._changes.append((command, changed))
            if isinstance(command, SetUpmap | RemoveUpmap):
                self._judge_places(command, changed)

    def _judge_places(self, command: Command, changed: Mapping[PgId, tuple[int, ...]]) -> None:
        """No `up` is worse than it was, and no further PG is sent on its way beyond what the policy allows."""
        for id_, up in changed.items():
            pg = self.cluster.life.truth[id_]
            now = pg.up
            if self._spread(pg.pool, now) < self._spread(pg.pool, up):
                raise UnsafeStep(f"{command}: PG {id_} up {up} became {now}, which survives fewer losses")
        # A PG that was sent before, by a step that a kill cut short, may change its primary while it is on its way.
        sent = self._sent
        self._count_sent(changed)
        if self._sent - sent and len(self._sent) > self.policy.in_flight_max:
            raise UnsafeStep(
                f"{command}: {len(self._sent)} PGs on their way by us, limit {self.policy.in_flight_max}"
            )

    def _count_sent(self, changed: Mapping[PgId, tuple[int, ...]]) -> None:
        self._sent = (self._sent | (changed.keys() - self._others)) & self._on_way()

    def _on_way(self) -> set[PgId]:
        return {pg.id for pg in self.cluster.life.pgs.values() if pg.list_missing()}

    def _judge_touch(self, command: Command, id_: PgId, copies: int) -> None:
        """A PG that was seen to be short of copies is left alone."""
        pg = self.cluster.life.truth[id_]
        seen = self._seen.pgs.get(id_) if self._seen else None
        if seen is None or self._seen is None:
            raise UnsafeStep(f"{command}: PG {id_} was moved unseen")
        serving = {osd for osd in seen.acting if osd in self._seen.osds and self._seen.osds[OsdId(osd)].up}
        if copies < pg.pool.size and len(serving) < pg.pool.size:
            raise UnsafeStep(f"{command}: PG {id_} has {copies} copies, shows it, and is moved all the same")

    def _spread(self, pool: Pool, up: tuple[int, ...]) -> tuple[int, ...]:
        """How few members the loss of a rack takes, where the pool's rule chooses racks; then hosts and OSDs."""
        live = {osd for osd in up if osd != ITEM_NONE}
        steps = self.cluster.osdmap.crush.rules[pool.rule].steps
        by_rack = any(step.type == "rack" for step in steps)
        racks = (-max(Counter(self._rack[osd] for osd in live).values(), default=0),) if by_rack else ()
        return *racks, len({self._host[osd] for osd in live}), len(live)

    def _judge_peering(self, command: Command, changed: Mapping[PgId, tuple[int, ...]]) -> None:
        self._changed_pgs.update(dict.fromkeys(changed, self.cluster.now))
        if len(self._changed_pgs) > self.policy.peering_max:
            raise UnsafeStep(f"{command}: {len(self._changed_pgs)} PGs peer, limit {self.policy.peering_max}")

    def _judge_share(self, command: Command, changed: Mapping[PgId, tuple[int, ...]]) -> None:
        """Check the number of OSDs that are out or draining, for each drain that wrote this command and whose disk
        loses PGs by it. Only this drain and older ones count as draining. A drain may move a shard of another drain's
        disk together with its own, where the failure domains need both.
        """
        out = {osd for osd, weight in self.cluster.osdmap.reweights.items() if weight == 0}
        most = max(1, int(self.policy.out_share_max * len(self._host)))
        moving = sorted((d for d in self.drains() if _moves(d)), key=lambda d: (d.created_at, d.id))
        ahead: set[int] = set()
        for drain in moving:
            mine = set(drain.osds)
            ahead |= mine
            wrote = key_of(command) in drain.ours
            if wrote and any(mine & (set(up) - self._up(id_)) for id_, up in changed.items()):
                gone = out | ahead
                if len(gone) > most and gone - mine:
                    raise UnsafeStep(f"{command}: {len(gone)} OSDs out or draining, limit {most}")

    def _up(self, id_: PgId) -> set[int]:
        return set(self.cluster.life.truth[id_].up)

    def _judge_room(
        self, command: Command, promised: Mapping[int, int], changed: Mapping[PgId, tuple[int, ...]]
    ) -> None:
        """Check that no OSD gets more data than its limit allows, and that the cluster stays below nearfull without the
        OSDs that drain.
        """
        spec = self.cluster.spec
        after = self._promised()
        for osd in after:
            if after[osd] > promised[osd] and self._is_crowded(osd, after):
                self._crowded.setdefault(osd, (command, promised[osd]))
                if isinstance(command, SetUpmap):
                    self._judge_crowded({osd: (command, promised[osd])})
        leaving = {int(osd) for drain in self.drains() if _moves(drain) for osd in drain.osds}
        if not any(leaving & (set(up) - self._up(id_)) for id_, up in changed.items()):
            return
        stay = sum(
            self._size[osd]
            for osd, weight in self.cluster.osdmap.reweights.items()
            if weight and osd in self.cluster.osdmap.up and osd not in leaving
        )
        data = sum(pg.shard_bytes * pg.pool.size for pg in self.cluster.life.pgs.values())
        if data > spec.nearfull_ratio * stay:
            raise UnsafeStep(f"{command}: the cluster would be {data / stay:.1%} full without what drains")

    def _is_crowded(self, osd: int, promised: Mapping[int, int]) -> bool:
        spec = self.cluster.spec
        limit = min(spec.nearfull_ratio, spec.backfillfull_ratio - self.policy.backfillfull_margin)
        return promised[osd] > limit * self._size[osd]

    def _judge_crowded(self, crowded: Mapping[int, tuple[Command, int]]) -> None:
        """Check that OSDs over their limit have room again. The data of an upmap item must fit at once; the PGs that an
        override affects may be mapped elsewhere by upmap items of the same step.
        """
        promised = self._promised()
        for osd, (command, held) in crowded.items():
            if promised[osd] > held and self._is_crowded(osd, promised) and not self._cut_short:
                fill = promised[osd] / self._size[osd]
                raise UnsafeStep(f"{command}: osd.{osd} would be {fill:.1%} full, and that is over its limit")

    def _promised(self) -> dict[int, int]:
        """Bytes on each OSD once everything that is on its way to it has arrived, and nothing has left."""
        truth = self.cluster.truth()
        holds = {int(osd): used + truth.deleting_bytes[osd] for osd, used in truth.used_bytes.items()}
        for pg in self.cluster.life.pgs.values():
            for place, osd in pg.list_missing():
                if (place, osd) not in pg.partial:
                    holds[osd] += pg.shard_bytes
        return holds

    # ---- between ticks

    def check_between(self) -> None:
        """After every tick: no copy is gone but by a fault, and no more drains than the policy allows."""
        self._check_copies()
        self._judge_crowded(self._crowded)
        for command, changed in self._changes:
            if self._cut_short:
                self._count_sent(changed)
            else:
                self._judge_places(command, changed)
        self._crowded, self._changes, self._cut_short = {}, [], False
        drains = [drain for drain in self.drains() if _moves(drain)]
        for what, most, where in (
            ("host", self.policy.drains_per_host, self._host),
            ("rack", self.policy.drains_per_rack, self._rack),
            ("cluster", self.policy.drains_per_cluster, dict.fromkeys(self._host, "it")),
        ):
            tally = Counter(where[drain.osds[0]] for drain in drains)
            tally.pop(None, None)
            if tally and max(tally.values()) > most:
                raise UnsafeStep(f"{max(tally.values())} drains in one {what}, limit {most}")

    def _check_copies(self) -> None:
        up = self.cluster.osdmap.up
        for pg in self.cluster.life.pgs.values():
            if pg.id not in self._members:
                continue  # split from another one since
            now = self.cluster.life.truth[pg.id]
            before = self._members[pg.id]
            was, held = ([osd for osd in members if osd != ITEM_NONE] for members in (before, now.members))
            if len(held) >= min(len(was), now.pool.size):
                continue  # also where two shards lie on one OSD for a while, after a fault that left CRUSH no other
            if (
                pg.pool.erasure
            ):  # each shard that is gone was on an OSD that is down or behind, or is on such a one
                shards = zip(before, pg.holders, now.members, strict=True)
                suspects = [
                    {one, *holders} - {ITEM_NONE}
                    for one, holders, member in shards
                    if one != member == ITEM_NONE
                ]
            else:
                # A copy that was filled within this tick has taken the place of another one, and may be down already.
                suspects = [{*was, *pg.holders[0]} - set(held)]
            if not all(any(osd not in up or osd in pg.behind for osd in osds) for osds in suspects):
                raise UnsafeStep(f"PG {pg.id} had {len(was)} copies and has {len(held)}; no fault took them")
        self._remember()

    def _remember(self) -> None:
        self._members = {id_: pg.members for id_, pg in self.cluster.life.truth.items()}

    def check_halted(self, commands: int) -> None:
        """After a tick that began under a halt: nothing was sent, and every drain under way says why it stands."""
        if commands:
            raise UnsafeStep(f"{commands} commands in a tick that began halted")
        for drain in self.drains():
            if drain.state in _TOLD and not any("Halted" in sentence for sentence in drain.held_by):
                raise UnsafeStep(f"{drain.id} is {drain.state.value} under a halt and does not say so")


def _moves(drain: Drain) -> bool:
    """Under way, and of the kind that moves data."""
    return drain.state in _MOVING and drain.intent is not Intent.QUARANTINE
