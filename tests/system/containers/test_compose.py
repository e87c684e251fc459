"""deploy/compose.yaml under podman: Kafka, PostgreSQL, the page, two workers, the controller and collectors.

Every reading that a collector takes is counted where smartctl is called, and again in the database.
"""

from __future__ import annotations

import time

import pytest

from tests.system.containers.conftest import SECOND
from tests.system.containers.stack import Stack
from tests.system.install.machine import until

DISKS = 19
FAILING = "H1N0024"
LONG = 900.0
"""Seconds: rounds of a collector are a minute apart, and a broker that was killed takes half a minute to come back."""
OLDER_STORE = (
    "from predrain.data.store.postgres_store import migrate_postgres_store as migrate;"
    "print(migrate('postgresql://predrain@postgres:5432/predrain', 10, backed_up=True))"
)
"""Brings the tables to the format of the release before, by the way back of the last migration."""


def await_rounds(stack: Stack, host: str, rounds: int) -> None:
    """Wait until the host's collector has read every disk `rounds` times more."""
    before = stack.count_smartctl_runs(host)

    def has_read_again(now: dict[str, int]) -> bool:
        return len(now) == DISKS and all(times >= before.get(path, 0) + rounds for path, times in now.items())

    until(
        lambda: has_read_again(stack.count_smartctl_runs(host)),
        f"{rounds} rounds of the collector of {host}",
        LONG,
    )


def await_all_stored(stack: Stack, host: str) -> None:
    """Wait until the store holds each reading that the host's collector has taken so far."""
    until(lambda: len(stack.count_smartctl_runs(host)) == DISKS, f"the first round of {host}", LONG)
    taken = sorted(stack.count_smartctl_runs(host).values())
    number = f"H{int(host[-2:])}N"

    def all_are_stored() -> bool:
        stored = sorted(count for name, count in stack.count_readings().items() if number in name)
        return len(stored) == DISKS and all(there >= made for there, made in zip(stored, taken, strict=True))

    until(all_are_stored, f"{sum(taken)} readings of {host} in the store", LONG)


def test_each_disk_that_a_collector_reads_has_an_outlook_over_rest(stack: Stack) -> None:
    until(lambda: len(list_disks_of(stack, "H1N")) == DISKS, "an outlook of each disk", LONG)
    statuses = list_disks_of(stack, "H1N")
    assert {status for name, status in statuses.items() if FAILING in name} == {"bad"}
    assert "good" in statuses.values()
    await_all_stored(stack, "stor-01")


def list_disks_of(stack: Stack, serials: str) -> dict[str, str]:
    """Return the status of each scored disk whose name has a part."""
    return {name: status for name, status in stack.list_scored_disks().items() if serials in name}


def test_a_worker_that_is_killed_comes_back_while_the_other_one_works_and_no_reading_is_lost(
    stack: Stack,
) -> None:
    other = stack.inspect(stack.name("worker", 2), ".State.Pid")
    killed = stack.kill(stack.name("worker"))
    until(lambda: stack.is_replaced(stack.name("worker"), killed), "the worker", LONG)
    await_rounds(stack, "stor-01", 1)
    await_all_stored(stack, "stor-01")
    assert stack.inspect(stack.name("worker", 2), ".State.Pid") == other


def test_readings_wait_at_the_host_while_the_service_is_away_and_all_arrive_when_it_is_back(
    stack: Stack,
) -> None:
    rest = ("worker", "kafka", "postgres")
    running = {each: stack.inspect(stack.name(each), ".State.Pid") for each in rest}
    stack.compose("kill", "serve")
    assert not stack.is_ready()
    await_rounds(stack, "stor-01", 1)
    assert {each: stack.inspect(stack.name(each), ".State.Pid") for each in rest} == running
    stack.compose("start", "serve")
    until(stack.is_ready, "readiness", LONG)
    await_all_stored(stack, "stor-01")


def test_a_service_that_is_killed_from_outside_is_started_again_by_podman(stack: Stack) -> None:
    killed = stack.kill(stack.name("serve"))
    until(lambda: stack.is_replaced(stack.name("serve"), killed), "the service", LONG)
    until(stack.is_ready, "readiness", LONG)
    await_all_stored(stack, "stor-01")


@pytest.mark.parametrize("part", ["kafka", "postgres"])
def test_no_reading_is_lost_when_a_store_of_the_stack_is_killed(stack: Stack, part: str) -> None:
    killed = stack.kill(stack.name(part))
    until(lambda: stack.is_replaced(stack.name(part), killed), part, LONG)
    await_rounds(stack, "stor-01", 1)
    await_all_stored(stack, "stor-01")


def test_a_controller_without_a_cluster_says_so_and_does_not_keep_the_rest_from_working(stack: Stack) -> None:
    until(lambda: "there is no cluster to control" in stack.read_log("control"), "the sentence", LONG)
    assert stack.is_ready()


def test_a_host_that_is_enrolled_later_delivers_beside_the_first(stack: Stack) -> None:
    stack.enrol("stor-02")
    until(lambda: len(list_disks_of(stack, "H2N")) == DISKS, "an outlook of each disk", LONG)
    await_all_stored(stack, "stor-02")


def test_an_upgrade_migrates_the_store_and_keeps_every_reading(stack: Stack) -> None:
    await_all_stored(stack, "stor-01")
    newest = stack.read_store_version()
    stack.compose("stop", "serve", "worker", "control")
    before = stack.count_readings()
    stack.compose("run", "--rm", "--entrypoint", "/usr/lib/predrain/bin/python3", "schema", "-c", OLDER_STORE)
    assert stack.read_store_version() == 10 < newest
    stack.take_image(SECOND)
    stack.compose("run", "--rm", "schema", "store", "migrate", "--backed-up")
    assert stack.read_store_version() == newest
    stack.up("--force-recreate", "serve", "worker", "control")
    until(stack.is_ready, "readiness", LONG)
    for service in ("serve", "worker", "control"):
        assert stack.inspect(stack.name(service), 'index .Config.Labels "predrain.build"') == "second", (
            service
        )
    after = stack.count_readings()
    assert all(after[name] >= count for name, count in before.items())
    await_rounds(stack, "stor-01", 1)
    await_all_stored(stack, "stor-01")


def test_a_service_does_not_start_over_a_store_of_an_older_format_and_says_what_to_type(stack: Stack) -> None:
    stack.compose("stop", "serve", "worker", "control")
    stack.compose("run", "--rm", "--entrypoint", "/usr/lib/predrain/bin/python3", "schema", "-c", OLDER_STORE)
    try:
        stack.compose("start", "serve")
        time.sleep(5)
        assert not stack.is_ready()
        until(lambda: "predrain store migrate" in stack.read_log("serve"), "the sentence", LONG)
    finally:
        stack.compose("run", "--rm", "schema", "store", "migrate", "--backed-up")
        stack.compose("start", "worker", "control")
    until(stack.is_ready, "readiness of the service, which podman starts again and again", LONG)
