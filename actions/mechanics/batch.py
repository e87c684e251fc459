"""What a mechanic answers: the next few commands, or why there are none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from predrain.actions.cluster.port import Command, RemoveUpmap, Servers, SetUpmap
from predrain.actions.cluster.view import ClusterView, Pg
from predrain.actions.core.claimed_settings import Pairs, command_for
from predrain.actions.placement.failure_domains import comers
from predrain.data.ids import OsdId, PgId
from predrain.data.setting import Setting

_PLAIN_SHARD_ORDER = frozenset({"pacific", "quincy", "reef", "squid"})
"""Releases whose EC pools keep `osd pg-temp` in the order given. Tentacle's optimised pools reorder it (seen on 20.2.4:
[2, 1, 3] became acting [2, 3, 1], shards on the wrong OSDs), and the view does not tell which pools those are."""


@dataclass(frozen=True, slots=True)
class CommandBatch:
    """Commands to send now, the PGs whose mapping they change, and a word for the journal."""

    commands: tuple[Command, ...] = ()
    pgs: frozenset[PgId] = frozenset()
    decided: str = ""
    waits_for: str = ""
    """Why nothing is sent, when nothing is."""
    full: str = ""
    """Why nothing can be sent until somebody makes room, when that is so."""
    absent: str = ""
    """Why nothing can be sent until an OSD comes back or leaves the map, when that is so."""
    unpin: frozenset[PgId] = frozenset()
    """PGs whose pins must be given back before anything is sent."""
    outdated: bool = False
    """The plan no longer fits the map (a target filled, a set is no longer legal): plan anew."""


Bound = tuple[tuple[OsdId, int], ...]
"""OSDs that a PG's shards are sent to, each with the bytes."""


def back(was: Mapping[Setting, str], why: str = "") -> CommandBatch:
    """Settings given back as they were. `why` ends the sentence."""
    commands = tuple(command_for(key, value) for key, value in was.items())
    return CommandBatch(commands, decided=f"give back {', '.join(map(str, was))}{why}")


def bound_for(view: ClusterView, pg: Pg, want: tuple[int, ...]) -> Bound:
    """What each OSD takes in when the PG goes from its `up` to `want`."""
    new = comers(pg.up, want, ordered=view.pools[pg.pool].erasure)
    return tuple((OsdId(osd), pg.shard_bytes) for osd in new)


def pin(pg: PgId, pairs: Pairs, acting: tuple[int, ...] = ()) -> Command:
    """The command that makes `pairs` the PG's whole list; `acting` go on serving it meanwhile."""
    return SetUpmap(pg, pairs, acting) if pairs else RemoveUpmap(pg, acting)


def serving(view: ClusterView, pg: Pg, up: Sequence[int]) -> tuple[int, ...]:
    """Who serves on while data moves to `up`: all of the PG, where it is at rest, whole, each OSD up; else nobody."""
    members, pool = pg.acting, view.pools[pg.pool]
    if members != pg.up or len(set(members)) != pool.size:
        return ()
    if pool.erasure and view.release not in _PLAIN_SHARD_ORDER:
        return ()
    if not all((osd := view.osds.get(OsdId(member))) is not None and osd.up for member in members):
        return ()
    return members if pool.erasure else in_turn(members, up)


def list_servers(view: ClusterView, after: Mapping[PgId, tuple[int, ...]]) -> Servers:
    """Of PGs whose `up` a weight changes to `after`, those that are to be told who serves on, with their members."""
    told = ((id_, serving(view, view.pgs[id_], up)) for id_, up in sorted(after.items()))
    return tuple((id_, members) for id_, members in told if members)


def in_turn(members: Sequence[int], up: Sequence[int]) -> tuple[int, ...]:
    """Members of a replicated PG as their primary puts them while others of `up` are filled.

    In another order it would have the mon put them right, and the PG peer once more. First who leads now, unless that
    one goes and the first of `up` is a member; then who stays, as in `up`; then who goes
    (PeeringState::calc_replicated_acting).
    """
    led = members[0] in up or not {*up[:1]} & {*members}
    stays = [osd for osd in up if osd in members]
    return tuple(dict.fromkeys((*members[:1], *stays, *members) if led else (*stays, *members)))
