"""A worker or controller of its own answers `/metrics` alone, and all parts together tell what the alerts ask for."""

from __future__ import annotations

import asyncio
import re
import socket
import ssl
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx2
import pytest
import trustme
import uvicorn
from prometheus_client.parser import text_string_to_metric_families

from predrain.data.log.log_port import Record, Topic
from predrain.data.log.memory_log import MemoryLog
from predrain.data.store.sqlite_store import SqliteStore
from predrain.data.store.store_faults import StoreAway
from predrain.service.app.roles import CONTROLLING, SERVING
from predrain.service.cli import main
from predrain.service.config.settings import ServiceTable, Settings
from predrain.service.forecasting.bundle_choice import BundledForecaster
from predrain.service.forecasting.deployed_models import DeployedModels
from predrain.service.http.server import CannotListen, UnencryptedListen, run_metrics_server
from predrain.service.processes.worker_process import WorkerProcess
from predrain.service.rest.metrics import MeasuredProcess
from tests.service.conftest import SetClock, week_of
from tests.service.person_requests import propose_drain
from tests.service.test_service_parts import Premises, approve, asking, premises
from tests.service.test_shared_worker import put

__all__ = ["premises"]

RULES = sorted(
    one
    for one in (Path(__file__).parents[2] / "deploy" / "prometheus").glob("*.yml")
    if one.stem != "prometheus"
)
NOT_APART = {"predrain_forecast_concern"}
"""Only who scores with a scorebook looks at the forecast: `predrain up`. docs/alerts says so."""
Series = dict[str, dict[tuple[str, ...], float]]


@contextmanager
def answering(process: MeasuredProcess, **service: object) -> Iterator[httpx2.Client]:
    """A client of the address at which `process` says that its metrics are."""
    told: list[str] = []
    settings = Settings(service=ServiceTable(metrics_port=0).model_copy(update=service))
    with run_metrics_server(process, settings, told.append):
        (line,) = told
        url = line.removeprefix("metrics are at ").removesuffix("/metrics")
        with httpx2.Client(base_url=url, timeout=60) as client:
            yield client


def scraped(client: httpx2.Client) -> Series:
    """Every series by its name and labels' values."""
    answer = client.get("/metrics")
    assert answer.status_code == 200, answer.text
    found: Series = {}
    for family in text_string_to_metric_families(answer.text):
        name = f"{family.name}_total" if family.type == "counter" else family.name
        found[name] = {tuple(one.labels.values()): one.value for one in family.samples}
    return found


def in_rules() -> set[str]:
    """Every metric of predrain's that a rule which ships asks for, but for those of collectors."""
    expressions = (
        expression
        for rules in RULES
        for expression in re.findall(r"(?m)^ +expr: (.+(?:\n {10,}.+)*)", rules.read_text())
    )
    named = {name for one in expressions for name in re.findall(r"\bpredrain_\w+", one)}
    return {name for name in named if not name.startswith("predrain_collector_")}


@pytest.fixture
def working(tmp_path: Path, forecaster: BundledForecaster) -> Iterator[WorkerProcess]:
    """A worker on a log with a week of one bad disk and a record that nobody can read."""
    log, store = MemoryLog(), SqliteStore(tmp_path / "store.db")
    put(log, week_of("A", pending=400))
    log.append(Topic.READINGS, [Record("ST4000DM000_B", b"not a reading")])
    yield WorkerProcess(log, store, SetClock(), DeployedModels(lambda: forecaster, None), "worker")
    store.close()


def test_a_worker_tells_what_it_took_judged_and_could_not_take(working: WorkerProcess) -> None:
    with answering(working) as client:
        assert scraped(client)["predrain_ready"] == {(): 0}
        working.step()
        told = scraped(client)
    assert told["predrain_ready"] == {(): 1}
    assert told["predrain_readings_processed_total"] == {(): 9}
    assert told["predrain_readings_dead_lettered_total"] == {(): 1}
    assert told["predrain_worker_lag_seconds"] == {(): 0}
    assert told["predrain_bundle_info"] == {("default",): 1}
    assert told["predrain_store_up"] == {(): 1}


def test_a_worker_says_nothing_of_disks_since_it_knows_a_share_of_them_alone(working: WorkerProcess) -> None:
    working.step()
    with answering(working) as client:
        told = scraped(client)
    assert not {"predrain_devices", "predrain_hosts", "predrain_drains", "predrain_halted"} & told.keys()


def test_a_worker_without_its_store_still_says_what_is_broken(
    working: WorkerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: object, **__: object) -> None:
        raise StoreAway("PostgreSQL does not answer")

    monkeypatch.setattr(working.store, "journal", away)
    working.faults["worker"] = "PostgreSQL does not answer"
    with answering(working) as client:
        told = scraped(client)
    assert told["predrain_store_up"] == {(): 0}
    assert told["predrain_fault"]["worker",] == 1


def test_a_controller_tells_whether_it_decides_and_what_is_drained(premises: Premises) -> None:
    controller = premises.application(CONTROLLING, "first")
    other = premises.application(CONTROLLING, "second")
    premises.tick(controller, other, times=3)
    with answering(controller) as client, answering(other) as beside:
        assert scraped(client)["predrain_controller_running"] == {(): 1}
        assert scraped(client)["predrain_osds"] == {(): 12}
        assert scraped(client)["predrain_drains"]["proposed",] == 0
        assert scraped(beside)["predrain_controller_running"] == {(): 0}
        assert "predrain_ready" not in scraped(client)
        controller.halt("storm", "till")
        assert scraped(client)["predrain_controller_running"] == {(): 0}


def test_the_address_is_told_once_requests_are_answered_there(
    working: WorkerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = uvicorn.Server.startup

    async def start_slowly(server: uvicorn.Server, sockets: list[socket.socket] | None = None) -> None:
        await asyncio.sleep(0.3)
        await start(server, sockets)

    monkeypatch.setattr(uvicorn.Server, "startup", start_slowly)
    with answering(working) as client:
        assert client.head("/metrics").status_code == 200


def test_nothing_can_be_done_there_but_read(working: WorkerProcess) -> None:
    with answering(working) as client:
        assert client.head("/metrics").status_code == 200
        for method in ("POST", "PUT", "PATCH", "DELETE", "OPTIONS"):
            assert client.request(method, "/metrics").status_code == 405
        for path in ("/", "/healthz", "/api/v1/status", "/api/v1/halt", "/api/v1/openapi.json"):
            assert client.get(path).status_code == 404
            assert client.post(path).status_code == 404
        assert client.request("GET", "/metrics", content=b"x").status_code == 413


def test_a_page_of_another_name_that_a_browser_was_led_astray_by_reads_nothing(
    working: WorkerProcess,
) -> None:
    with answering(working) as client:
        answer = client.get("/metrics", headers={"Host": "elsewhere.example.org"})
        assert answer.status_code == 400
        assert "predrain_" not in answer.text


def test_workers_of_one_machine_may_have_a_loopback_address_each(working: WorkerProcess) -> None:
    with answering(working, host="127.0.0.2") as client, answering(working, host="127.0.0.3") as other:
        assert (client.base_url.host, other.base_url.host) == ("127.0.0.2", "127.0.0.3")
        assert scraped(client).keys() == scraped(other).keys()


def test_with_a_certificate_it_is_answered_over_tls(working: WorkerProcess, tmp_path: Path) -> None:
    authority = trustme.CA()
    issued = authority.issue_cert("127.0.0.1")
    certificate, key = tmp_path / "tls.crt", tmp_path / "tls.key"
    issued.cert_chain_pems[0].write_to_path(certificate)
    issued.private_key_pem.write_to_path(key)
    context = ssl.create_default_context()
    authority.configure_trust(context)
    with answering(working, tls_certificate=certificate, tls_key=key) as plain:
        assert plain.base_url.scheme == "https"
        with httpx2.Client(base_url=plain.base_url, verify=context, timeout=60) as client:
            assert scraped(client)["predrain_store_up"] == {(): 1}


def test_where_no_port_is_set_nothing_is_listened_on(working: WorkerProcess) -> None:
    told: list[str] = []
    with run_metrics_server(working, Settings(), told.append):
        assert told == []


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1"])
def test_beyond_loopback_it_needs_tls_or_a_word_that_it_is_meant(working: WorkerProcess, host: str) -> None:
    settings = Settings(service=ServiceTable(host=host, metrics_port=0))
    with (
        pytest.raises(UnencryptedListen, match="set tls_certificate and tls_key"),
        run_metrics_server(working, settings, print),
    ):
        pass
    with answering(working, host="0.0.0.0", insecure_without_tls=True) as client:
        assert scraped(client)["predrain_store_up"] == {(): 1}


def test_a_port_in_use_is_told_with_the_option_that_names_another(working: WorkerProcess) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        settings = Settings(service=ServiceTable(metrics_port=taken.getsockname()[1]))
        with (
            pytest.raises(CannotListen, match="give --metrics-port another one"),
            run_metrics_server(working, settings, print),
        ):
            pass


@pytest.mark.parametrize("command", ["work", "control"])
def test_a_port_that_no_machine_has_is_refused(command: str) -> None:
    assert main([command, "--metrics-port", "65536"]) == 2


@pytest.mark.slow
def test_page_worker_and_controller_together_tell_all_that_the_rules_ask_for(
    premises: Premises, working: WorkerProcess
) -> None:
    controller, page = premises.application(CONTROLLING, "first"), premises.application(SERVING, "page")
    premises.tick(controller, page, times=5)
    asking(page, lambda: premises.tick(controller))
    approve(page, propose_drain(page, "osd.0", "till"))
    for _ in range(100):  # until PGs are on their way
        premises.tick(controller, page)
        if page.timelines.list_samples(page.get_snapshot().drains[0].id):
            break
    working.step()
    premises.tick(controller, page)
    told: set[str] = set()
    with ExitStack() as closing:
        for process in (controller, page, working):
            told |= scraped(closing.enter_context(answering(process))).keys()
    assert in_rules() - told == NOT_APART
    assert len(in_rules()) > 20
