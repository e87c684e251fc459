"""The doctor's findings about a real PostgreSQL that answers, refuses a password, is away, has no store, or has a store
of an older format.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from predrain.data.clock import SystemClock
from predrain.data.store import store_schema
from predrain.data.store.postgres_store import migrate_postgres_store
from predrain.service.config.settings import load_settings
from predrain.service.doctor import examination
from predrain.service.doctor.examination import run_doctor_checks
from predrain.service.doctor.finding import Finding
from predrain.service.doctor.remote_checks import check_postgresql
from tests.system.postgres.server import Server

Told = Callable[[str], dict[str, Finding]]

pytestmark = pytest.mark.system


@pytest.fixture
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: Server) -> Told:
    server.start()
    monkeypatch.setattr(examination, "LOOKS", (("postgresql", check_postgresql),))

    def told(url: str) -> dict[str, Finding]:
        file = tmp_path / "predrain.toml"
        file.write_text(f"[store]\nurl = '{url}'\n")
        return {
            one.what: one
            for one in run_doctor_checks(load_settings(file, {}), tmp_path / "state", SystemClock())
        }

    return told


def test_a_server_that_is_there_is_told_with_its_version_and_clock(told: Told, url: str) -> None:
    found = told(url)
    assert found["postgresql"].state == "ok"
    assert f"store of version {store_schema.VERSION}" in found["postgresql"].told
    assert "PostgreSQL 1" in found["postgresql"].told
    assert found["clock, PostgreSQL"].state == "ok"


def test_the_doctor_reports_each_fault_of_a_server_with_its_cure(told: Told, server: Server) -> None:
    empty = server.database()
    assert "run `predrain store migrate`" in told(server.url(empty))["postgresql"].told
    older = server.url(server.database())
    migrate_postgres_store(older, store_schema.VERSION - 1)
    assert "run `predrain store migrate`" in told(older)["postgresql"].told
    server.run(
        "DO $$ BEGIN CREATE ROLE wary LOGIN PASSWORD 'right'; EXCEPTION WHEN duplicate_object THEN NULL; END $$"
    )
    refused = told(server.url(empty, "wary:wrong"))["postgresql"]
    assert refused.state == "wrong"
    assert "correct it in the URL or in ~/.pgpass" in refused.told
    assert "wrong@" not in refused.told
    assert "make it with `createdb`" in told(server.url("nowhere"))["postgresql"].told


def test_a_server_that_is_away_is_told(told: Told, server: Server) -> None:
    url = server.url(server.database())
    server.stop()
    found = told(url)["postgresql"]
    assert found.state == "wrong"
    assert "see that the server runs and can be reached from here" in found.told
