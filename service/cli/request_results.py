"""The request of a command, its service or cluster, and whether it was accepted: one line, or one object."""

from __future__ import annotations

import sys
from dataclasses import asdict, dataclass, replace

from predrain.service.cli.acting_process_text import tell_forwarding
from predrain.service.cli.cluster_connection import DrainAddress
from predrain.service.cli.drain_progress import quote_drain_id, read_state_text
from predrain.service.cli.shared_options import escape_to_one_line
from predrain.service.terminal.service_connection import CliClient, Json, ServiceRefused

GOES_ON = frozenset({"proposed", "approved", "preparing", "draining", "holding", "drained"})
"""A drain in one of these states is what `apply --yes` asks for: it goes on with that drain."""


@dataclass(frozen=True, slots=True)
class DrainRequestResult:
    """A request about one drain, as it was answered. `of`: the service or the cluster that was asked. `drain`: the id
    of the drain, where there is one. `refused`: the sentence that refused it; None where it was accepted.
    """

    asked: str
    of: str
    drain: str | None = None
    refused: str | None = None

    @property
    def accepted_as(self) -> str | None:
        """The drain's id; None where it was refused."""
        return self.drain if self.refused is None else None

    @property
    def sentence(self) -> str:
        """One line for people."""
        kept = f" The drain is {self.drain}." if self.drain is not None else ""
        answer = f"accepted as {self.drain}" if self.refused is None else f"refused: {self.refused}{kept}"
        return escape_to_one_line(f"asked {self.of}: {self.asked}; {answer}")

    def to_json(self) -> Json:
        """The same for programs."""
        return {**asdict(self), "accepted": self.refused is None}


def report_request(request: DrainRequestResult, *, as_json: bool) -> None:
    """Print the line to stderr; of an accepted request only for people, since its object has the same for programs."""
    if request.refused is not None or not as_json:
        print(f"predrain: {request.sentence}", file=sys.stderr, flush=True)


def name_asked(client: CliClient, where: DrainAddress) -> str:
    """The service that a command asks; where the command is a service of its own, the cluster."""
    from predrain.service.drains.live_cluster import conf_of

    if not client.own:
        return f"the service at {client.url}"
    if where.recorded is not None:
        return f"the recording {where.recorded}"
    return f"the cluster of {conf_of(where.settings().ceph)}"


def begin_drain(
    client: CliClient, of: str, body: Json, *, yes: bool
) -> tuple[DrainRequestResult, Json | None]:
    """Ask for a drain, with `yes` for its approval, too; the request as it was answered, and the drain.

    With `yes` the drain of that kind that the target has already is approved, where there is one.
    """
    target, verb = body["target"], "fill" if body["intent"] == "fill" else "drain"
    removal, approval = " for removal" if body["intent"] == "remove" else "", " with approval" if yes else ""
    request = DrainRequestResult(f"{verb} {target}{removal}{approval}", of)
    try:
        with tell_forwarding(target, client.get("drains?limit=1"), client):
            one = _propose_or_find(client, body, yes=yes)
            request = replace(request, drain=one["id"])
            if yes and one["state"] == "proposed":
                one = approve_drain(client, one)
    except ServiceRefused as answer:
        return replace(request, refused=str(answer)), None
    return request, one


def _propose_or_find(client: CliClient, body: Json, *, yes: bool) -> Json:
    """Propose a drain and return it, or return with `yes` the target's existing drain. Raises ServiceRefused."""
    try:
        return client.post("drains", body).body
    except ServiceRefused as answer:
        standing = answer.body.get("drain") if yes else None
        if not isinstance(standing, str):
            raise
        one = client.get(f"drains/{quote_drain_id(standing)}")
        if one["intent"] != body["intent"] or one["state"] not in GOES_ON:
            raise
        told = f"goes on with drain {one['id']}, which is {read_state_text(one)}"
        print(f"predrain: {body['target']}: {told}", file=sys.stderr)
        return one


def approve_drain(client: CliClient, one: Json) -> Json:
    """Approve the plan that `one` shows; the drain. Raises Answered."""
    return client.post(f"drains/{quote_drain_id(one['id'])}/approve", if_match=one["etag"]).body


def hand_over_drain(
    client: CliClient, of: str, named: str, one: Json
) -> tuple[DrainRequestResult, Json | None]:
    """Say that the disk of the drain `one` may be pulled; the request as it was answered, and what is left to do.

    named: the drain as it was typed.
    """
    request = DrainRequestResult(f"hand over {named}", of, one["id"])
    try:
        with tell_forwarding(named, one, client):
            return request, client.post(f"drains/{quote_drain_id(one['id'])}/hand_over").body
    except ServiceRefused as answer:
        return replace(request, refused=str(answer)), None
