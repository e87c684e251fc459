"""What a mechanic answers: the next few commands, or why there are none."""

from __future__ import annotations

from dataclasses import dataclass

from actions.cluster.port import Command, RemoveUpmap, SetUpmap
from actions.ledger import Pairs
from data.ids import PgId


@dataclass(frozen=True, slots=True)
class Batch:
    """Commands to send now, the PGs whose mapping they change, and a word for the journal."""

    commands: tuple[Command, ...] = ()
    pgs: frozenset[PgId] = frozenset()
    decided: str = ""
    waits_for: str = ""
    """Why nothing is sent, when nothing is."""
    outdated: bool = False
    """The plan no longer fits the map (a target filled, a set is no longer legal): plan anew."""


def pin(pg: PgId, pairs: Pairs) -> Command:
    """The command that makes `pairs` the PG's whole list."""
    return SetUpmap(pg, pairs) if pairs else RemoveUpmap(pg)
