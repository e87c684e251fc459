"""Attacks on who may do what: credentials that are exchanged for others, and addresses that are made up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import httpx2

from predrain.service.rest.authentication import CSRF_HEADER
from tests.attack.outcome import FINISHED, AttackOutcome

READINGS, LATENCY, HALT = "/api/v1/readings", "/api/v1/latency", "/api/v1/halt"


def deliver_for_other_hosts_by_cookie(
    client: httpx2.Client, token: str, readings: Sequence[Any], latencies: Sequence[Any]
) -> AttackOutcome:
    """Exchange a host's token for a cookie and deliver what belongs to other hosts.

    readings, latencies: envelopes, each of a host that is not the token's.
    """
    assert client.post("/api/v1/session", json={"token": token}).status_code == 204
    session = client.get("/api/v1/session").json()
    outcome = AttackOutcome("a cookie in exchange for a host's token")
    for path, items in ((READINGS, readings), (LATENCY, latencies)):
        for item in items:
            answer = client.post(path, json=[item], headers={CSRF_HEADER: session["csrf_token"]})
            outcome.count(refused=answer.status_code >= 400 or answer.json()["accepted"] == 0)
    FINISHED.append(outcome)
    return outcome


def act_without_credential(client: httpx2.Client, count: int) -> AttackOutcome:
    """Ask for a halt `count` times without a credential, each time from another address that a header makes up."""
    outcome = AttackOutcome("made-up addresses of the sender")
    for number in range(count):
        address = f"198.{18 + number // 65536 % 2}.{number // 256 % 256}.{number % 256}"
        headers = {
            "X-Forwarded-For": address,
            "X-Real-IP": address,
            "Forwarded": f"for={address}",
            "X-Forwarded-Proto": "https",
        }
        answer = client.post(HALT, json={"reason": f"number {number}"}, headers=headers)
        outcome.count(refused=answer.status_code in (401, 429))
    FINISHED.append(outcome)
    return outcome


def read_as_this_machine(client: httpx2.Client) -> AttackOutcome:
    """Read without a token through something that stands between, which some header of a proxy tells."""
    outcome = AttackOutcome("the rights of this machine, through a proxy")
    for header in (
        "X-Forwarded-For",
        "X-Forwarded-Host",
        "X-Forwarded-Proto",
        "X-Real-IP",
        "Forwarded",
        "Via",
    ):
        for said in ("127.0.0.1", "::1", "for=127.0.0.1", "1.1 proxy", ""):
            answer = client.get("/api/v1/status", headers={header: said})
            outcome.count(refused=answer.status_code == 401)
    FINISHED.append(outcome)
    return outcome
