"""A drain that stands still though nothing holds it: it says why, lest a person wonder or never hear of it."""

from __future__ import annotations

from datetime import datetime, timedelta

from predrain.actions.core.answers import Wait
from predrain.actions.core.pg_survey import Survey

LONG = timedelta(hours=2)
"""Longer than a PG takes to a slow disk."""
STANDSTILL = "standstill"
"""Stands in `Drain.held_for` where no guard holds, and nothing moves all the same."""
_NAMED = 3


class Standstill:
    """Since when each waiting drain has had nothing arrive and nothing begun; lost with the process."""

    def __init__(self) -> None:
        self._since: dict[str, tuple[tuple[int, ...], datetime]] = {}

    def words(self, wait: Wait, survey: Survey, now: datetime) -> str | None:
        """What it waits for, once that has lasted so long; None before."""
        drain = wait.drain
        if not drain.intent.moves_data:
            return None  # that is at rest until the OSD answers well again
        counted = drain.progress.counted
        before, since = self._since.get(drain.id, (None, None))
        if before != counted:
            self._since[drain.id] = counted, now
            return None
        if since is None or now - max(since, drain.updated_at) < LONG:
            return None
        ours = {move.pg for move in drain.plan.moves} if drain.plan else set()
        stuck = [
            f"{id_} is {'+'.join(sorted(survey.restless[id_].states))}"
            for id_ in survey.restless
            if id_ in ours
        ]
        more = [f"and {len(stuck) - _NAMED} more"] if len(stuck) > _NAMED else []
        why = "; ".join([wait.why, *stuck[:_NAMED], *more])
        return f"nothing has moved for {LONG // timedelta(hours=1)} h: {why}"
