"""The answer of a mechanic: the next few commands, or the reason why there are none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from predrain.actions.cluster.cluster_port import Command, RemoveUpmap, Servers, SetUpmap
from predrain.actions.cluster.cluster_view import ClusterView, Pg
from predrain.actions.core.claimed_settings import Pairs, command_for
from predrain.actions.placement.failure_domains import list_incoming_osds
from predrain.data.ids import OsdId, PgId
from predrain.data.setting import Setting

_PLAIN_SHARD_ORDER = frozenset({"pacific", "quincy", "reef", "squid"})
"""Releases whose EC pools keep `osd pg-temp` in the given order. Tentacle's optimised pools reorder it (seen
on 20.2.4: [2, 1, 3] became acting [2, 3, 1], shards on the wrong OSDs), and the view does not show which
pools these are.
"""


@dataclass(frozen=True, slots=True)
class CommandBatch:
    """Commands to send now, the PGs whose mapping they change, and the words for the journal."""

    commands: tuple[Command, ...] = ()
    pgs: frozenset[PgId] = frozenset()
    decided: str = ""
    waits_for: str = ""
    """The reason why nothing is sent, if nothing is."""
    full: str = ""
    """The reason why nothing can be sent until a person frees capacity, if that is so."""
    absent: str = ""
    """The reason why nothing can be sent until an OSD comes back or leaves the map, if that is so."""
    restore_first: frozenset[PgId] = frozenset()
    """PGs whose upmap items must be given back before any other command."""
    outdated: bool = False
    """True if the plan no longer fits the map (a target filled up, or a set is no longer legal): plan again.
    """


Bound = tuple[tuple[OsdId, int], ...]
"""The OSDs that a PG's shards are sent to, each with the bytes."""


def build_restore_batch(was: Mapping[Setting, str], why: str = "") -> CommandBatch:
    """Return a batch that sets settings to their former values. `why` ends the sentence."""
    commands = tuple(command_for(key, value) for key, value in was.items())
    return CommandBatch(commands, decided=f"give back {', '.join(map(str, was))}{why}")


def bound_for(view: ClusterView, pg: Pg, want: tuple[int, ...]) -> Bound:
    """Return the bytes that each OSD receives when the PG goes from its `up` to `want`."""
    new = list_incoming_osds(pg.up, want, ordered=view.pools[pg.pool].erasure)
    return tuple((OsdId(osd), pg.shard_bytes) for osd in new)


def build_upmap_command(pg: PgId, pairs: Pairs, acting: tuple[int, ...] = ()) -> Command:
    """Return the command that makes `pairs` the PG's whole list; `acting` serve the PG meanwhile."""
    return SetUpmap(pg, pairs, acting) if pairs else RemoveUpmap(pg, acting)


def choose_pg_temp_members(view: ClusterView, pg: Pg, up: Sequence[int]) -> tuple[int, ...]:
    """Return the OSDs that go on serving while data moves to `up`.

    The result is all members of the PG if it is at rest and whole and each member is up. Otherwise it is
    empty.
    """
    members, pool = pg.acting, view.pools[pg.pool]
    if members != pg.up or len(set(members)) != pool.size:
        return ()
    if pool.erasure and view.release not in _PLAIN_SHARD_ORDER:
        return ()
    if not all((osd := view.osds.get(OsdId(member))) is not None and osd.up for member in members):
        return ()
    return members if pool.erasure else in_turn(members, up)


def list_servers(view: ClusterView, after: Mapping[PgId, tuple[int, ...]]) -> Servers:
    """Return, for PGs whose `up` a weight changes to `after`, the members that go on serving, where there are
    any.
    """
    told = ((id_, choose_pg_temp_members(view, view.pgs[id_], up)) for id_, up in sorted(after.items()))
    return tuple((id_, members) for id_, members in told if members)


def in_turn(members: Sequence[int], up: Sequence[int]) -> tuple[int, ...]:
    """Return the members of a replicated PG in the order that their primary gives them while others of `up`
    are filled.

    In any other order the primary would ask the mon to correct it, and the PG would peer once more. The
    present primary comes first, unless it leaves and the first of `up` is a member. Then come the members
    that stay, in the order of `up`, and then those that leave (PeeringState::calc_replicated_acting).
    """
    led = members[0] in up or not {*up[:1]} & {*members}
    stays = [osd for osd in up if osd in members]
    return tuple(dict.fromkeys((*members[:1], *stays, *members) if led else (*stays, *members)))
