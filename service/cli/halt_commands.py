"""`predrain halt` and `predrain unhalt`: through the service if it answers, else straight into its store."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import Annotated

from cyclopts import Parameter

from predrain.data.outside_text import HALT_WHY, clean_text
from predrain.data.refusal import Refusal
from predrain.service.cli.audited_commands import record_done
from predrain.service.cli.shared_options import HERE, AsJson, ServiceAddress, print_json
from predrain.service.terminal.person import name_account
from predrain.service.terminal.service_connection import CliClient, ServiceRefused


class NothingHalted(Refusal):
    """The service on another machine did not take the halt, or its lifting."""


class NothingToHalt(Refusal):
    """The state directory holds no store."""


def set_halt_command(
    *,
    reason: Annotated[str, Parameter(help="The reason, for a person who finds it halted.")] = "",
    where: ServiceAddress = HERE,
    as_json: AsJson = False,
) -> int:
    """No command is sent to the cluster from now on, until `predrain unhalt`. Works with the service down: then only
    what reads the same store is halted; a sentence says so, and the exit code is 3.

    Example: predrain halt --reason "switch maintenance"
    """
    return _change_halt(where, reason or f"halted by {name_account()}", as_json)


def lift_halt_command(*, where: ServiceAddress = HERE, as_json: AsJson = False) -> int:
    """Lift the halt. Where it was lifted only here, a sentence says so, and the exit code is 3.

    Example: predrain unhalt
    """
    return _change_halt(where, None, as_json)


def _change_halt(where: ServiceAddress, why: str | None, as_json: bool) -> int:
    # A halt with a reason that is too long is accepted, too: the reason is cut.
    why = None if why is None else clean_text(why, HALT_WHY.limit) or "no reason given"
    remote = where.remote_client()
    try:
        body = (remote or CliClient.from_settings(where.settings())).post("halt", {"reason": why}).body
        # A service of an older release answers without these two fields.
        halted, unreached, kept = body["halted"], body.get("unreached"), body.get("stored_in", [])
    except Refusal as refused:
        if remote is not None:
            raise _describe_remote_failure(why, refused) from refused
        if why is None and isinstance(refused, ServiceRefused):
            raise  # the service refused to lift the halt and said why
        # A halt must take effect even if the service fails: the controller reads the store.
        halted = _write_halt_to_store(where, why)
        unreached, kept = _only_here(where, why, refused), ["store"] if halted else []
    if as_json:
        print_json({"halted": halted, "unreached": unreached, "stored_in": kept})
    else:
        places = f" (kept in: {', '.join(kept)})" if kept else ""
        print(f"halted: {halted}{places}" if halted else "not halted")
    if unreached:
        print(f"only here: {unreached}", file=sys.stderr)
    return 3 if unreached else 0


def _describe_remote_failure(why: str | None, refused: Refusal) -> Refusal:
    """Return the refusal of a remote service that could not be asked; the store of this machine is another one's."""
    if why is None:
        return NothingHalted(f"{refused}; nothing was changed")
    return NothingHalted(
        f"{refused}; nothing was halted. Without the service, each of these halts it: `predrain halt` on its machine, "
        "and on the cluster: ceph config-key set predrain/halt WHY"
    )


def _only_here(where: ServiceAddress, why: str | None, refused: Refusal) -> str:
    store = (
        f"No service could be asked ({refused}); the store of {where.settings().service.state} says it alone."
    )
    if why is None:
        return f"{store} A halt in the cluster, if there is one, stands: ceph config-key rm predrain/halt."
    return f"{store} A controller that keeps another store goes on: ceph config-key set predrain/halt WHY halts it."


def _write_halt_to_store(where: ServiceAddress, why: str | None) -> str | None:
    from predrain.data.clock import SystemClock
    from predrain.data.store.store_faults import StoreRefusal
    from predrain.service.config.state_directory import StateDir
    from predrain.service.drains.halt import record_halt
    from predrain.service.storage.backends import open_halt_store, place_of_store, require_present_version

    settings = where.settings()
    with open_halt_store(settings) as store:
        if store is None:
            raise NothingToHalt(
                f"{settings.service.state} holds no store, so there is nothing to halt; say --state or --config"
            )
        store.set_halt(why)
        halted = store.halt_reason()
        with suppress(
            StoreRefusal
        ):  # the halt holds with or without its event, which older formats cannot keep
            require_present_version(place_of_store(settings, StateDir(settings.service.state)))
            record_halt(store, why, name_account(), SystemClock().now())
    record_done(settings, "halt" if why else "unhalt", {"reason": why})
    return halted
