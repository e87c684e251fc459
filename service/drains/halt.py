"""A halt of this service: set it, store it in every possible place, and report the places that keep it."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING

import structlog

from predrain.data.cluster_event import tell_halt
from predrain.data.drain import JournalEntry, JournalEvent
from predrain.data.store.store_faults import StoreRefusal
from predrain.data.store.store_port import Store

if TYPE_CHECKING:
    from predrain.service.drains.drain_control import DrainControl

HALTS = "halt"
"""The id of the journal of halts, beside those of drains."""


class HaltPlace(StrEnum):
    """The places in which a halt is stored. A halt that only the memory of a process has ends with the process."""

    MEMORY = "memory"
    STORE = "store"
    CLUSTER = "cluster"


def halt_with(
    control: DrainControl | None, store: Store, why: str | None, caller: str, now: datetime
) -> None:
    """Halt everything with a reason, or lift the halt (None).

    A halt is in force from this process's memory on, even if store and cluster refuse it. Raises StoreRefusal if
    a halt cannot be lifted, and what `DrainControl.set_halt` raises.
    """
    if why is not None:
        store.hold_halt(why)
    if control is not None:
        control.set_halt(why)
    else:
        try:
            store.set_halt(why)
        except StoreRefusal:
            if why is None or store.unwritten_halt() != why:
                raise
    try:
        record_halt(store, why, caller, now)
        store.add_journal([_build_halt_line(why, caller, now)])
    except StoreRefusal as refusal:
        structlog.get_logger().error(
            "the journal has no line of this halt", reason=str(refusal), caller=caller
        )
    structlog.get_logger().warning("halted" if why else "halt lifted", reason=why, caller=caller)


def record_halt(store: Store, why: str | None, caller: str, now: datetime) -> None:
    """Store the event that `caller` halted everything, or lifted the halt (None)."""
    store.add_cluster_events([tell_halt(why, caller, now)])


def write_again(store: Store) -> None:
    """Write a halt that only memory keeps to the store, if the store accepts it by now."""
    why = store.unwritten_halt()
    if why is None:
        return
    try:
        store.set_halt(why)
    except StoreRefusal:
        return
    structlog.get_logger().info("the halt is in the store now", reason=why)


def places_of(control: DrainControl | None, store: Store) -> tuple[HaltPlace, ...]:
    """Return the places that keep the halt that is in force; empty if there is none."""
    if store.halt_reason() is None:
        # The store has no halt, so a halt can only be in the cluster.
        halted = control.find_halt_reason() if control is not None else None
        return (HaltPlace.CLUSTER,) if halted is not None else ()
    here = HaltPlace.STORE if store.unwritten_halt() is None else HaltPlace.MEMORY
    return (here, HaltPlace.CLUSTER) if control is not None and control.halt_in_cluster else (here,)


def find_halt_line(store: Store, why: str) -> JournalEntry | None:
    """Return the journal line of the halt in force for the reason `why`, or None if it was not set by a service."""
    last = next(iter(store.journal(HALTS, 1)), None)
    if last is None or last.event is not JournalEvent.HALTED or last.reason != why:
        return None
    return last


def _build_halt_line(why: str | None, caller: str, now: datetime) -> JournalEntry:
    if why is None:
        return JournalEntry(HALTS, now, "", "lift the halt", caller=caller, event=JournalEvent.HALT_LIFTED)
    return JournalEntry(HALTS, now, "", f"halt: {why}", caller=caller, event=JournalEvent.HALTED, reason=why)
