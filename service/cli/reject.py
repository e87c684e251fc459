"""`predrain drain reject`: a proposed drain that a person does not want."""

from __future__ import annotations

from data.drain import DrainState
from data.refusal import Refusal
from service.cli.client import Client, Json
from service.cli.connect import Reach
from service.cli.drain import HERE, act_on_drain
from service.cli.options import AsJson
from service.cli.watching import quote_drain_id, read_state_text


class NotProposed(Refusal):
    """Only a drain that is proposed is rejected."""


def reject(drain: str, /, *, where: Reach = HERE, as_json: AsJson = False) -> int:
    """Refuse a proposed drain, of which nothing was touched. A drain that was approved is given up by `cancel`.

    DRAIN is its id, or `osd.N`. Exits with 3 when no controller runs that would end it.

    Example: predrain drain reject osd.217
    """

    def ask(client: Client, id_: str) -> Json:
        path = f"drains/{quote_drain_id(id_)}"
        one = client.get(path)
        if one["state"] != DrainState.PROPOSED:
            raise NotProposed(
                f"{id_} is {read_state_text(one)}, no longer proposed; give it up: predrain drain cancel {id_}"
            )
        return client.post(f"{path}/cancel").body

    return act_on_drain(where, drain, "cancel", ask, as_json, wait=False)
