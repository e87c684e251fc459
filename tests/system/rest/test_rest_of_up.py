"""REST of a real `predrain up`, tried from its own description, and by the client for programs."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.checks import negative_data_rejection, positive_data_acceptance

from predrain import Client, Unreachable
from predrain.data.wire import encode_envelope
from tests.deadlines import idle_seconds
from tests.service.conftest import smart_reading
from tests.system.conftest import PREDRAIN

pytestmark = [pytest.mark.system, pytest.mark.slow]
PATIENCE = 120.0


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """Address and token of a service on a free port, without a cluster."""
    folder = tmp_path_factory.mktemp("up")
    state, config = folder / "state", folder / "predrain.toml"
    config.write_text(
        f'[service]\nport = 0\nstate = "{state}"\n'
        "[access]\nrequests_per_second = 1e6\naddress_requests_per_second = 1e6\n"
    )
    with (folder / "said").open("wb") as said:
        process = subprocess.Popen([PREDRAIN, "up", "--config", config], stdout=said, stderr=said)
        try:
            yield _url(state, process), (state / "token").read_text().strip()
        finally:
            process.terminate()
            process.wait(60)


def _url(state: Path, process: subprocess.Popen[bytes]) -> str:
    end = idle_seconds() + PATIENCE
    while idle_seconds() < end and process.poll() is None:
        if (state / "url").exists() and (url := (state / "url").read_text().strip()):
            return url
        time.sleep(0.1)
    pytest.fail("the service did not start")


def test_no_answer_of_a_running_service_is_one_that_its_document_does_not_allow(
    running: tuple[str, str],
) -> None:
    url, token = running
    api = schemathesis.openapi.from_url(f"{url}/api/v1/openapi.json").exclude(path="/api/v1/events")
    for found in api.get_all_operations():
        _try(found.ok().as_strategy(), {"Authorization": f"Bearer {token}"})


def _try(requests: Any, headers: dict[str, str]) -> None:
    @given(requests)
    @settings(
        max_examples=2, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck),
        phases=(Phase.explicit, Phase.generate), database=None,
    )  # fmt: skip
    def holds(case: schemathesis.Case) -> None:
        # A valid request may name a thing that does not exist, and the items of an array are refused one by one.
        case.call_and_validate(
            headers=headers, excluded_checks=[positive_data_acceptance, negative_data_rejection]
        )

    holds()


def test_a_program_sends_a_reading_and_finds_the_disk_with_its_outlook(running: tuple[str, str]) -> None:
    client = Client(*running)
    client.lift_halt()
    reading = smart_reading("CLIENT", datetime.now(UTC), pending=400)
    sealed: dict[str, Any] = json.loads(
        encode_envelope(reading, producer="test", sequence=0, sent_at=datetime.now(UTC))
    )
    assert client.send_readings([sealed]).accepted == 1
    end = idle_seconds() + PATIENCE
    while idle_seconds() < end:
        found = {one.device: one for one in client.outlooks()}
        if reading.device in found:
            break
        time.sleep(0.2)
    else:
        pytest.fail("no outlook came")
    assert found[reading.device].reasons[0].sentence
    assert client.device(reading.device).host == "stor-01"
    assert reading.device in {one.device for one in client.devices()}


def test_a_client_of_nobody_says_that_nobody_answers(tmp_path: Path) -> None:
    with pytest.raises(Unreachable, match="no service answers at"):
        Client("http://127.0.0.1:9", seconds=5).status()
