"""Kubernetes' control plane on loopback: etcd, the API server and its controllers, and no kubelet.

The controllers create the pods of Deployments and Jobs, and admission accepts or refuses each of them. No kubelet
runs, so pods stay `Pending` until a test reports their state in the place of a kubelet.
"""

from __future__ import annotations

import json
import secrets
import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from tests.ports import hold_port
from tests.system.install.machine import until

KUBECONFIG: Final = """apiVersion: v1
kind: Config
clusters:
  - {{name: test, cluster: {{server: "https://127.0.0.1:{port}", certificate-authority: {folder}/apiserver.crt}}}}
users: [{{name: admin, user: {{token: {token}}}}}]
contexts: [{{name: test, context: {{cluster: test, user: admin}}}}]
current-context: test
"""
START_SECONDS: Final = 180.0


class ControlPlane:
    """One control plane with an empty store, whose files are in `folder`."""

    def __init__(self, programs: Path, folder: Path) -> None:
        self._programs, self._folder = programs, folder
        self._started: list[subprocess.Popen[bytes]] = []
        self._kubeconfig = folder / "kubeconfig"

    def __enter__(self) -> ControlPlane:
        """Start the programs one after the other, and wait until each one answers."""
        try:
            self._start_all()
        except BaseException:
            self.end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End every program."""
        self.end()

    def end(self) -> None:
        """Kill the programs, the last one first."""
        for process in reversed(self._started):
            process.kill()
            process.wait()

    def kubectl(self, *argv: str | Path, stdin: str = "", check: bool = True) -> str:
        """Return what a command of kubectl printed on standard output."""
        return self.ask_kubectl(*argv, stdin=stdin, check=check).stdout

    def ask_kubectl(
        self, *argv: str | Path, stdin: str = "", check: bool = True
    ) -> subprocess.CompletedProcess[str]:
        """Run a command of kubectl as an administrator of the cluster."""
        command = [self._programs / "kubectl", "--kubeconfig", self._kubeconfig, *argv]
        done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=300, check=False)
        if check and done.returncode:
            raise AssertionError(f"kubectl {' '.join(map(str, argv))}: {done.stdout}{done.stderr}")
        return done

    def get(self, namespace: str, *what: str) -> Any:
        """Return an object, or a list of objects, of a namespace."""
        return json.loads(self.kubectl("--namespace", namespace, "get", *what, "--output", "json"))

    def list_pods(self, namespace: str, selector: str = "") -> list[dict[str, Any]]:
        """Return the pods that are not being deleted."""
        pods: list[dict[str, Any]] = self.get(namespace, "pods", f"--selector={selector}")["items"]
        return [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]

    def report_status(self, namespace: str, pod: str, status: dict[str, Any]) -> None:
        """Write the status of a pod, as the kubelet of its node does."""
        change = json.dumps({"status": status})
        self.kubectl(
            "--namespace", namespace, "patch", "pod", pod, "--subresource=status", "--type=merge", "--patch", change
        )  # fmt: skip

    def bind(self, namespace: str, pod: str, node: str) -> None:
        """Give a pod to a node, as the scheduler does."""
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": pod},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }
        self.post(f"/api/v1/namespaces/{namespace}/pods/{pod}/binding", binding)

    def post(
        self, path: str, body: dict[str, Any], *, check: bool = True
    ) -> subprocess.CompletedProcess[str]:
        """Send an object to a path of the API."""
        return self.ask_kubectl("create", "--raw", path, "--filename=-", stdin=json.dumps(body), check=check)

    def make_namespace(self, name: str, level: str) -> None:
        """Make a namespace that refuses pods above a level of the Pod Security Standards, and warns of them."""
        self.kubectl("create", "namespace", name)
        words = [f"pod-security.kubernetes.io/{each}={level}" for each in ("enforce", "warn")]
        self.kubectl("label", "namespace", name, *words)
        until(lambda: self._has_account(name), "the namespace's account")

    def remove_namespace(self, name: str) -> None:
        """Delete a namespace and all that is in it, without waiting for a kubelet."""
        self.kubectl(
            "--namespace",
            name,
            "delete",
            "deployment,daemonset,job",
            "--all",
            "--cascade=foreground",
            "--wait=false",
        )
        self.kubectl("delete", "namespace", name, "--wait=false")

        def is_gone() -> bool:
            self.kubectl(
                "--namespace", name, "delete", "pod", "--all", "--grace-period=0", "--force", check=False
            )
            return self.ask_kubectl("get", "namespace", name, check=False).returncode != 0

        until(is_gone, f"the end of the namespace {name}")

    def _start_all(self) -> None:
        store, peer, port, controllers = (hold_port() for _ in range(4))
        token = secrets.token_hex(24)
        (self._folder / "tokens").write_text(f"{token},admin,admin,system:masters\n")
        self._kubeconfig.write_text(KUBECONFIG.format(port=port, folder=self._folder, token=token))
        for file in (self._folder / "tokens", self._kubeconfig):
            file.chmod(0o600)
        key = self._folder / "accounts.key"
        subprocess.run(["openssl", "genrsa", "-out", key, "2048"], check=True, capture_output=True)
        self._start("etcd", name_store_options(self._folder, store, peer))
        self._start("kube-apiserver", name_server_options(self._folder, store, port, key))
        until(self._is_ready, "the API server", START_SECONDS)
        options = {
            "kubeconfig": self._kubeconfig,
            "service-account-private-key-file": key,
            "bind-address": "127.0.0.1",
            "secure-port": controllers,
            "cert-dir": self._folder / "controllers",
            "leader-elect": "false",
        }
        self._start("kube-controller-manager", options)

    def _has_account(self, namespace: str) -> bool:
        asked = self.ask_kubectl("--namespace", namespace, "get", "serviceaccount", "default", check=False)
        return asked.returncode == 0

    def _is_ready(self) -> bool:
        assert self._started[-1].poll() is None, (self._folder / "kube-apiserver.log").read_text()[-4000:]
        return (self._folder / "apiserver.crt").exists() and self.ask_kubectl(
            "get", "--raw", "/readyz", check=False
        ).stdout == "ok"

    def _start(self, name: str, options: Mapping[str, object]) -> None:
        words = [f"--{option}={value}" for option, value in options.items()]
        with (self._folder / f"{name}.log").open("wb") as log:
            command = ["setpriv", "--pdeathsig", "KILL", str(self._programs / name), *words]
            self._started.append(subprocess.Popen(command, cwd=self._folder, stdout=log, stderr=log))


def name_store_options(folder: Path, port: int, peer: int) -> dict[str, object]:
    """Return the options of an etcd alone, which need not survive a power failure."""
    own, others = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{peer}"
    return {
        "data-dir": folder / "etcd",
        "listen-client-urls": own,
        "advertise-client-urls": own,
        "listen-peer-urls": others,
        "initial-advertise-peer-urls": others,
        "initial-cluster": f"default={others}",
        "unsafe-no-fsync": "true",
    }


def name_server_options(folder: Path, store: int, port: int, key: Path) -> dict[str, object]:
    """Return the options of the API server: default admission, and privileged pods as in clusters that run Rook."""
    return {
        "etcd-servers": f"http://127.0.0.1:{store}",
        "secure-port": port,
        "bind-address": "127.0.0.1",
        "endpoint-reconciler-type": "none",
        "cert-dir": folder,
        "token-auth-file": folder / "tokens",
        "authorization-mode": "RBAC",
        "service-account-issuer": "https://kubernetes.default.svc",
        "service-account-key-file": key,
        "service-account-signing-key-file": key,
        "service-cluster-ip-range": "10.0.0.0/24",
        "allow-privileged": "true",
    }
