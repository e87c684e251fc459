"""The units and scripts of the packages, as systemd and shellcheck judge them."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

DEPLOY = Path(__file__).parents[3] / "deploy"
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
EXPOSURE_MAX = {"predrain-collector.service": 6.8}
"""Of ten; what the job allows. Each unit says why it is not less."""

pytestmark = pytest.mark.system


def program(name: str) -> str:
    """A program of the machine's or of the environment's."""
    found = shutil.which(name, path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    if found is None:
        why = f"{name} is missing"
        pytest.fail(why) if os.environ.get("CI") == "true" else pytest.skip(why)
    return found


def said(*argv: str | Path) -> str:
    """Run a checking program, check that it accepts the files, and return its output."""
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_systemd_understands_every_line(unit: Path, tmp_path: Path) -> None:
    verify = (program("systemd-analyze"), "verify", "--recursive-errors=yes")
    text = re.sub(r"(?m)^ExecStart=\S+", "ExecStart=/bin/true", unit.read_text())
    copy = tmp_path / unit.name.replace("@", "@1")
    copy.write_text(text)
    assert said(*verify, copy) == ""


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_no_unit_is_more_exposed_than_its_job_needs(unit: Path) -> None:
    limit = round(10 * EXPOSURE_MAX.get(unit.name, 1.2))
    said(program("systemd-analyze"), "security", "--offline=true", "--no-pager", f"--threshold={limit}", unit)


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_every_unit_bounds_its_tasks_and_says_what_follows_a_kill_by_memory(unit: Path) -> None:
    text = unit.read_text()
    policy = "continue" if "collector" in unit.name else "kill"
    assert re.search(r"(?m)^TasksMax=\d+$", text)
    assert f"\nOOMPolicy={policy}\n" in text
    assert re.search(r"(?m)^Restart=(on-failure|always)$", text), "what was killed starts again"


BASE_CHECK = re.search(
    r"(?ms)^RUN (case \"\$\{BASE.*?exit 1; \})$", (DEPLOY.parent / "Dockerfile").read_text()
)


@pytest.mark.parametrize(
    ("base", "taken"),
    [
        (f"docker.io/library/debian@sha256:{'0a' * 32}", True),
        (f"debian:12-slim@sha256:{'0a' * 32}", True),
        ("debian:12-slim", False),
        ("debian", False),
        ("", False),
        (f"debian@sha256:{'0a' * 31}", False),
        (f"debian@sha256:{'0A' * 32}", False),
        (f"debian@md5:{'0a' * 32}", False),
    ],
)
def test_an_image_is_built_only_on_a_base_that_is_named_by_its_digest(base: str, taken: bool) -> None:
    assert BASE_CHECK is not None
    check = BASE_CHECK.group(1).replace("\\\n", "")
    done = subprocess.run(["/bin/sh", "-c", check], env={"BASE": base}, capture_output=True, check=False)
    assert (done.returncode == 0) == taken, done.stdout


def test_every_stage_of_the_images_begins_at_the_base_of_the_build_or_at_an_earlier_stage() -> None:
    known = {"${BASE}"}
    stages = re.findall(r"(?m)^FROM (\S+) AS (\S+)$", (DEPLOY.parent / "Dockerfile").read_text())
    assert {"collector", "service"} <= {name for _, name in stages}
    for start, name in stages:
        assert start in known, f"stage {name} begins at {start}"
        known.add(name)


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_every_exposure_that_stays_is_argued_in_the_unit(unit: Path) -> None:
    text = unit.read_text()
    if "sandbox is that of predrain.service" in text:
        text = (unit.parent / "predrain.service").read_text()
    argued = set(re.findall(r"\b[A-Z]\w+", "".join(re.findall(r"(?m)^#.*$", text))))
    table = said(program("systemd-analyze"), "security", "--offline=true", "--no-pager", "--json=short", unit)
    exposed = {
        re.split(r"[=/]", each["name"])[0]
        for each in json.loads(table)
        if each["set"] is False and float(each["exposure"] or 0) > 0
    }
    assert exposed <= argued


def test_the_sandbox_of_the_parts_is_that_of_the_whole() -> None:
    def sandbox(name: str) -> list[str]:
        lines = (DEPLOY / "systemd" / name).read_text().partition("[Service]")[2].splitlines()
        return [line for line in lines if line and not line.startswith(("ExecStart=", "#"))]

    for part in ("predrain-worker@.service", "predrain-serve.service", "predrain-control.service"):
        assert sandbox(part) == sandbox("predrain.service"), part


def test_shellcheck_finds_nothing_in_the_scripts() -> None:
    scripts = [
        DEPLOY / "deb/build",
        DEPLOY / "deb/parts",
        DEPLOY / "rpm/build",
        DEPLOY / "rpm/interpreter",
        DEPLOY / "release/build",
        DEPLOY / "release/list-page",
        DEPLOY / "release/sign",
        DEPLOY / "repository/build",
        DEPLOY.parent / ".ci/python",
        *DEPLOY.glob("deb/*/p*"),
        *(DEPLOY.parent / "tests/system/containers").glob("*/start"),
    ]
    assert len(scripts) == 17
    assert said(program("shellcheck"), *scripts) == ""


def test_hadolint_finds_nothing_in_the_dockerfiles() -> None:
    files = [DEPLOY.parent / "Dockerfile", DEPLOY / "ceph-mgr/Dockerfile"]
    files += (DEPLOY.parent / "tests/system/containers").glob("*/Dockerfile")
    assert len(files) == 6
    assert said(program("hadolint"), *files) == ""
