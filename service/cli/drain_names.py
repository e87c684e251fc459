"""Which drain is meant by `osd.N`: the one that has not ended."""

from __future__ import annotations

import re
import urllib.parse
from typing import Annotated

from cyclopts import Parameter

from predrain.actions.core.state_machine import ENDED
from predrain.data.drain import DrainState
from predrain.data.refusal import Refusal
from predrain.service.cli.drain_progress import read_state_text
from predrain.service.terminal.service_connection import CliClient, Json

_OSD = re.compile(r"osd\.(\d+)")


DrainName = Annotated[
    str, Parameter(help="The drain's id, or osd.N for the drain of that OSD that has not ended.")
]


class NoOpenDrain(Refusal):
    """The OSD has no drain that has not ended."""


class SeveralDrains(Refusal):
    """The OSD has several drains that have not ended."""


def find_drain_id(client: CliClient, named: str, *, ended: bool = False) -> str:
    """The id of the drain that is meant by `named`, which is an id, or `osd.N` for its drain that has not ended.

    ended: the newest one where every drain of the OSD has ended. Raises NoOpenDrain, SeveralDrains, Answered.
    """
    osd = _OSD.fullmatch(named)
    if osd is None:
        return named
    found = [one for one in _list_drains(client) if int(osd[1]) in one["osds"]]
    return choose_drain(named, found, ended=ended)


def choose_drain(osd: str, drains: list[Json], *, ended: bool) -> str:
    """The id of the one of an OSD's drains (newest first) that `find_drain_id` means. Raises as that does."""
    going = [one for one in drains if DrainState(one["state"]) not in ENDED]
    # A drain whose cancel continues beside a newer drain is named by its id.
    meant = [one for one in going if one["state"] != DrainState.CANCELLING] or going
    if len(meant) > 1:
        which = ", ".join(f"{one['id']} ({read_state_text(one)})" for one in meant)
        raise SeveralDrains(
            f"{osd} has several drains that have not ended; give the id of one of them: {which}"
        )
    if meant:
        return str(meant[0]["id"])
    if drains and ended:
        return str(drains[0]["id"])
    if drains:
        newest = drains[0]
        raise NoOpenDrain(
            f"every drain of {osd} has ended; the newest is {newest['id']} ({read_state_text(newest)}). See it: "
            f"predrain drain explain {osd}"
        )
    raise NoOpenDrain(f"{osd} has no drain; ask for one: predrain drain apply {osd}")


def _list_drains(client: CliClient) -> list[Json]:
    """Return every drain, newest first."""
    page = client.get("drains")
    found: list[Json] = list(page["items"])
    while page["next"]:
        page = client.get(f"drains?{urllib.parse.urlencode({'cursor': page['next']})}")
        found.extend(page["items"])
    return found
