"""Programs that come as Go modules alone, built once by the locked versions of a go.mod and kept in a cache."""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class GoPrograms:
    """Programs of one go.mod. `packages` names the package of each; `stamps` are variables that get words at the link,
    where {major}, {minor} and {version} stand for those of the main module.
    """

    name: str
    module: Path
    main: str
    packages: Mapping[str, str]
    stamps: Mapping[str, str] = field(default_factory=dict)

    def read_version(self) -> str:
        """Return the version of the main module, without its v."""
        (found,) = re.findall(
            rf"(?m)^\s*(?:require )?{re.escape(self.main)} v(\S+)$", self._lock("go.mod").read_text()
        )
        return str(found)

    def name_missing_part(self) -> str | None:
        """Return the reason why the programs cannot be built here, None if they can."""
        (wanted,) = re.findall(r"(?m)^go (\d+)\.(\d+)", self._lock("go.mod").read_text())
        cure = f"install Go {'.'.join(wanted)} or later, which builds {self.name} {self.read_version()}"
        if not (go := shutil.which("go")):
            return f"go is missing: {cure}"
        said = subprocess.run(
            [go, "env", "GOVERSION"], capture_output=True, text=True, env=name_environment(), check=True
        )
        found = re.match(r"go(\d+)\.(\d+)", said.stdout)
        if found is None or tuple(map(int, found.groups())) < tuple(map(int, wanted)):
            return f"{said.stdout.strip()} is too old: {cure}"
        return None

    def build_programs(self) -> Path:
        """Return the folder of the programs. One process builds those that are missing, and others wait."""
        state = hashlib.sha256(self._lock("go.sum").read_bytes()).hexdigest()[:8]
        cache = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache", "predrain").expanduser()
        folder = cache / f"{self.name.lower()}-{self.read_version()}-{state}"
        folder.mkdir(parents=True, exist_ok=True)
        with (cache / f"{folder.name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            for name, package in self.packages.items():
                if not (folder / name).exists():
                    print(f"building {folder / name} (Go, some minutes)", file=sys.stderr)
                    self._build(package, folder / name)
        return folder

    def _build(self, package: str, program: Path) -> None:
        version = self.read_version()
        major, minor, _ = version.split(".")
        words = {
            key: word.format(version=version, major=major, minor=minor) for key, word in self.stamps.items()
        }
        flags = " ".join(["-s -w", *(f"-X {key}={word}" for key, word in words.items())])
        unfinished = program.with_name(f"{program.name}.unfinished")
        command = ["go", "build", "-trimpath", "-ldflags", flags, "-o", str(unfinished), package]
        done = subprocess.run(
            command, cwd=self.module, env=name_environment(), capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise AssertionError(f"{package} was not built: {done.stderr[-4000:]}")
        unfinished.rename(program)

    def _lock(self, name: str) -> Path:
        return self.module / name


def name_environment() -> dict[str, str]:
    """Return the environment of a build: no C compiler, and no other toolchain than that of the machine."""
    return {**os.environ, "CGO_ENABLED": "0", "GOTOOLCHAIN": "local"}


_KUBERNETES: Final = "k8s.io/kubernetes"
_VERSION: Final = "k8s.io/component-base/version"
KUBERNETES: Final = GoPrograms(
    "Kubernetes",
    HERE / "kubernetes/programs",
    _KUBERNETES,
    {"etcd": "go.etcd.io/etcd/server/v3"}
    | {
        each: f"{_KUBERNETES}/cmd/{each}" for each in ("kube-apiserver", "kube-controller-manager", "kubectl")
    },
    # Without them a program calls itself 0.0.0.
    {
        f"{_VERSION}.gitVersion": "v{version}",
        f"{_VERSION}.gitMajor": "{major}",
        f"{_VERSION}.gitMinor": "{minor}",
    },
)
