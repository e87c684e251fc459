"""Two `predrain up` over one real PostgreSQL: one is killed, the next one stands still, and the other one goes on.

The test prints how long each part of the fail-over took:
`.venv/bin/pytest tests/system/postgres/test_two_services.py -p no:xdist -s`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.processes import freeze_process, thaw_process
from tests.system.postgres.shared_services import PlayedServices, Service, make_sick_readings, wait_until

pytestmark = [pytest.mark.system, pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture
def pair(tmp_path: Path, url: str) -> Iterator[PlayedServices]:
    made = PlayedServices(tmp_path, url)
    yield made
    made.end()


def take_over(pair: PlayedServices, standby: Service, waiting: str, new: str) -> dict[str, float]:
    """Seconds from now until the standby does each thing. waiting: a disk of which no message was sent yet."""
    began = time.monotonic()
    found = {"is the active one": wait_until(standby.is_active, "the standby becomes active")}
    assert standby.post(make_sick_readings(new)).status_code == 200
    wait_until(lambda: standby.judges(f"ST4000DM000_{new}"), "it scores")
    found["has scored a new reading"] = time.monotonic() - began
    wait_until(lambda: pair.controls(standby), "it takes the cluster's lease")
    found["controls the cluster"] = time.monotonic() - began
    wait_until(lambda: pair.receiver.names(waiting), "it sends the message")
    found["has sent the message that was due, after a minute of gathering"] = time.monotonic() - began
    return found


def test_a_standby_goes_on_after_a_kill_and_after_a_stop_and_no_message_comes_twice(
    pair: PlayedServices,
) -> None:
    first = pair.begin("first")
    wait_until(first.is_active, "the first one is active")
    second = pair.begin("second")
    wait_until(lambda: second.get("status")["service"]["active"], "the standby knows the active one")
    refused = second.post(make_sick_readings("A"))
    told = refused.json()
    assert (refused.status_code, refused.headers["Retry-After"]) == (503, "10"), told
    assert told["active"]["pid"] == first.process.pid
    assert told["active"]["url"] == str(first.client.base_url).rstrip("/")
    wait_until(lambda: second.client.get("/readyz").status_code == 200, "the standby is ready")
    assert second.client.get("/readyz").json()["parts"]["service"].startswith("This service is the standby")
    assert "predrain_active 0.0" in second.client.get("/metrics").text
    assert first.post(make_sick_readings("A")).status_code == 200
    wait_until(lambda: pair.receiver.names("ST4000DM000_A"), "a message comes")
    wait_until(lambda: second.judges("ST4000DM000_A"), "the standby shows what the active one scored")

    assert first.post(make_sick_readings("B")).status_code == 200
    wait_until(lambda: second.judges("ST4000DM000_B"), "the second disk is judged")
    first.process.kill()
    killed = take_over(pair, second, "ST4000DM000_B", "C")

    third = pair.begin("third")
    wait_until(lambda: third.get("status")["service"]["active"], "the new standby knows the active one")
    assert second.post(make_sick_readings("D")).status_code == 200
    wait_until(lambda: third.judges("ST4000DM000_D"), "the fourth disk is judged")
    freeze_process(second.process.pid)
    stopped = take_over(pair, third, "ST4000DM000_D", "E")

    thaw_process(second.process.pid)
    wait_until(lambda: third.is_active() and not second.is_active(), "the stopped one notices")
    assert second.post(make_sick_readings("F")).status_code == 503
    for serial in "ABCDE":
        wait_until(lambda serial=serial: pair.receiver.names(f"ST4000DM000_{serial}"), "no message is lost")
    assert not pair.controls(second)
    doubled = {id_: count for id_, count in pair.receiver.count_ids().items() if count > 1}
    assert doubled == {}
    for what in killed:
        print(
            f"\nthe standby {what}: {killed[what]:.1f} s after kill -9, {stopped[what]:.1f} s after SIGSTOP"
        )
