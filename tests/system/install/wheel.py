"""The wheel as a release has it, and the requirements of uv.lock."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from tests.system.install.conftest import ROOT

UV = ROOT / ".tools" / "bin" / "uv"


def run_uv(*words: str | Path, variables: dict[str, str] | None = None) -> str:
    """Run uv in the checkout and return what it printed; a failure shows its words."""
    environment = {**os.environ, "UV_PYTHON_DOWNLOADS": "never", **(variables or {})}
    done = subprocess.run(
        [UV, *words], cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=600
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def build_wheel(folder: Path) -> Path:
    """Build the wheel of this checkout with the locked build backend."""
    run_uv(
        "build", "--quiet", "--wheel", "--python", "/usr/bin/python3", "--build-constraints",
        "deploy/deb/backend.txt", "--require-hashes", "--out-dir", folder / "wheel", ".",
    )  # fmt: skip
    (wheel,) = (folder / "wheel").glob("predrain-*.whl")
    return wheel


def export_requirements(file: Path, *chosen: str) -> Path:
    """Write the locked packages of the extras and groups that are chosen, with their hashes."""
    run_uv("export", "--quiet", "--frozen", *chosen, "--no-emit-project", "--output-file", file)
    return file
