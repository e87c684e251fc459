"""A halt of this service: asked for, kept wherever it can be, and told with the places that keep it."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING

import structlog

from predrain.data.cluster_event import tell_halt
from predrain.data.drain import JournalEntry
from predrain.data.store.faults import StoreRefusal
from predrain.data.store.port import Store

if TYPE_CHECKING:
    from predrain.service.drains.control import Control

HALTS = "halt"
"""The journal of halts, beside those of drains."""


class HaltPlace(StrEnum):
    """Where a halt is kept. What only the memory of a process has, ends with the process."""

    MEMORY = "memory"
    STORE = "store"
    CLUSTER = "cluster"


def halt_with(control: Control | None, store: Store, why: str | None, caller: str, now: datetime) -> None:
    """Halt everything with a reason, or lift the halt (None).

    A halt stands from this process's memory on, whatever its store and its cluster take. Raises StoreRefusal where a
    halt cannot be lifted, and what `Control.halt` raises.
    """
    if why is not None:
        store.hold_halt(why)
    if control is not None:
        control.halt(why)
    else:
        try:
            store.set_halt(why)
        except StoreRefusal:
            if why is None or store.unwritten_halt() != why:
                raise
    try:
        record_halt(store, why, caller, now)
        store.add_journal(
            [JournalEntry(HALTS, now, "", describe_halt(why) if why else "lift the halt", caller=caller)]
        )
    except StoreRefusal as refusal:
        structlog.get_logger().error("the journal has no line of this halt", why=str(refusal), caller=caller)
    structlog.get_logger().warning("halted" if why else "halt lifted", why=why, caller=caller)


def record_halt(store: Store, why: str | None, caller: str, now: datetime) -> None:
    """Keep among the events that everything was halted by `caller`, or the halt lifted (None)."""
    store.add_cluster_events([tell_halt(why, caller, now)])


def write_again(store: Store) -> None:
    """Put a halt that only memory has into the store, if that takes it by now."""
    why = store.unwritten_halt()
    if why is None:
        return
    try:
        store.set_halt(why)
    except StoreRefusal:
        return
    structlog.get_logger().info("the halt is in the store now", why=why)


def places_of(control: Control | None, store: Store) -> tuple[HaltPlace, ...]:
    """Where the halt that stands is kept; empty when none stands."""
    if store.halt_reason() is None:
        # The store has none, so what stands, stands in the cluster alone.
        halted = control.halted() if control is not None else None
        return (HaltPlace.CLUSTER,) if halted is not None else ()
    here = HaltPlace.STORE if store.unwritten_halt() is None else HaltPlace.MEMORY
    return (here, HaltPlace.CLUSTER) if control is not None and control.halt_in_cluster else (here,)


def describe_halt(why: str) -> str:
    """How a journal tells a halt."""
    return f"halt: {why}"
