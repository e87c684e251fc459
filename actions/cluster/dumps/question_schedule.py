"""The read commands that are due: the cheap ones at each poll, the expensive ones when their answer may
have changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from predrain.actions.cluster.cluster_port import (
    Command,
    CrushReweight,
    PrimaryAffinity,
    RemoveUpmap,
    Reweight,
    SetUpmap,
)
from predrain.actions.cluster.cluster_view import ClusterView
from predrain.actions.cluster.dumps.raw_answers import RawAnswers, ReadCommand
from predrain.actions.cluster.dumps.view_questions import (
    EACH_LOOK,
    PG_BRIEF,
    PG_DUMP,
    SELDOM,
    running_scheduler,
    whole_rows,
)
from predrain.data.clock import is_within_last
from predrain.data.ids import OsdId

BRIEF_ABOVE = 2048
"""Number of PGs. Up to it a full dump costs the mgr at most 0.13 s of processor time per poll (measured: 0.035 ms per
PG on Reef, 0.06 ms on Pacific; the brief form costs a tenth of that).
"""
WATCHED_FOR = timedelta(minutes=2)
"""A PG reports within seconds of what changed it. After this time the guard against stale views holds anyway."""
WATCHED_MOST = 32
"""Most OSDs whose PGs are read as whole rows; above it, the full dump is cheaper than so many commands."""
_AGAIN = timedelta(minutes=1)


@dataclass(slots=True)
class Schedule:
    """The time of the last answer to each read command, and the OSDs whose PGs must be read as whole rows for now."""

    brief_above: int = BRIEF_ABOVE
    whole_wanted: bool = True
    """True if the next poll needs every PG's bytes: after a start, with a new mgr, or for a PG never seen before."""
    _answered: dict[str, datetime] = field(default_factory=dict)
    _due: tuple[ReadCommand, ...] = ()
    _watched: dict[OsdId, datetime] = field(default_factory=dict)
    _whole_until: datetime | None = None
    _next_asked: int = 0

    def list_due_commands(self, view: ClusterView | None, now: datetime) -> tuple[ReadCommand, ...]:
        """Return the read commands of this poll, in the order in which they must be sent. view: the last one."""
        latest = now + WATCHED_FOR  # a later time was set before the clock was set back
        self._watched = {osd: min(until, latest) for osd, until in self._watched.items() if now < until}
        if self._whole_until is not None:
            self._whole_until = min(self._whole_until, latest)
        seldom = [question for question in SELDOM if self._old(question, now)]
        if view is not None and (up := sorted(osd.id for osd in view.osds.values() if osd.up)):
            one = running_scheduler(up[self._next_asked % len(up)])
            if self._old(one, now, "config_show"):
                seldom.append(one)
        if self._wants_whole(view, now):
            rows: tuple[ReadCommand, ...] = (PG_DUMP,)
        else:
            rows = (PG_BRIEF, *(whole_rows(osd) for osd in sorted(self._watched)))
        self._due = (*EACH_LOOK, *rows, *seldom)
        return self._due

    def note_answers(self, answers: RawAnswers) -> None:
        """Record which commands were answered and when they were sent. A command that was refused is sent again in a
        minute.
        """
        for question in self._due:
            name = "config_show" if question.name.startswith("config_show.") else question.name
            came = question.name in answers.raw
            self._answered[name] = answers.at if came else answers.at - question.every + _AGAIN
            self._next_asked += name == "config_show"
        self._due = ()
        if PG_DUMP.name in answers.raw:
            self.whole_wanted = False

    def note_command(self, command: Command, view: ClusterView | None, now: datetime) -> None:
        """Record that a command was sent: the PGs that it changes must show the change with their epoch."""
        match command:
            case SetUpmap() | RemoveUpmap():
                witness = _find_witness_osd(command, view)
                if witness is None:
                    self._whole_until = now + WATCHED_FOR
                else:
                    self._watched[witness] = now + WATCHED_FOR
            case Reweight() | CrushReweight() | PrimaryAffinity():
                self._whole_until = now + WATCHED_FOR
            case _:
                pass

    def _wants_whole(self, view: ClusterView | None, now: datetime) -> bool:
        return (
            self.whole_wanted
            or view is None
            or len(view.pgs) <= self.brief_above
            or len(self._watched) > WATCHED_MOST
            or (self._whole_until is not None and now < self._whole_until)
            or self._old(PG_DUMP, now)
        )

    def _old(self, question: ReadCommand, now: datetime, name: str = "") -> bool:
        last = self._answered.get(name or question.name)
        return last is None or not is_within_last(last, now, question.every)


def _find_witness_osd(command: SetUpmap | RemoveUpmap, view: ClusterView | None) -> OsdId | None:
    """Return an OSD that the PG names before and after the change, so that the OSD's rows always include the PG."""
    pg = view.pgs.get(command.pg) if view is not None else None
    if pg is None or view is None:
        return None
    before: Mapping[int, int] = dict(view.upmap_items.get(command.pg, ()))
    after = dict(command.pairs) if isinstance(command, SetUpmap) else {}
    changing = {*before, *before.values(), *after, *after.values()}
    staying = sorted(set(pg.up) & set(pg.acting) & view.osds.keys() - changing)
    return OsdId(staying[0]) if staying else None
