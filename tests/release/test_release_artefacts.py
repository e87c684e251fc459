"""`make release-artefacts` in two clones, at two paths, times and umasks: the same bytes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from tests.conftest import ROOT

pytestmark = [pytest.mark.system, pytest.mark.slow, pytest.mark.machine, pytest.mark.timeout(3000)]
UMASKS = {"here": 0o022, "at-a/longer-path": 0o077}


@dataclass(frozen=True, slots=True)
class BuiltArtefacts:
    """The folder of the artefacts, by the path of the clone."""

    folders: dict[str, Path]

    def read_sums(self, clone: str) -> dict[str, str]:
        """The digest of each file, as it is there."""
        return {
            file.name: sha256(file.read_bytes()).hexdigest() for file in sorted(self.folders[clone].iterdir())
        }


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> BuiltArtefacts:
    """The artefacts of the last commit, built one clone after the other."""
    for needed, command in (
        (".tools/bin/uv", "make setup"),
        ("service/page/node_modules/.bin", "make setup"),
    ):
        if not (ROOT / needed).exists():
            pytest.fail(f"{needed} is missing: run {command}")
    root, folders = tmp_path_factory.mktemp("clones"), {}
    for path, umask in UMASKS.items():
        clone = root / path
        clone.parent.mkdir(parents=True, exist_ok=True)
        run(root, "git", "clone", "--quiet", str(ROOT), str(clone), umask=umask)
        (clone / ".tools").symlink_to((ROOT / ".tools").resolve())
        modules = (ROOT / "service/page/node_modules").resolve()
        shutil.copytree(modules, clone / "service/page/node_modules", symlinks=True, copy_function=os.link)
        run(clone / "service/page", "node_modules/.bin/vite", "build", "--logLevel=error", umask=umask)
        run(clone, "deploy/release/build", "dist/built", umask=umask)
        folders[path] = clone / "dist/built"
    return BuiltArtefacts(folders)


def run(folder: Path, *words: str, umask: int = 0o022, **variables: str) -> str:
    """Run a command and return what it printed; a failure shows its words."""
    path = f"{(ROOT / '.tools').resolve() / 'bin'}:{os.environ['PATH']}"
    done = subprocess.run(
        words, cwd=folder, env={**os.environ, "PATH": path, **variables}, umask=umask,
        capture_output=True, text=True, check=False, timeout=1400,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_two_clones_give_the_same_bytes(built: BuiltArtefacts) -> None:
    first, second = (built.read_sums(clone) for clone in built.folders)
    assert len(first) == 11
    assert first == second


def test_the_sums_are_those_of_the_files(built: BuiltArtefacts) -> None:
    found = built.read_sums("here")
    lines = (built.folders["here"] / "SHA256SUMS").read_text().splitlines()
    assert {line[66:]: line[:64] for line in lines} == {
        name: digest for name, digest in found.items() if name != "SHA256SUMS"
    }


def test_the_source_archive_gives_the_same_wheel(built: BuiltArtefacts, tmp_path: Path) -> None:
    folder = built.folders["here"]
    clone = folder.parents[1]
    (archive,) = folder.glob("*.tar.gz")
    (wheel,) = folder.glob("*.whl")
    run(
        clone, ".tools/bin/uv", "build", "--quiet", "--wheel", "--python=/usr/bin/python3",
        "--build-constraints=deploy/deb/backend.txt", "--require-hashes", f"--out-dir={tmp_path}", str(archive),
        SOURCE_DATE_EPOCH=run(clone, "git", "log", "-1", "--format=%ct"),
    )  # fmt: skip
    rebuilt = (tmp_path / wheel.name).read_bytes()
    assert sha256(rebuilt).hexdigest() == built.read_sums("here")[wheel.name]


def test_each_artefact_has_an_sbom_that_is_cyclonedx(built: BuiltArtefacts) -> None:
    folder = built.folders["here"]
    artefacts = [file for pattern in ("*.whl", "*.tar.gz", "*.deb") for file in folder.glob(pattern)]
    assert len(artefacts) == 5
    for file in artefacts:
        text = file.with_name(f"{file.name}.cdx.json").read_text()
        assert JsonStrictValidator(SchemaVersion.V1_5).validate_str(text) is None, file.name
        name = file.name.split("_")[0] if file.suffix == ".deb" else "predrain"
        assert json.loads(text)["metadata"]["component"]["name"] == name
