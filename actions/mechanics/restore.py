"""The way back: everything that a drain set becomes what it found, in the order weights, upmaps,
affinity, settings.

What somebody else changed meanwhile is theirs and stays; the journal says so. Data flows back under the
same budgets.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from actions.cluster.port import Command
from actions.cluster.view import ClusterView, Pg
from actions.context import Context
from actions.flight import Allowance, in_flight
from actions.ledger import (
    BEFORE,
    explained,
    found,
    is_pin,
    read_pairs,
    same,
)
from actions.mechanics import affinity
from actions.mechanics.batch import Batch, back, pin, serving
from actions.mechanics.override import give_back
from actions.mechanics.override import next_rung as override_down
from actions.mechanics.weight import next_rung
from actions.policy import Policy
from actions.throttle import THEIRS, foreign, shared, to_give_back
from data.drain import Drain
from data.ids import OsdId, PgId


@dataclass(frozen=True, slots=True)
class Return:
    """The drain with what it gives up claim to, the next batch, and whether everything is back."""

    drain: Drain
    batch: Batch
    done: bool = False


def next_return(
    view: ClusterView, drain: Drain, policy: Policy, context: Context, allowance: Allowance, starts: int
) -> Return:
    """One batch of the way back."""
    found_so = drain
    open_keys = [key for key in drain.ours if not key.endswith(BEFORE) and not shared(key)]
    drain, open_keys, lost = _abandoned(view, drain, context, policy, open_keys)
    lost += [
        key for key in drain.ours if not key.endswith((BEFORE, THEIRS)) and foreign(view, drain, key, context)
    ]
    note = f"; left as found by others: {', '.join(lost)}" if lost else ""
    for key in (k for k in open_keys if k.startswith("osd.")):
        osd, goal = OsdId(int(key.partition("/")[0][4:])), float(drain.saved[key])
        if key.endswith("/reweight"):
            if goal < view.osds[osd].reweight:
                batch = override_down(view, osd, allowance, starts, goal)
                if batch.outdated:
                    batch = Batch(full=f"where CRUSH would take the PGs of osd.{osd} is too full by now")
            else:
                batch = give_back(view, drain, osd, goal, allowance, starts)
        elif key.endswith("/crush_weight"):
            batch = next_rung(view, osd, goal, allowance, starts)
        else:
            continue
        return Return(drain, replace(batch, decided=batch.decided + note))
    pins = [key for key in open_keys if is_pin(key) and PgId(key[6:]) not in allowance.taken]
    if pins:
        return Return(drain, _unpin(view, drain, context, allowance, pins, starts, note))
    rest = [key for key in open_keys if not is_pin(key)]
    rest += to_give_back(view, drain, context)
    if any(is_pin(key) for key in open_keys):
        return Return(drain, Batch(waits_for="another drain's step on the same PGs"))
    if in_flight(drain, context):
        return Return(found_so, Batch(waits_for="data still flows back"))
    for key in (key for key in rest if key.endswith("/affinity")):
        batch = affinity.next_rung(
            view, OsdId(int(key.partition("/")[0][4:])), float(drain.saved[key]), allowance
        )
        return Return(drain, replace(batch, decided=batch.decided + note))
    if rest:
        return Return(drain, back({key: drain.saved[key] for key in rest}, note))
    return Return(drain, Batch(decided=f"everything is as it was found{note}"), done=True)


def _unpin(
    view: ClusterView,
    drain: Drain,
    context: Context,
    allowance: Allowance,
    keys: list[str],
    starts: int,
    note: str,
) -> Batch:
    if starts < 1:
        return Batch(waits_for="the budget is in use")
    commands: list[Command] = []
    pgs: list[PgId] = []
    full = ""
    for key in keys:
        pg = view.pgs[PgId(key[6:])]
        if len(pgs) == starts or (pg.id in context.survey.restless and not _waits(pg)):
            continue
        back = [(OsdId(old), pg.shard_bytes) for old, _ in read_pairs(found(view, key)) if old in drain.osds]
        if not all(allowance.room.fits(osd, size) for osd, size in back):
            full = (
                f"PG {pg.id} stays where it is: {_names(osd for osd, _ in back)} has no room for it any more"
            )
            continue
        allowance.send(pg.id, back)
        commands.append(pin(pg.id, read_pairs(drain.saved[key]), serving(view, pg)))
        pgs.append(pg.id)
    if not pgs:
        return Batch(full=full) if full and not context.survey.restless else Batch(waits_for="PGs are busy")
    return Batch(tuple(commands), frozenset(pgs), f"upmaps of {', '.join(pgs)} as they were{note}")


def _waits(pg: Pg) -> bool:
    """A PG that still waits for backfill loses nothing by being sent back."""
    return bool(pg.states & {"backfill_wait", "backfilling", "backfill_toofull"})


def _names(osds: Iterable[OsdId]) -> str:
    return ", ".join(f"osd.{osd}" for osd in osds)


def _abandoned(
    view: ClusterView, drain: Drain, context: Context, policy: Policy, keys: list[str]
) -> tuple[Drain, list[str], list[str]]:
    """Split the keys into those still to restore and those that others changed, the map lost, or the
    mon will not take.
    """
    ours = dict(drain.ours)
    todo: list[str] = []
    lost: list[str] = []
    for key in keys:
        if _vanished(view, key):
            del ours[key]
            ours.pop(key + BEFORE, None)
            continue
        now = found(view, key)
        if same(key, now, drain.saved[key]):
            continue
        refused = is_pin(key) and context.memory.attempts.get(key, 0) >= 2 * policy.pin_attempts
        if not explained(drain, key, now) or refused or _dead(view, key):
            del ours[key]
            ours.pop(key + BEFORE, None)
            lost.append(key)
            continue
        todo.append(key)
    return (replace(drain, ours=ours) if ours != drain.ours else drain), todo, lost


def _vanished(view: ClusterView, key: str) -> bool:
    kind, _, name = key.partition("/")
    if kind == "upmap":
        return PgId(name) not in view.pgs
    return kind.startswith("osd.") and OsdId(int(kind[4:])) not in view.osds


def _dead(view: ClusterView, key: str) -> bool:
    """An OSD that is down and out is not put in again by a cancel."""
    if not key.startswith("osd."):
        return False
    osd = view.osds[OsdId(int(key.partition("/")[0][4:]))]
    return not osd.up and osd.reweight == 0.0
