"""`predrain halt` and `predrain unhalt`: through the service if it answers, else straight into its store."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import Annotated

from cyclopts import Parameter

from predrain.data.outside_text import HALT_WHY, clean_text
from predrain.data.refusal import Refusal
from predrain.service.cli.client import Answered, Client
from predrain.service.cli.options import HERE, AsJson, Where, print_json
from predrain.service.cli.person import name_account
from predrain.service.cli.recording import record_done


class NothingToHalt(Refusal):
    """The state directory holds no store."""


def halt(
    *,
    why: Annotated[str, Parameter(help="Why, for whoever finds it halted.")] = "",
    where: Where = HERE,
    as_json: AsJson = False,
) -> int:
    """No command is sent to the cluster from now on, until `predrain unhalt`. Works with the service down: then only
    what reads the same store is halted; a sentence says so, and the exit code is 3.

    Example: predrain halt --why "switch maintenance"
    """
    return _set(where, why or f"halted by {name_account()}", as_json)


def unhalt(*, where: Where = HERE, as_json: AsJson = False) -> int:
    """Lift the halt. Where it was lifted only here, a sentence says so, and the exit code is 3.

    Example: predrain unhalt
    """
    return _set(where, None, as_json)


def _set(where: Where, why: str | None, as_json: bool) -> int:
    # A halt comes through however long its reason is.
    why = None if why is None else clean_text(why, HALT_WHY.limit) or "no reason given"
    try:
        body = Client.of(where.settings()).post("halt", {"why": why}).body
        # A service of an older release says neither of the two.
        halted, unreached, kept = body["halted"], body.get("unreached"), body.get("kept", [])
    except Refusal as refused:
        if why is None and isinstance(refused, Answered):
            raise  # it has said why the halt stands, and stand it does
        # Whatever is wrong with the service, a halt must come through: the controller reads the store.
        halted = _store(where, why)
        unreached, kept = _only_here(where, why, refused), ["store"] if halted else []
    if as_json:
        print_json({"halted": halted, "unreached": unreached, "kept": kept})
    else:
        places = f" (kept in: {', '.join(kept)})" if kept else ""
        print(f"halted: {halted}{places}" if halted else "not halted")
    if unreached:
        print(f"only here: {unreached}", file=sys.stderr)
    return 3 if unreached else 0


def _only_here(where: Where, why: str | None, refused: Refusal) -> str:
    store = (
        f"No service could be asked ({refused}); the store of {where.settings().service.state} says it alone."
    )
    if why is None:
        return f"{store} A halt in the cluster, if there is one, stands: ceph config-key rm predrain/halt."
    return f"{store} A controller that keeps another store goes on: ceph config-key set predrain/halt WHY halts it."


def _store(where: Where, why: str | None) -> str | None:
    from predrain.data.clock import SystemClock
    from predrain.data.store.faults import StoreRefusal
    from predrain.service.backends import standing_store
    from predrain.service.halt import record_halt

    settings = where.settings()
    with standing_store(settings) as store:
        if store is None:
            raise NothingToHalt(
                f"{settings.service.state} holds no store, so there is nothing to halt; say --state or --config"
            )
        store.set_halt(why)
        halted = store.halt_reason()
        with suppress(StoreRefusal):  # the halt stands, whether or not it is among the events
            record_halt(store, why, name_account(), SystemClock().now())
    record_done(settings, "halt" if why else "unhalt", {"why": why})
    return halted
