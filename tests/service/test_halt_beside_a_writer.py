"""A halt gets through while something else writes into the store: a backup, a shell, a long transaction of our own."""

from __future__ import annotations

import sqlite3

import pytest

from tests.deadlines import idle_seconds
from tests.service.conftest import Place, Site


@pytest.mark.slow
def test_a_halt_is_answered_from_memory_while_the_store_is_held_and_written_when_it_is_not(
    site: Site, place: Place
) -> None:
    holder = sqlite3.connect(place.state.store, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    began = idle_seconds()
    for why in ("smoke", "fire"):
        answer = site.client.post("/api/v1/halt", json={"reason": why}, headers=site.acting)
        assert answer.status_code == 200, answer.text
        assert (answer.json()["halted"], answer.json()["stored_in"]) == (why, ["memory"])
        assert "Something else holds the store" in answer.json()["unreached"]
    assert idle_seconds() - began < 10
    assert site.application.find_halt_reason() is not None
    holder.execute("ROLLBACK")
    holder.close()
    until, found = idle_seconds() + 30, {}
    while [found.get(field) for field in ("halted", "by", "stored_in")] != ["fire", "token-file", ["store"]]:
        found = site.client.get("/api/v1/halt").json()
        assert idle_seconds() < until, found


@pytest.mark.slow
def test_the_audit_has_the_line_of_a_halt_that_was_answered_before_it_was_written(
    site: Site, place: Place
) -> None:
    holder = sqlite3.connect(place.state.store, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    site.client.post("/api/v1/halt", json={"reason": "smoke"}, headers=site.acting)
    holder.execute("ROLLBACK")
    holder.close()
    until = idle_seconds() + 30
    while not [line for line in site.application.store.journal("audit") if "smoke" in line.decided]:
        assert idle_seconds() < until
