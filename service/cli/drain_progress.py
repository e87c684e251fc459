"""A drain that a person waits for: its progress on stderr until it is done, over, or held for a while."""

from __future__ import annotations

import time
import urllib.parse

from rich.progress import BarColumn, Progress, TextColumn

from predrain.data.refusal import Refusal
from predrain.service.cli.shared_options import format_binary_size, make_console
from predrain.service.terminal.service_connection import CliClient, Json, NotRunning

DONE, OVER = frozenset({"verified", "handed_over"}), frozenset({"cancelled", "failed"})
STUCK = frozenset({"holding", "paused", "approved"})
PATIENCE_SECONDS = 60.0
"""Time for which a command watches a drain that holds before it gives up waiting."""


class ServiceEnded(Refusal):
    """The service that a command watched a drain through has ended."""


def watch_drain(client: CliClient, drain: str, *, quiet: bool) -> Json:
    """The drain once it is done, over, or has not moved for a while although it should. Raises ServiceEnded."""
    last, shown, since = None, "", time.monotonic()
    console = make_console(stderr=True, quiet=quiet)
    columns = TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[now]}", markup=False)
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        row = bar.add_task(drain, total=None, now="")
        while True:
            one = _look_again(client, drain)
            progress = one["progress"]
            now = (one["state"], progress["moved_pgs"], progress["in_flight"])
            if now != last:
                last, since = now, time.monotonic()
            if (told := _progress_line(one)) != shown:
                shown = told
                bar.update(
                    row, total=progress["planned_pgs"] or None, completed=progress["moved_pgs"], now=told
                )
                if not console.is_terminal:
                    console.print(f"{drain}: {told}", soft_wrap=True)
            waited = time.monotonic() - since > PATIENCE_SECONDS
            if one["state"] in DONE | OVER or (waited and (one["state"] in STUCK or one["held_by"])):
                return one
            time.sleep(1.0)


def _look_again(client: CliClient, drain: str) -> Json:
    """Return the present state of the drain. Raises ServiceEnded."""
    try:
        return client.get(f"drains/{quote_drain_id(drain)}")
    except NotRunning as silent:
        raise ServiceEnded(
            f"{drain}: the process that was asked, perhaps a command in another terminal that acted on drains, answers "
            f"no more ({silent}). What was asked is written down; give the same command again, and it acts where no "
            "controller runs"
        ) from silent


def _progress_line(one: Json) -> str:
    progress = one["progress"]
    moved, of = format_binary_size(progress["moved_bytes"]), format_binary_size(progress["planned_bytes"])
    held = f"; held: {one['held_by'][0]}" if one["held_by"] else ""
    return (
        f"{read_state_text(one)}, {progress['moved_pgs']} of {progress['planned_pgs']} PGs, {moved} of {of}, "
        f"{progress['in_flight']} in flight{held}"
    )


def read_state_text(one: Json) -> str:
    """The state of a drain as people read it: a fill is filling, not draining."""
    return str(one.get("state_text") or one["state"])


def quote_drain_id(drain: str) -> str:
    """A drain's id as a part of a path."""
    return urllib.parse.quote(drain, safe="")
