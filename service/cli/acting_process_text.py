"""The controller that acts on a drain once a command has ended, and the consequence for the person who typed it."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

from predrain.actions.cluster.lease_owner import LeaseOwner
from predrain.data.drain import DrainState
from predrain.service.cli.cluster_connection import DrainAddress
from predrain.service.cli.shared_options import StateAddress
from predrain.service.drains.acting_process import (
    START,
    ActingController,
    ActingPlace,
    describe_acting_controller,
)
from predrain.service.runtime.process_identity import name_process
from predrain.service.terminal.service_connection import CliClient, Json

NEEDS_CONTROLLER = frozenset(
    {
        DrainState.APPROVED,
        DrainState.PREPARING,
        DrainState.DRAINING,
        DrainState.HOLDING,
        DrainState.DRAINED,
        DrainState.CANCELLING,
    }
)
"""States in which the next thing that happens is a controller's work, no person's."""


def acting_in(answer: Json, client: CliClient) -> ActingController | None:
    """Return the controller that acts when this command has ended, by an answer about drains. None: a service of an
    older release does not say. A service of the command's own ends with it.
    """
    told = answer.get("acting")
    if told is None:
        return None
    place = ActingPlace(told["place"])
    if client.own and place is ActingPlace.HERE:
        return ActingController(ActingPlace.NOWHERE)
    owner = None if told["owner"] is None else LeaseOwner(told["owner"], told["host"], told["pid"])
    until = None if told["until"] is None else datetime.fromisoformat(told["until"])
    return ActingController(place, owner, until, told["reason"])


def describe_here(acting: ActingController, where: StateAddress) -> str:
    """Name the controller that acts, in a sentence with the command that starts one on this state."""
    given = (("--config", where.config), ("--state", where.state))
    return describe_acting_controller(acting, " ".join([START, *_quote_options(given)]))


def report_nobody(drains: list[Json], client: CliClient, where: DrainAddress) -> bool:
    """Say on stderr of each drain for which a controller is needed that none runs; whether there was any."""
    waiting = False
    for one in drains:
        acting = acting_in(one, client)
        if acting is not None and acting.place is ActingPlace.NOWHERE and one["state"] in NEEDS_CONTROLLER:
            waiting = True
            state = one.get("state_text") or one["state"]
            kept = f"it is written down that {one['id']} is {state}, and nothing more was done"
            print(f"predrain: {kept}. {describe_here(acting, where)}", file=sys.stderr)
    return waiting


@contextmanager
def tell_forwarding(named: str, one: Json, client: CliClient) -> Iterator[None]:
    """Say on stderr that another controller is asked, and how long its answer took. named: the drain as it was typed.
    one: the drain as `client` answered it.
    """
    acting = acting_in(one, client)
    if acting is None or acting.place is not ActingPlace.ELSEWHERE or acting.owner is None:
        yield
        return
    begun, asked = time.monotonic(), f"{named}: asked the controller on {name_process(acting.owner)}"
    print(f"predrain: {asked}, which holds the lease", file=sys.stderr)
    yield
    print(f"predrain: {named}: accepted after {time.monotonic() - begun:.1f} s", file=sys.stderr)


def options_of(where: DrainAddress) -> str:
    """The options that were given, as they are typed again, with a blank before them."""
    words = _quote_options(
        (
            ("--url", where.url),
            ("--token-file", where.token_file),
            ("--token", where.token),
            ("--ca-file", where.ca_file),
            ("--config", where.config),
            ("--state", where.state),
            ("--conf", where.conf),
            ("--name", where.name),
            ("--keyring", where.keyring),
            ("--cluster-name", where.cluster_name),
        )
    )
    if where.insecure_without_tls:
        words.append("--insecure-without-tls")
    return "".join(f" {word}" for word in words)


def _quote_options(given: tuple[tuple[str, object], ...]) -> list[str]:
    return [word for name, value in given if value is not None for word in (name, shlex.quote(str(value)))]
