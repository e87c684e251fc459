"""What a command asked for, of which service or cluster, and whether it was accepted: one line, or one object."""

from __future__ import annotations

import sys
from dataclasses import asdict, dataclass, replace

from predrain.service.cli.acting import tell_forwarding
from predrain.service.cli.client import Answered, Client, Json
from predrain.service.cli.connect import Reach
from predrain.service.cli.options import line
from predrain.service.cli.watching import quote_drain_id, read_state_text

GOES_ON = frozenset({"proposed", "approved", "preparing", "draining", "holding", "drained"})
"""A drain in one of these states is what `apply --yes` asks for: it goes on with that drain."""


@dataclass(frozen=True, slots=True)
class Request:
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
        return line(f"asked {self.of}: {self.asked}; {answer}")

    def to_json(self) -> Json:
        """The same for programs."""
        return {**asdict(self), "accepted": self.refused is None}


def report_request(request: Request, *, as_json: bool) -> None:
    """Print the line to stderr; of an accepted request only for people, since its object has the same for programs."""
    if request.refused is not None or not as_json:
        print(f"predrain: {request.sentence}", file=sys.stderr, flush=True)


def name_asked(client: Client, where: Reach) -> str:
    """The service that a command asks; where the command is a service of its own, the cluster."""
    from predrain.service.live_cluster import conf_of

    if not client.own:
        return f"the service at {client.url}"
    if where.recorded is not None:
        return f"the recording {where.recorded}"
    return f"the cluster of {conf_of(where.settings().ceph)}"


def begin_drain(client: Client, of: str, body: Json, *, yes: bool) -> tuple[Request, Json | None]:
    """Ask for a drain, with `yes` for its approval, too; the request as it was answered, and the drain.

    With `yes` the drain of that kind that the target has already is approved, where there is one.
    """
    target, verb = body["target"], "fill" if body["intent"] == "fill" else "drain"
    removal, approval = " for removal" if body["intent"] == "remove" else "", " with approval" if yes else ""
    request = Request(f"{verb} {target}{removal}{approval}", of)
    try:
        with tell_forwarding(target, client.get("drains?limit=1"), client):
            one = _propose_or_find(client, body, yes=yes)
            request = replace(request, drain=one["id"])
            if yes and one["state"] == "proposed":
                one = approve_drain(client, one)
    except Answered as answer:
        return replace(request, refused=str(answer)), None
    return request, one


def _propose_or_find(client: Client, body: Json, *, yes: bool) -> Json:
    """The drain that was asked for, or with `yes` the one that the target has already. Raises Answered."""
    try:
        return client.post("drains", body).body
    except Answered as answer:
        standing = answer.body.get("drain") if yes else None
        if not isinstance(standing, str):
            raise
        one = client.get(f"drains/{quote_drain_id(standing)}")
        if one["intent"] != body["intent"] or one["state"] not in GOES_ON:
            raise
        told = f"goes on with drain {one['id']}, which is {read_state_text(one)}"
        print(f"predrain: {body['target']}: {told}", file=sys.stderr)
        return one


def approve_drain(client: Client, one: Json) -> Json:
    """Approve the plan that `one` shows; the drain. Raises Answered."""
    return client.post(f"drains/{quote_drain_id(one['id'])}/approve", if_match=one["etag"]).body


def hand_over_drain(client: Client, of: str, named: str, one: Json) -> tuple[Request, Json | None]:
    """Say that the disk of the drain `one` may be pulled; the request as it was answered, and what is left to do.

    named: the drain as it was typed.
    """
    request = Request(f"hand over {named}", of, one["id"])
    try:
        with tell_forwarding(named, one, client):
            return request, client.post(f"drains/{quote_drain_id(one['id'])}/hand_over").body
    except Answered as answer:
        return replace(request, refused=str(answer)), None
