"""No class of callers takes what another one needs, and a halt always gets through."""

from __future__ import annotations

import json
import re
import resource
import time
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from predrain.service.rest.caller_classes import STREAMS_OF_ONE
from tests.attack.crowding import SilentProvider, crowd_sign_ins, open_event_streams
from tests.attack.target import NO_RATES, Target, running_service

pytestmark = [pytest.mark.system, pytest.mark.slow]
MIB = 1 << 20


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    with running_service(tmp_path_factory.mktemp("crowded"), settings=NO_RATES) as running:
        yield running


def test_thousands_of_event_streams_of_one_caller_stop_nobody(target: Target) -> None:
    outcome = open_event_streams(target)
    assert outcome.got_through <= STREAMS_OF_ONE, outcome
    assert outcome.refused == outcome.tried - outcome.got_through
    assert outcome.strain.served_promptly, outcome
    assert outcome.strain.memory_growth_bytes < 96 * MIB, outcome


def test_a_halt_gets_through_while_sign_ins_wait_for_a_silent_provider(tmp_path: Path) -> None:
    with SilentProvider() as provider:
        settings = (
            'external_url = "http://localhost"\n'
            f"{NO_RATES}"
            f'[oidc]\nissuer = "http://127.0.0.1:{provider.port}"\nclient_id = "predrain"\nread = ["*"]\n'
        )
        with running_service(tmp_path, settings=settings) as target:
            outcome, seconds = crowd_sign_ins(target)
            assert outcome.got_through == 0, outcome
            assert seconds < max(1.0, 20 * outcome.strain.idle_probe_seconds)
            assert outcome.strain.served_promptly, outcome


def test_a_halt_works_with_a_full_disk_and_says_where_it_is_kept(tmp_path: Path) -> None:
    with running_service(tmp_path, settings=NO_RATES) as target:
        _fill_disk_of(target)
        halted = _halt(target, "the disk is full")
        assert halted["halted"] == "the disk is full"
        assert halted["stored_in"] == ["memory"]
        assert re.search("ends with it: make room", halted["unreached"])
        assert _get_halt(target)["halted"] == "the disk is full"
        _empty_disk_of(target)
        assert _wait_for_place(target, "store")["unreached"] is None
    with running_service(tmp_path, settings=NO_RATES) as target:
        assert _get_halt(target)["halted"] == "the disk is full", "it outlived the process"


def _fill_disk_of(target: Target) -> None:
    """No file of the process may grow from now on, as on a full disk."""
    _limit_files(target, "0")


def _empty_disk_of(target: Target) -> None:
    _limit_files(target, "unlimited")


def _limit_files(target: Target, most: str) -> None:
    soft = resource.RLIM_INFINITY if most == "unlimited" else int(most)
    resource.prlimit(target.pid, resource.RLIMIT_FSIZE, (soft, resource.RLIM_INFINITY))


def _halt(target: Target, why: str) -> dict[str, Any]:
    return _ask(target, "POST", json.dumps({"reason": why}))


def _get_halt(target: Target) -> dict[str, Any]:
    return _ask(target, "GET", None)


def _ask(target: Target, method: str, body: str | None) -> dict[str, Any]:
    connection = HTTPConnection(target.host, target.port, timeout=60)
    try:
        headers = {"Authorization": f"Bearer {target.token}", "Content-Type": "application/json"}
        connection.request(method, "/api/v1/halt", body, headers)
        answer = connection.getresponse()
        said = answer.read()
        assert answer.status == 200, said
        found: dict[str, Any] = json.loads(said)
        return found
    finally:
        connection.close()


def _wait_for_place(target: Target, place: str) -> dict[str, Any]:
    end = time.monotonic() + 60
    while (found := _get_halt(target))["stored_in"] != [place]:
        assert time.monotonic() < end, found
        time.sleep(0.2)
    return found
