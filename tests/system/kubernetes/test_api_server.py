"""The manifests of deploy/kustomize and deploy/rook, as Kubernetes' API server and its controllers take them."""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from predrain.service.cli.topics_commands import IN_PART
from tests.system.install.images import ROOT
from tests.system.install.machine import until
from tests.system.kubernetes.conftest import KUSTOMIZE, NAMESPACE
from tests.system.kubernetes.control_plane import ControlPlane

COLLECTOR = ROOT / "deploy/rook/collector.yaml"
COLLECTORS = "predrain-collector"
COMPONENT = "app.kubernetes.io/component"
PODS = {"topics": 1, "schema": 1, "serve": 2, "worker": 2, "control": 2}
NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "stor-01", "labels": {"kubernetes.io/os": "linux"}},
}
RUNNING = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}


def list_warnings(said: str) -> list[str]:
    """Return the warnings that kubectl printed, its own and those of the server."""
    return [line for line in said.splitlines() if line.startswith("Warning:")]


def count_pods(plane: ControlPlane) -> Counter[str]:
    """Return the number of pods of each component."""
    return Counter(pod["metadata"]["labels"][COMPONENT] for pod in plane.list_pods(NAMESPACE))


def list_refusals(plane: ControlPlane, namespace: str) -> list[str]:
    """Return why controllers could not create pods."""
    events = plane.get(namespace, "events", "--field-selector=reason=FailedCreate")["items"]
    return [event["message"] for event in events]


def list_missing_values(written: Any, stored: Any, path: str = "") -> Iterator[str]:
    """Return each place of a manifest that the stored object lacks, or has with another value."""
    if isinstance(written, dict):
        for key, value in written.items():
            there = stored.get(key) if isinstance(stored, dict) else None
            yield from list_missing_values(value, there, f"{path}.{key}")
    elif isinstance(written, list):
        if not isinstance(stored, list) or len(stored) != len(written):
            yield f"{path}: {stored!r} in place of {written!r}"
        else:
            for place, (one, other) in enumerate(zip(written, stored, strict=True)):
                yield from list_missing_values(one, other, f"{path}[{place}]")
    elif written != stored:
        yield f"{path}: {stored!r} in place of {written!r}"


@pytest.mark.parametrize("side", ["client", "server"])
def test_the_server_accepts_each_object_of_predrain_without_a_warning(
    restricted: ControlPlane, side: str
) -> None:
    done = restricted.ask_kubectl(
        "apply", "--validate=strict", f"--server-side={str(side == 'server').lower()}", "--kustomize", KUSTOMIZE
    )  # fmt: skip
    assert list_warnings(done.stderr) == []
    assert len(done.stdout.splitlines()) == 14


@pytest.mark.parametrize("manifests", [KUSTOMIZE, COLLECTOR], ids=["kustomize", "rook"])
def test_the_server_stores_each_value_as_it_is_written(control_plane: ControlPlane, manifests: Path) -> None:
    namespace = NAMESPACE if manifests == KUSTOMIZE else COLLECTORS
    text = manifests.read_text() if manifests.is_file() else control_plane.kubectl("kustomize", manifests)
    control_plane.make_namespace(namespace, "privileged")
    try:
        control_plane.kubectl("apply", "--filename=-", stdin=text)
        for written in yaml.safe_load_all(text):
            stored = control_plane.get(namespace, written["kind"], written["metadata"]["name"])
            assert list(list_missing_values(written, stored)) == []
    finally:
        control_plane.remove_namespace(namespace)


def test_the_level_restricted_refuses_no_pod_of_predrain(deployed: ControlPlane) -> None:
    until(lambda: count_pods(deployed) == PODS, "a pod of each replica")
    assert list_refusals(deployed, NAMESPACE) == []


@pytest.mark.parametrize("level", ["restricted", "baseline"])
def test_a_level_below_privileged_refuses_the_collector_and_names_each_right(
    control_plane: ControlPlane, level: str
) -> None:
    with_node(control_plane)
    control_plane.make_namespace(COLLECTORS, level)
    try:
        done = control_plane.ask_kubectl("apply", "--filename", COLLECTOR)
        (warning,) = list_warnings(done.stderr)
        until(lambda: list_refusals(control_plane, COLLECTORS), "a refusal")
        for sentence in (warning, list_refusals(control_plane, COLLECTORS)[0]):
            for right in ("host namespaces", "hostPath", "privileged (container"):
                assert right in sentence
        assert control_plane.list_pods(COLLECTORS) == []
    finally:
        control_plane.remove_namespace(COLLECTORS)


def test_each_node_gets_a_collector_in_a_namespace_of_the_level_privileged(
    control_plane: ControlPlane,
) -> None:
    with_node(control_plane)
    control_plane.make_namespace(COLLECTORS, "privileged")
    try:
        done = control_plane.ask_kubectl("apply", "--validate=strict", "--filename", COLLECTOR)
        assert list_warnings(done.stderr) == []
        until(lambda: len(control_plane.list_pods(COLLECTORS)) == 1, "the pod of the node")
        (pod,) = control_plane.list_pods(COLLECTORS)
        assert pod["spec"]["priority"] == 2_000_001_000, "the last pods that a node without memory evicts"
    finally:
        control_plane.remove_namespace(COLLECTORS)


def with_node(plane: ControlPlane) -> None:
    """See that a node is there, which nobody reports for."""
    plane.kubectl("apply", "--filename=-", stdin=json.dumps(NODE))


def test_an_upgrade_changes_everything_but_jobs_that_were_not_deleted(
    deployed: ControlPlane, tmp_path: Path
) -> None:
    until(lambda: count_pods(deployed) == PODS, "a pod of each replica")
    newer = shutil.copytree(KUSTOMIZE, tmp_path / "newer")
    file = newer / "kustomization.yaml"
    file.write_text(re.sub("newTag: .*", "newTag: newer", file.read_text()))
    refused = deployed.ask_kubectl("apply", "--kustomize", newer, check=False)
    assert sorted(re.findall(r'Job\.batch "(\w+)" is invalid', refused.stderr)) == ["schema", "topics"]
    assert refused.stderr.count("field is immutable") == 2
    deployments = deployed.get(NAMESPACE, "deployments")["items"]
    images = {one["spec"]["template"]["spec"]["containers"][0]["image"] for one in deployments}
    assert images == {"predrain:newer"}
    deployed.kubectl("--namespace", NAMESPACE, "delete", "job", "topics", "schema", "--wait=false")
    until(lambda: not deployed.get(NAMESPACE, "jobs")["items"], "the end of the Jobs")
    accepted = deployed.ask_kubectl("apply", "--validate=strict", "--kustomize", newer)
    assert list_warnings(accepted.stderr) == []
    assert "job.batch/schema created" in accepted.stdout


def test_no_pod_goes_in_an_upgrade_before_a_newer_one_runs(deployed: ControlPlane) -> None:
    until(lambda: count_pods(deployed) == PODS, "a pod of each replica")
    before = {pod["metadata"]["name"] for pod in deployed.list_pods(NAMESPACE, f"{COMPONENT}=serve")}
    for name in before:
        deployed.report_status(NAMESPACE, name, RUNNING)
    deployed.kubectl("--namespace", NAMESPACE, "set", "image", "deployment/serve", "predrain=predrain:9")

    def list_serving() -> set[str]:
        return {pod["metadata"]["name"] for pod in deployed.list_pods(NAMESPACE, f"{COMPONENT}=serve")}

    until(lambda: len(list_serving()) == 3, "one newer pod beside the others")
    (newer,) = list_serving() - before
    deployed.report_status(NAMESPACE, newer, RUNNING | {"phase": "Failed", "conditions": []})
    until(lambda: newer not in list_serving() or len(list_serving()) > 3, "another try")
    assert before < list_serving()


@pytest.mark.parametrize(("code", "pods"), [(IN_PART, 1), (1, 2)])
def test_a_topic_of_another_size_ends_the_job_at_once_and_other_failures_are_tried_again(
    deployed: ControlPlane, code: int, pods: int
) -> None:
    until(lambda: count_pods(deployed)["topics"] == 1, "the pod of the Job")
    (pod,) = deployed.list_pods(NAMESPACE, f"{COMPONENT}=topics")
    ended = {"name": "predrain", "image": "predrain", "imageID": "", "ready": False, "restartCount": 0,
             "state": {"terminated": {"exitCode": code}}}  # fmt: skip
    deployed.report_status(
        NAMESPACE, pod["metadata"]["name"], {"phase": "Failed", "containerStatuses": [ended]}
    )

    def has_been_decided() -> bool:
        conditions = deployed.get(NAMESPACE, "job", "topics")["status"].get("conditions", [])
        failed = any(one["type"] == "Failed" and one["reason"] == "PodFailurePolicy" for one in conditions)
        return failed or len(deployed.list_pods(NAMESPACE, f"{COMPONENT}=topics")) == 2

    until(has_been_decided, "an end or another try")
    assert len(deployed.list_pods(NAMESPACE, f"{COMPONENT}=topics")) == pods


@pytest.mark.parametrize("component", ["serve", "worker", "control"])
def test_an_eviction_takes_one_working_pod_of_a_kind_at_a_time(
    deployed: ControlPlane, component: str
) -> None:
    first, second = (evict(deployed, name) for name in run_pods(deployed, component, RUNNING))
    assert "Success" in first
    assert "disruption budget" in second


@pytest.mark.parametrize("component", ["serve", "worker", "control"])
def test_pods_that_cannot_work_do_not_keep_a_node_from_being_drained(
    deployed: ControlPlane, component: str
) -> None:
    for name in run_pods(
        deployed, component, RUNNING | {"conditions": [{"type": "Ready", "status": "False"}]}
    ):
        assert "Success" in evict(deployed, name)


def run_pods(plane: ControlPlane, component: str, status: dict[str, Any]) -> list[str]:
    """Give both pods of a component to a node, report their status, and wait until the budget counts them."""
    with_node(plane)
    until(lambda: count_pods(plane)[component] == 2, "two pods")
    names = [pod["metadata"]["name"] for pod in plane.list_pods(NAMESPACE, f"{COMPONENT}={component}")]
    for name in names:
        plane.bind(NAMESPACE, name, "stor-01")
        plane.report_status(NAMESPACE, name, status)
    healthy = 2 if status == RUNNING else 0

    def is_counted() -> bool:
        budget = plane.get(NAMESPACE, "pdb", component)["status"]
        return (budget["expectedPods"], budget["currentHealthy"]) == (2, healthy)

    until(is_counted, "the budget")
    return names


def evict(plane: ControlPlane, pod: str) -> str:
    """Ask for an eviction, as `kubectl drain` does, and return the answer."""
    eviction = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": pod, "namespace": NAMESPACE},
    }
    done = plane.post(f"/api/v1/namespaces/{NAMESPACE}/pods/{pod}/eviction", eviction, check=False)
    return done.stdout + done.stderr


def test_the_service_sends_requests_to_the_port_of_each_ready_page(deployed: ControlPlane) -> None:
    with_node(deployed)
    until(lambda: count_pods(deployed) == PODS, "a pod of each replica")
    for number, pod in enumerate(deployed.list_pods(NAMESPACE)):
        name = pod["metadata"]["name"]
        deployed.bind(NAMESPACE, name, "stor-01")
        address = f"10.1.0.{number + 1}"
        deployed.report_status(NAMESPACE, name, RUNNING | {"podIP": address, "podIPs": [{"ip": address}]})

    def list_targets() -> set[tuple[str, int]]:
        slices = deployed.get(NAMESPACE, "endpointslices", "--selector=kubernetes.io/service-name=predrain")[
            "items"
        ]
        return {(one["targetRef"]["name"], port["port"]) for each in slices for one in each["endpoints"] or ()
                for port in each["ports"] if one["conditions"]["ready"]}  # fmt: skip

    pages = {pod["metadata"]["name"] for pod in deployed.list_pods(NAMESPACE, f"{COMPONENT}=serve")}
    until(lambda: list_targets() == {(name, 8080) for name in pages}, "both pages behind the service")
