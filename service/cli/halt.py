"""`predrain halt` and `predrain unhalt`: through the service if it answers, else straight into its store."""

from __future__ import annotations

import getpass
from typing import Annotated

from cyclopts import Parameter

from data.refusal import Refusal
from service.cli.client import Client
from service.cli.options import HERE, AsJson, Where, print_json


class NothingToHalt(Refusal):
    """The state directory holds no store."""


def halt(
    *,
    why: Annotated[str, Parameter(help="Why, for whoever finds it halted.")] = "",
    where: Where = HERE,
    as_json: AsJson = False,
) -> int:
    """No command is sent to the cluster from now on, until `predrain unhalt`. Works with the service down.

    Example: predrain halt --why "switch maintenance"
    """
    return _set(where, why or f"halted by {getpass.getuser()}", as_json)


def unhalt(*, where: Where = HERE, as_json: AsJson = False) -> int:
    """Lift the halt.

    Example: predrain unhalt
    """
    return _set(where, None, as_json)


def _set(where: Where, why: str | None, as_json: bool) -> int:
    try:
        halted = Client.of(where.settings()).post("halt", {"why": why}).body["halted"]
    except Refusal:
        # Whatever is wrong with the service, a halt must come through: the controller reads the store.
        halted = _store(where, why)
    if as_json:
        print_json({"halted": halted})
    else:
        print(f"halted: {halted}" if halted else "not halted")
    return 0


def _store(where: Where, why: str | None) -> str | None:
    from service.adapters import standing_store

    settings = where.settings()
    with standing_store(settings) as store:
        if store is None:
            raise NothingToHalt(
                f"{settings.service.state} holds no store, so there is nothing to halt; say --state or --config"
            )
        store.set_halt(why)
        return store.halt_reason()
