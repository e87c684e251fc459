"""Sample settings and manifests: every key exists, every command exists, and who will read them understands them."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from predrain.service.cli import app
from predrain.service.cli.topics_commands import IN_PART
from predrain.service.config.collector_table import load_collector_settings as load_collector
from predrain.service.config.settings import load_settings
from tests.system.install.test_units import UNITS, program, said

DEPLOY = Path(__file__).parents[3] / "deploy"
SAMPLES = [DEPLOY / "predrain.toml", DEPLOY / "collector.toml", DEPLOY / "kustomize/predrain.toml"]


def uncommented(file: Path) -> str:
    """The sample with its suggested keys in force too."""
    return re.sub(r"(?m)^# ?(?=\[|\w+ = )", "", file.read_text())


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_a_sample_holds_as_it_is_and_with_all_that_it_suggests(sample: Path, tmp_path: Path) -> None:
    load_settings(sample, {})
    load_collector(sample, {})
    whole = tmp_path / "whole.toml"
    whole.write_text(uncommented(sample))
    assert whole.read_text().count("\n#") < sample.read_text().count("\n#") or "kustomize" in str(sample)
    load_settings(whole, {})
    load_collector(whole, {})


def test_a_value_that_a_sample_gives_as_a_default_is_the_default(tmp_path: Path) -> None:
    assert (
        load_collector(DEPLOY / "collector.toml", {}).collector
        == load_collector(empty(tmp_path), {}).collector
    )
    sample, plain = load_settings(DEPLOY / "predrain.toml", {}), load_settings(empty(tmp_path), {})
    assert sample.policy == plain.policy
    assert sample.service == plain.service.model_copy(update={"state": Path("/var/lib/predrain")})


def empty(folder: Path) -> Path:
    """A settings file that says nothing."""
    (folder / "empty.toml").write_text("")
    return folder / "empty.toml"


def test_compose_runs_commands_and_sets_keys_that_exist(monkeypatch: pytest.MonkeyPatch) -> None:
    services: dict[str, dict[str, Any]] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]
    ours = {name: each for name, each in services.items() if each["image"] == "predrain"}
    assert ours.keys() == {"topics", "schema", "serve", "worker", "control"}
    for each in ours.values():
        assert is_command(each["command"]), each["command"]
        said_by_compose = {
            name: word for name, word in each["environment"].items() if name.startswith("PREDRAIN_")
        }
        for name, word in said_by_compose.items():
            monkeypatch.setenv(name, word)
        settings = load_settings(None, said_by_compose)
        assert settings.kafka.bootstrap_servers == ("kafka:9092",)
        assert each["read_only"]
        assert each["cap_drop"] == ["ALL"]
        assert set(each["depends_on"]) <= services.keys()


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_a_unit_runs_a_command_with_options_that_it_has(unit: Path) -> None:
    (line,) = re.findall(r"(?m)^ExecStart=\S+/predrain (.+)$", unit.read_text())
    assert is_command(line.replace("%i", "2").split())


def is_command(words: list[str]) -> bool:
    """Whether `predrain WORDS` names a command, with options that it has."""
    _, bound, _ = app.parse_args(words, exit_on_error=False, print_error=False)
    return bound is not None


def rendered() -> Iterator[dict[str, Any]]:
    """Every object that `kubectl apply --kustomize` would send."""
    yield from yaml.safe_load_all(said(program("kubectl"), "kustomize", DEPLOY / "kustomize"))


@pytest.mark.system
def test_kubernetes_takes_every_manifest(tmp_path: Path) -> None:
    judge = program("kubernetes-validate")
    kinds = []
    for manifest in rendered():
        file = tmp_path / f"{len(kinds)}.yaml"
        file.write_text(yaml.safe_dump(manifest))
        said(judge, "--strict", file)
        kinds.append(manifest["kind"])
    assert {"ConfigMap", "Deployment", "Job", "Service", "PodDisruptionBudget", "NetworkPolicy"} == set(kinds)


@pytest.mark.system
def test_kubernetes_takes_the_collector_of_rooks_nodes() -> None:
    assert "passed for resource daemonset/collector" in said(
        program("kubernetes-validate"), "--strict", DEPLOY / "rook/collector.yaml"
    )


def test_the_collector_of_rooks_nodes_has_the_places_that_it_reads_and_settings_that_hold(
    tmp_path: Path,
) -> None:
    settings, daemons = yaml.safe_load_all((DEPLOY / "rook/collector.yaml").read_text())
    (written,) = settings["data"].items()
    file = tmp_path / written[0]
    file.write_text(written[1])
    table = load_collector(file, {}).collector
    pod = daemons["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    sources = {one["name"]: one.get("hostPath", {}).get("path") for one in pod["volumes"]}
    places = {one["mountPath"]: sources[one["name"]] for one in container["volumeMounts"]}
    for seen in ("/dev", "/run/udev", "/var/lib/rook", "/var/lib/predrain-collector"):
        assert places[seen] == seen
    assert {str(table.token_file), str(table.ca)} == {"/run/predrain/token", "/run/predrain/ca.pem"}
    assert pod["hostNetwork"], "a pod has a name of its own otherwise, and readings carry it"


def templates(kind: str) -> dict[str, dict[str, Any]]:
    """Return the pod templates of the objects of this kind, by the name of each object."""
    found = (one for one in rendered() if one["kind"] == kind)
    return {one["metadata"]["name"]: one["spec"]["template"] for one in found}


@pytest.mark.system
def test_no_pod_has_rights_that_it_does_not_need() -> None:
    made = templates("Deployment") | templates("Job")
    assert made.keys() == {"topics", "schema", "serve", "worker", "control"}
    for pod in (one["spec"] for one in made.values()):
        assert pod["securityContext"] == next(iter(made.values()))["spec"]["securityContext"]
        assert pod["securityContext"]["runAsNonRoot"]
        assert not pod["automountServiceAccountToken"]
        assert not pod["enableServiceLinks"]
        for container in (*pod["containers"], *pod["initContainers"]):
            rights = container["securityContext"]
            assert rights["readOnlyRootFilesystem"]
            assert not rights["allowPrivilegeEscalation"]
            assert rights["capabilities"] == {"drop": ["ALL"]}
            assert container["resources"]["limits"]["memory"]
        assert is_command(pod["containers"][0]["args"])


@pytest.mark.system
def test_topics_and_tables_are_made_before_any_pod_can_work() -> None:
    jobs = {one["metadata"]["name"]: one["spec"] for one in rendered() if one["kind"] == "Job"}
    pods = {name: job["template"]["spec"] for name, job in jobs.items()}
    assert {name: pod["containers"][0]["args"] for name, pod in pods.items()} == {
        "topics": ["topics", "create"],
        "schema": ["store", "migrate"],
    }
    deployed = templates("Deployment").values()
    for name, job in jobs.items():
        assert job["backoffLimit"] >= 6
        # One that went by itself would let an upgrade change tables beneath the pods that still run.
        assert "ttlSecondsAfterFinished" not in job
        assert pods[name]["restartPolicy"] == "Never"
        for one in deployed:  # the same settings, secrets and image, or they would prepare something else
            assert pods[name]["volumes"] == one["spec"]["volumes"]
            assert pods[name]["containers"][0]["image"] == one["spec"]["containers"][0]["image"]
    (given_up,) = jobs["topics"]["podFailurePolicy"]["rules"]
    assert given_up["action"] == "FailJob"
    assert given_up["onExitCodes"]["values"] == [IN_PART]


@pytest.mark.system
def test_a_pod_that_ends_at_once_replaces_none_that_works() -> None:
    deployments = [one["spec"] for one in rendered() if one["kind"] == "Deployment"]
    assert len(deployments) == 3
    for one in deployments:
        # A process that waits for tables runs for some seconds before it says so, and would count as ready.
        assert one["minReadySeconds"] >= 30
        assert one["replicas"] < 4, "a quarter of them may be away at once by default"


@pytest.mark.system
def test_every_pod_that_is_scraped_answers_to_its_own_address() -> None:
    for pod in (one["spec"] for one in templates("Deployment").values()):
        (container,) = pod["containers"]
        words = container["args"]
        assert words[words.index("--host") + 1] == "$(POD_IP)"
        assert {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}} in container[
            "env"
        ]


@pytest.mark.system
def test_every_pod_is_behind_the_network_policy_and_two_reach_ceph() -> None:
    policies = {one["metadata"]["name"]: one["spec"] for one in rendered() if one["kind"] == "NetworkPolicy"}

    def behind(name: str) -> set[str]:
        (chosen,) = policies[name]["podSelector"]["matchExpressions"]
        return set(chosen["values"])

    made = templates("Deployment") | templates("Job")
    assert behind("predrain") == {
        one["metadata"]["labels"]["app.kubernetes.io/component"] for one in made.values()
    }
    assert behind("ceph") == {"serve", "control"}
    assert set(policies["predrain"]["policyTypes"]) == {"Ingress", "Egress"}


@pytest.mark.system
@pytest.mark.parametrize("spec", ["collector", "service"])
def test_cephadm_takes_the_specification(spec: str) -> None:
    file = DEPLOY / "cephadm" / f"{spec}.yaml"
    judge = (
        "import sys, yaml\n"
        "from ceph.deployment.service_spec import ServiceSpec\n"
        "spec = ServiceSpec.from_json(yaml.safe_load(open(sys.argv[1])))\n"
        "spec.validate()\n"
        "print(spec.service_name())\n"
    )
    if not Path("/usr/lib/python3/dist-packages/ceph/deployment").is_dir():
        why = "Ceph's own reader of specifications is missing: apt-get install python3-ceph-common"
        pytest.fail(why) if os.environ.get("CI") == "true" else pytest.skip(why)
    done = subprocess.run(
        ["/usr/bin/python3", "-c", judge, file], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.startswith("container.predrain")


@pytest.mark.parametrize(("spec", "name"), [("collector", "collector.toml"), ("service", "predrain.toml")])
def test_settings_inside_a_specification_are_good(spec: str, name: str, tmp_path: Path) -> None:
    written = yaml.safe_load((DEPLOY / "cephadm" / f"{spec}.yaml").read_text())["spec"]["files"]
    file = tmp_path / name
    file.write_text("\n".join(written[f"etc/{name}"]))
    load_settings(file, {})
    load_collector(file, {})


def test_the_keyring_of_the_service_ends_with_a_newline_without_which_librados_reads_no_key() -> None:
    """cephadm joins the lines of a file, and adds nothing to the last one."""
    written = yaml.safe_load((DEPLOY / "cephadm/service.yaml").read_text())["spec"]["files"]
    assert "\n".join(written["etc/keyring"]).endswith("\n")
