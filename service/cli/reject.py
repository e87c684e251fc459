"""`predrain drain reject`: a proposed drain that a person does not want."""

from __future__ import annotations

from predrain.service.cli.client import Client, Json
from predrain.service.cli.connect import Reach
from predrain.service.cli.drain import HERE, act_on_drain
from predrain.service.cli.options import AsJson
from predrain.service.cli.watching import quote_drain_id


def reject(drain: str, /, *, where: Reach = HERE, as_json: AsJson = False) -> int:
    """Refuse a proposed drain, of which nothing was touched. A drain that was approved is given up by `cancel`.

    DRAIN is its id, or `osd.N`. Exits with 1, and changes nothing, where somebody approved it before.

    Example: predrain drain reject osd.217
    """

    def ask(client: Client, id_: str) -> Json:
        return client.post(f"drains/{quote_drain_id(id_)}/reject").body

    return act_on_drain(where, drain, "reject", ask, as_json, wait=False)
