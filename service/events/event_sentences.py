"""Events as sentences, and the page address of each."""

from __future__ import annotations

from urllib.parse import quote

from predrain.actions.core.messages import INTENT_TEXTS
from predrain.data.drain import Intent
from predrain.service.events.event import HistoryEvent
from predrain.service.events.event_kinds import HistoryGroup, group_of
from predrain.service.events.event_kinds import HistoryKind as Kind

EVENT_TEXTS = {
    Kind.OSD_DOWN: "{osd} is down",
    Kind.OSD_UP: "{osd} is up again",
    Kind.DISK_NEW: "{disk} is new",
    Kind.DISK_IN_SERVICE: "{disk} is in service",
    Kind.DISK_SILENT: "{disk} answers no more",
    Kind.DISK_FAILED: "{disk} failed",
    Kind.DISK_REPLACED: "{disk} was replaced{successor}",
    Kind.DISK_REMOVED: "{disk} was removed",
    Kind.DISK_MOVED: "{disk} was found in another host",
    Kind.DISK_LOST: "{disk} is lost from sight: nobody reads it any more",
    Kind.DISK_STATEMENT: "{disk} was judged",
    Kind.OUTLOOK_WORSE: "The outlook of {disk} became worse: {severity}",
    Kind.OUTLOOK_DOUBLED: "The probability that {disk} fails has doubled: {severity}",
    Kind.OUTLOOK_BETTER: "The outlook of {disk} became better: {severity}",
    Kind.DRAIN_PROPOSED: "A {noun} of {osd} was asked for",
    Kind.DRAIN_APPROVED: "The {noun} of {osd} was approved",
    Kind.DRAIN_PREPARING: "The {noun} of {osd} began",
    Kind.DRAIN_DRAINING: "The {noun} of {osd} is under way",
    Kind.DRAIN_HOLDING: "The {noun} of {osd} holds",
    Kind.DRAIN_PAUSED: "The {noun} of {osd} was paused",
    Kind.DRAIN_DRAINED: "The {noun} of {osd} has nothing left to move",
    Kind.DRAIN_VERIFIED: "The {noun} of {osd} is verified",
    Kind.DRAIN_HANDED_OVER: "The {noun} of {osd} is handed over",
    Kind.DRAIN_CANCELLING: "The {noun} of {osd} is being cancelled",
    Kind.DRAIN_CANCELLED: "The {noun} of {osd} is cancelled",
    Kind.DRAIN_FAILED: "The {noun} of {osd} failed",
    Kind.HALTED: "All drains were halted",
    Kind.HALT_LIFTED: "The halt was lifted",
    Kind.CONTROLLER_CHANGED: "The controller on {by} acts on drains now",
}


def describe_event(event: HistoryEvent) -> str:
    """Describe the event in a sentence, with its reason and its author."""
    osd = "an OSD" if event.osd is None else f"osd.{event.osd}"
    told = EVENT_TEXTS[event.kind].format(
        osd=osd,
        disk=_name_disk(event, osd),
        noun=INTENT_TEXTS[event.intent or Intent.REPLACE].noun,
        severity=event.severity or "",
        successor=f" by {event.successor}" if event.successor else "",
        by=event.by,
    )
    by = ""
    if event.by and event.kind is not Kind.CONTROLLER_CHANGED:
        by = f", says {event.by}" if group_of(event.kind) is HistoryGroup.DISK else f" by {event.by}"
    why = event.why.strip()
    return end_sentence(f"{told}{by}: {why}" if why else f"{told}{by}")


def end_sentence(text: str) -> str:
    """Return `text` with a full stop unless a sentence ends there, since people type reasons without one."""
    return text if text.endswith((".", "!", "?", "…")) else f"{text}."


def link_event(event: HistoryEvent) -> str:
    """Return the address on the page with more about the event."""
    if event.drain is not None:
        return f"/drains/{quote(event.drain, safe='')}"
    if event.device is not None:
        return f"/devices/{quote(event.device, safe='')}"
    if event.osd is not None:
        return f"/osds/{event.osd}"
    return "/alerts" if group_of(event.kind) is HistoryGroup.HALT else "/drains"


def _name_disk(event: HistoryEvent, osd: str) -> str:
    if event.device is None:
        return f"The disk of {osd}" if event.osd is not None else "A disk"
    return event.device if event.osd is None else f"{event.device} ({osd})"
