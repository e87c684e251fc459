"""The scheduled part of the life cycle: time passes for every disk, what is new is written down, and failures are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from predrain.data.failed_disks import find_failed_disks
from predrain.service.changes import ChangeKind

if TYPE_CHECKING:
    from predrain.service.application import House

RECORDING: Final = "lives"
FAILURES: Final = "failures"
_KINDS: Final = (ChangeKind.OSDS, ChangeKind.OUTLOOKS, ChangeKind.DEVICES, ChangeKind.STATUS)


def age_lives(house: House) -> None:
    """Take in the newest view of the cluster, let time pass, and say so where a disk stands otherwise now."""
    shown, now = house.sight().lives, house.clock.now()
    house.fleet.sight(None, house.lives, now)
    house.lives.age(now, hearing="worker" not in house.faults)
    if house.lives.shown is not shown:
        house.changes.tell(*_KINDS)


def keep_lives(house: House) -> None:
    """Take over what others stated and wrote down, let time pass, and write down what is new.

    Of processes that share a store one writes; which one makes no difference, since all come to the same answer.
    Raises what the store raises.
    """
    house.lives.hear(house.store.outcomes())
    if house.parts.shares:
        house.lives.follow()
    age_lives(house)
    with house.store.alone(RECORDING) as mine:
        if mine:
            house.lives.record()


def note_failures(house: House) -> None:
    """Write down which disks failed, by what the cluster did with them: from these statements the forecast learns.

    Of processes that share a store one writes. Raises what the store raises.
    """
    store = house.store
    with store.alone(FAILURES) as mine:
        if not mine:
            return
        failed = find_failed_disks(
            store.outcomes(), house.lives.shown, store.drains(), store.read_cluster_events, house.clock.now()
        )
        for one in failed:
            store.add_outcome(one)
    if failed:
        house.lives.hear(store.outcomes())
        house.changes.tell(ChangeKind.DEVICES)
