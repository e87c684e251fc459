"""What is due to be asked now: the cheap things at each look, the dear ones when they may have changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from predrain.actions.cluster.dumps.answers import RawAnswers, ReadCommand
from predrain.actions.cluster.dumps.questions import (
    EACH_LOOK,
    PG_BRIEF,
    PG_DUMP,
    SELDOM,
    running_scheduler,
    whole_rows,
)
from predrain.actions.cluster.port import (
    Command,
    CrushReweight,
    PrimaryAffinity,
    RemoveUpmap,
    Reweight,
    SetUpmap,
)
from predrain.actions.cluster.view import ClusterView
from predrain.data.clock import lately
from predrain.data.ids import OsdId

BRIEF_ABOVE = 2048
"""PGs. Up to here a full dump costs the mgr at most 0.13 s of processor a look (measured: 0.035 ms a PG on Reef, 0.06
on Pacific; the brief form a tenth of that)."""
WATCHED_FOR = timedelta(minutes=2)
"""A PG reports within seconds of what changed it; later the guard against stale views holds anyway."""
WATCHED_MOST = 32
"""OSDs whose rows are asked for whole; beyond, the full dump is cheaper than so many commands."""
_AGAIN = timedelta(minutes=1)


@dataclass(slots=True)
class Schedule:
    """When each question was last answered, and whose PGs must be seen whole for now."""

    brief_above: int = BRIEF_ABOVE
    whole_wanted: bool = True
    """The next look needs every PG's bytes: a start, a new mgr, a PG never seen before."""
    _answered: dict[str, datetime] = field(default_factory=dict)
    _due: tuple[ReadCommand, ...] = ()
    _watched: dict[OsdId, datetime] = field(default_factory=dict)
    _whole_until: datetime | None = None
    _next_asked: int = 0

    def due(self, view: ClusterView | None, now: datetime) -> tuple[ReadCommand, ...]:
        """The questions of this look, in the order in which they must be asked. view: the last one."""
        latest = now + WATCHED_FOR  # what was to be watched longer was sent before the clock was set back
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

    def answered(self, answers: RawAnswers) -> None:
        """Remember what came, by when it was asked; what was refused is asked again in a minute."""
        for question in self._due:
            name = "config_show" if question.name.startswith("config_show.") else question.name
            came = question.name in answers.raw
            self._answered[name] = answers.at if came else answers.at - question.every + _AGAIN
            self._next_asked += name == "config_show"
        self._due = ()
        if PG_DUMP.name in answers.raw:
            self.whole_wanted = False

    def sent(self, command: Command, view: ClusterView | None, now: datetime) -> None:
        """A command of ours went out: the PGs that it changes must show it with their epoch."""
        match command:
            case SetUpmap() | RemoveUpmap():
                witness = _witness(command, view)
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
        return last is None or not lately(last, now, question.every)


def _witness(command: SetUpmap | RemoveUpmap, view: ClusterView | None) -> OsdId | None:
    """An OSD that the PG names before the change and after it, so that its rows show the PG at any time."""
    pg = view.pgs.get(command.pg) if view is not None else None
    if pg is None or view is None:
        return None
    before: Mapping[int, int] = dict(view.upmap_items.get(command.pg, ()))
    after = dict(command.pairs) if isinstance(command, SetUpmap) else {}
    changing = {*before, *before.values(), *after, *after.values()}
    staying = sorted(set(pg.up) & set(pg.acting) & view.osds.keys() - changing)
    return OsdId(staying[0]) if staying else None
