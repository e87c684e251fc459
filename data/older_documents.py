"""The typed fields of stored documents that version 0.1.0 wrote without them: they are read from its sentences, once.

No other module reads such sentences.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import msgspec

from predrain.data.drain import BoundKind, JournalEntry, JournalEvent, Mechanic
from predrain.data.plan_refusal import PlanRefusalKind

_WHOLE_LINES: Final[Mapping[str, JournalEvent]] = {
    "hold": JournalEvent.HELD,
    "lift the halt": JournalEvent.HALT_LIFTED,
}
_LINE_STARTS: Final[Mapping[str, JournalEvent]] = {
    "begin": JournalEvent.BEGUN,
    "verified": JournalEvent.COUNTED,
    "hold": JournalEvent.HELD,
    "wait": JournalEvent.WAITED,
    "halt": JournalEvent.HALTED,
}
_BOUND_SIGNS: Final[tuple[tuple[str, BoundKind], ...]] = (
    ("then override 0", BoundKind.OVERRIDE_ZERO),
    ("then CRUSH weight 0", BoundKind.WEIGHT_ZERO),
    ("then ", BoundKind.POLLS),
    (" on their way at once", BoundKind.TARGET_STARTS),
    (", which receives ", BoundKind.TARGET_WRITES),
    (", which reads ", BoundKind.SOURCE_READS),
    (", which leads PGs of ", BoundKind.PRIMARY_FILLS),
    ("the network of ", BoundKind.HOST_NETWORK),
    (" PGs in flight at ", BoundKind.IN_FLIGHT),
    (" PGs peering at once", BoundKind.PEERING),
    ("one PG at a time", BoundKind.ONE_BY_ONE),
)


class _OlderBound(msgspec.Struct):
    name: str
    hours: float
    kind: BoundKind | None = None


class _OlderPlan(msgspec.Struct):
    bottleneck: str
    mechanic: Mechanic
    eta_hours: float | None
    bounds: tuple[_OlderBound, ...] = ()
    refusals: tuple[str, ...] = ()
    stirred: tuple[str, ...] = ()


def type_older_plan(raw: bytes) -> bytes:
    """Return the document of a drain with its plan in today's form, or `raw` itself if it has none of an older one.

    Version 0.1.0 wrote bounds by their names, and refusals and the bottleneck as sentences. The sentences stay as
    words of typed values, whose figures are not known.
    """
    try:
        document = msgspec.json.decode(raw)
        plan = document["plan"]
        old = msgspec.convert(plan, _OlderPlan)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, TypeError, KeyError):
        return raw
    bounds = [(bound.kind or _find_bound_kind(bound.name), bound.name, bound.hours) for bound in old.bounds]
    if old.mechanic is Mechanic.PRIMARY_AFFINITY and old.stirred and old.eta_hours is not None:
        bounds = [(BoundKind.PEERING, old.bottleneck, old.eta_hours)]
    del plan["bottleneck"]
    plan["bounds"] = [{"kind": kind, "hours": hours, "text": text} for kind, text, hours in bounds if kind]
    plan["refusals"] = [
        {"kind": PlanRefusalKind.OLDER_SENTENCE, "text": sentence} for sentence in old.refusals
    ]
    return msgspec.json.encode(document)


def _find_bound_kind(name: str) -> BoundKind | None:
    return next((kind for sign, kind in _BOUND_SIGNS if sign in name), None)


def add_event_to_older_line(entry: JournalEntry) -> JournalEntry:
    """Return the line with the event that its sentence named in version 0.1.0, if it has none of its own.

    Each line passes this function once, where it leaves the store.
    """
    if entry.event is not None or not entry.decided:
        return entry
    start, colon, rest = entry.decided.partition(": ")
    event = _LINE_STARTS.get(start) if colon else _WHOLE_LINES.get(start)
    if event is None:
        return entry
    return replace(entry, event=event, reason=rest if event is JournalEvent.HALTED else "")
