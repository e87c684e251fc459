"""Ways out of a drain that cannot go on by itself."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class WayOut(StrEnum):
    """The choices of a person for a drain that cannot end."""

    MAKE_ROOM = "make_room"
    CHOOSE_OTHER_TARGETS = "choose_other_targets"
    STAY_DRAINED = "stay_drained"
    GIVE_UP_CANCEL = "give_up_cancel"
    CANCEL = "cancel"


@dataclass(frozen=True, slots=True)
class OpenWayOut:
    """A way out that is open now, and its meaning as a sentence."""

    way: WayOut
    sentence: str
