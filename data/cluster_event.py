"""Events of a cluster, its drains and the outlooks of its disks as they are stored: the new state of each subject."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from predrain.data.drain import Drain, DrainState, Intent
from predrain.data.ids import DeviceId, HostName, OsdId
from predrain.data.outlook import GRAVITY, Outlook, Status

HALT_SUBJECT = "halt"
CONTROLLER_SUBJECT = "controller"


class ClusterEventKind(StrEnum):
    """The kinds of an event."""

    OSD_DOWN = "osd_down"
    OSD_UP = "osd_up"
    DRAIN = "drain"
    """The drain entered the state `state`."""
    HALTED = "halted"
    HALT_LIFTED = "halt_lifted"
    CONTROLLER = "controller"
    """Another process, `by`, acts on drains now."""
    OUTLOOK_WORSE = "outlook_worse"
    OUTLOOK_DOUBLED = "outlook_doubled"
    """The severity is the same, and the probability of a failure has doubled."""
    OUTLOOK_BETTER = "outlook_better"

    @property
    def is_of_outlook(self) -> bool:
        """True if the event is about an outlook that was announced."""
        return self in _OF_OUTLOOKS


_OF_OUTLOOKS = frozenset(
    {ClusterEventKind.OUTLOOK_WORSE, ClusterEventKind.OUTLOOK_DOUBLED, ClusterEventKind.OUTLOOK_BETTER}
)
_ENDS = frozenset({ClusterEventKind.OSD_UP, ClusterEventKind.HALT_LIFTED})
"""Kinds that are no event for a subject without an earlier event."""


@dataclass(frozen=True, slots=True)
class ClusterEvent:
    """One event. `epoch` is the epoch of the map in which it was seen; None: the event does not come from a map."""

    subject: str
    """The OSD (`osd.3`), the id of the drain, `outlook:` and the disk, HALT_SUBJECT or CONTROLLER_SUBJECT."""
    at: datetime
    kind: ClusterEventKind
    osds: tuple[OsdId, ...] = ()
    host: HostName | None = None
    device: DeviceId | None = None
    state: DrainState | None = None
    intent: Intent | None = None
    why: str = ""
    """A text for people: the reason of a halt, an outlook or a drain, the first guard that refuses, or why a drain
    ended."""
    by: str = ""
    """The person or process that caused the event, if it is known."""
    epoch: int | None = None
    severity: Status | None = None
    """The severity of an outlook."""

    @property
    def state_key(self) -> tuple[object, ...]:
        """The values that make a new event when they differ. A drain that holds for another reason still holds."""
        if self.kind is ClusterEventKind.CONTROLLER:
            return self.kind, self.by
        return self.kind, self.state, self.why if self.kind is ClusterEventKind.HALTED else ""

    def is_news_after(self, last: ClusterEvent | None) -> bool:
        """Return whether the event is new for its subject after the last stored event."""
        if last is None:
            return self.kind not in _ENDS
        if (
            self.kind.is_of_outlook
        ):  # every announcement is news; one that is repeated has the same time as before
            graver = GRAVITY[self.severity or Status.UNKNOWN] > GRAVITY[last.severity or Status.UNKNOWN]
            return self.at > last.at or (self.at == last.at and graver)
        if self.epoch is not None and last.epoch is not None and self.epoch <= last.epoch:
            return False
        return self.state_key != last.state_key


def tell_drain(drain: Drain) -> ClusterEvent:
    """Build the event for the state of a drain at this revision."""
    why, by = drain.ended_why, drain.cancelled_by
    if drain.state is DrainState.PROPOSED:
        why, by = drain.reason, drain.asked_by
    elif drain.state is DrainState.HOLDING and drain.held_by:
        why = drain.held_by[0]
    return ClusterEvent(
        drain.id,
        drain.updated_at,
        ClusterEventKind.DRAIN,
        drain.osds,
        device=drain.device,
        state=drain.state,
        intent=drain.intent,
        why=why,
        by=by,
    )


def tell_outlook(kind: ClusterEventKind, outlook: Outlook) -> ClusterEvent:
    """Build the event for an announced outlook. `kind` is the reason (`ClusterEventKind.is_of_outlook`)."""
    return ClusterEvent(
        f"outlook:{outlook.device}",
        outlook.as_of,
        kind,
        device=outlook.device,
        why=outlook.reasons[0].sentence if outlook.reasons else "",
        severity=outlook.severity,
    )


def tell_halt(why: str | None, by: str, at: datetime) -> ClusterEvent:
    """Build the event for a halt with its reason, or for a lifted halt (None)."""
    kind = ClusterEventKind.HALT_LIFTED if why is None else ClusterEventKind.HALTED
    return ClusterEvent(HALT_SUBJECT, at, kind, why=why or "", by=by)
