"""A way out of a drain that cannot go on by itself."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class WayOut(StrEnum):
    """What a person can do about a drain that cannot end."""

    MAKE_ROOM = "make_room"
    CHOOSE_OTHER_TARGETS = "choose_other_targets"
    STAY_DRAINED = "stay_drained"
    GIVE_UP_CANCEL = "give_up_cancel"
    CANCEL = "cancel"


@dataclass(frozen=True, slots=True)
class OpenWayOut:
    """A way that is open now, and what it means as a sentence."""

    way: WayOut
    sentence: str
