"""The packages as they are built from this checkout: each holds a command that runs, and what it needs alone.

The tests of `test_packages.py` install them on machines, which takes long; these only build and unpack them.
"""

from __future__ import annotations

import csv
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from tests.system.install.conftest import ROOT, Packages, build, find_packages

pytestmark = [pytest.mark.system, pytest.mark.slow, pytest.mark.timeout(600)]
MB = 1_000_000
LAB = ("pandas", "sklearn", "matplotlib", "dask", "distributed", "mlflow", "jax", "scipy")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Packages:
    if not shutil.which("dpkg-deb"):
        why = "the packages are built with dpkg-deb of Debian"
        pytest.fail(why) if os.environ.get("CI") == "true" else pytest.skip(why)
    ready = os.environ.get("PACKAGES_UNDER_TEST")
    return find_packages(Path(ready)) if ready else build(tmp_path_factory.mktemp("built"))


def unpack(package: Path, into: Path) -> Path:
    """The folder of an unpacked package with its Python."""
    subprocess.run(["dpkg-deb", "-x", package, into], check=True)
    (home,) = into.glob("usr/lib/predrain*")
    return home


def run_python(home: Path, *words: str | Path) -> subprocess.CompletedProcess[str]:
    """Run the package's Python, which sees nothing but the package."""
    return subprocess.run(
        [home / "bin" / "python3", "-I", *words],
        cwd=home.parent, env={"PATH": "/usr/bin:/bin", "HOME": str(home.parent), "LC_ALL": "C.UTF-8"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip


def run_code(home: Path, code: str) -> subprocess.CompletedProcess[str]:
    """Run code by the package's Python."""
    return run_python(home, "-c", code)


def run(home: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Run the file that the package installs as its command."""
    return run_python(home, home / "bin" / "predrain", *command)


LOAD_LIBRARIES = """
import ctypes, pathlib, sys
for path in sorted(pathlib.Path(sys.prefix).rglob("*.so*")):
    try:
        ctypes.CDLL(str(path))
    except OSError as error:
        print(path, error)
"""
IMPORT_MODULES = """
import importlib, pkgutil, predrain
skipped = ("predrain.actions.ceph_mgr", "predrain.data.store.migrations")  # ceph-mgr and Alembic load these
for module in pkgutil.walk_packages(predrain.__path__, "predrain.", onerror=lambda name: None):
    if not module.name.startswith(skipped):
        try:
            importlib.import_module(module.name)
        except ImportError as error:
            print(module.name, error)
"""


def test_the_packages_are_as_small_as_the_limits(built: Packages) -> None:
    assert built.service.stat().st_size < 120 * MB
    assert built.collector.stat().st_size < 15 * MB


def test_each_library_of_the_packages_finds_the_libraries_that_it_names(
    built: Packages, tmp_path: Path
) -> None:
    for package in (built.service, built.collector):
        loaded = run_code(unpack(package, tmp_path / package.stem), LOAD_LIBRARIES)
        assert (loaded.returncode, loaded.stdout, loaded.stderr) == (0, "", "")


def test_each_module_of_the_service_package_finds_what_it_imports(built: Packages, tmp_path: Path) -> None:
    imported = run_code(unpack(built.service, tmp_path), IMPORT_MODULES)
    assert (imported.returncode, imported.stdout) == (0, ""), imported.stderr


def test_the_service_package_scores_drives_and_drains_the_demo(built: Packages, tmp_path: Path) -> None:
    home = unpack(built.service, tmp_path)
    out = tmp_path / "scores.csv"
    scored = run(
        home, "score", str(ROOT / "data/fleets/demo.parquet"),
        "--from", "2018-05-01", "--to", "2018-05-08", "--out", str(out),
    )  # fmt: skip
    assert scored.returncode == 0, scored.stderr
    assert out.read_text().count("\n") > 400
    shown = run(home, "demo", "--once", "--days", "2")
    assert shown.returncode == 0, shown.stderr
    assert "TiB moved" in shown.stdout


def test_the_service_package_leaves_the_laboratory_out(built: Packages, tmp_path: Path) -> None:
    (site,) = unpack(built.service, tmp_path).glob("lib/python3.*/site-packages")
    assert [name for name in LAB if (site / name).exists()] == []


def test_training_names_its_package_and_works_with_it(built: Packages, tmp_path: Path) -> None:
    home = unpack(built.service, tmp_path)
    words = ("train", str(ROOT / "data/fleets/demo.parquet"), "--out", str(tmp_path / "bundle"))
    refused = run(home, *words)
    expected = (
        "predrain: `predrain train` needs scipy, which is not installed: apt-get install predrain-training\n"
    )
    assert (refused.returncode, refused.stderr) == (1, expected)
    unpack(built.training, tmp_path)
    learnt = run_code(home, GROW)
    assert (learnt.returncode, learnt.stdout) == (0, "3\n"), learnt.stderr


GROW = """
import lightgbm, numpy
x = numpy.arange(400.0).reshape(200, 2)
booster = lightgbm.train({"verbosity": -1}, lightgbm.Dataset(x, label=x[:, 0] > 50), 3)
print(booster.num_trees())
"""


def test_the_service_package_has_man_pages_and_completions_of_its_commands(
    built: Packages, tmp_path: Path
) -> None:
    unpack(built.service, tmp_path)
    share = tmp_path / "usr" / "share"
    names = {page.name for page in (share / "man" / "man1").iterdir()}
    assert {
        "predrain.1.gz",
        "predrain-disks.1.gz",
        "predrain-drain-apply.1.gz",
        "predrain-backtest.1.gz",
    } <= names
    for completion in ("bash-completion/completions/predrain", "zsh/vendor-completions/_predrain"):
        assert "way-out" in (share / completion).read_text()


def test_no_package_puts_a_file_where_another_python_finds_it(built: Packages) -> None:
    """ceph-mgr loads a module that is called predrain, too."""
    for package, folder in (
        (built.service, "./usr/lib/predrain/"),
        (built.collector, "./usr/lib/predrain-collector/"),
    ):
        listed = subprocess.run(
            ["dpkg-deb", "-c", package], capture_output=True, text=True, check=True
        ).stdout
        paths = [line.split()[5] for line in listed.splitlines()]
        assert any("/site-packages/predrain/__init__.py" in path for path in paths)
        code = [path for path in paths if path.endswith((".py", ".pyc", ".pth", ".so"))]
        assert [path for path in code if not path.startswith(folder)] == []


def test_the_collector_package_runs_and_names_the_other_package_for_the_service(
    built: Packages, tmp_path: Path
) -> None:
    home = unpack(built.collector, tmp_path)
    assert run(home, "collect", "--help").returncode == 0
    assert not list(home.glob("lib/python3.*/site-packages/predrain/models"))
    served = run(home, "up")
    assert served.returncode == 1
    assert "Traceback" not in served.stderr
    assert "install" in served.stderr


@pytest.mark.parametrize("name", ["service", "collector", "training"])
def test_the_sbom_of_a_package_lists_all_that_it_holds_and_no_more(
    built: Packages, name: str, tmp_path: Path
) -> None:
    package: Path = getattr(built, name)
    (site,) = unpack(package, tmp_path).glob("lib/python3.*/site-packages")
    beside = package.with_name(f"{package.name}.cdx.json").read_text()
    (inside,) = tmp_path.glob("usr/share/doc/*/sbom.cdx.json")
    assert inside.read_text() == beside
    assert JsonStrictValidator(SchemaVersion.V1_5).validate_str(beside) is None
    listed = json.loads(beside)["components"]
    names = [folder.name.removesuffix(".dist-info").split("-") for folder in site.glob("*.dist-info")]
    holds = {(re.sub(r"[-_.]+", "-", name).lower(), version) for name, version in names}
    holds.discard(("predrain", package.name.split("_")[1].partition("+")[0]))
    assert {(one["name"], one["version"]) for one in listed if one["purl"].startswith("pkg:pypi/")} == holds
    assert all(len(one["externalReferences"]) == 1 for one in listed if one["purl"].startswith("pkg:pypi/"))
    page = (site / "predrain" / "service" / "page" / "dist").exists()
    assert any(one["purl"] == f"pkg:npm/preact@{one['version']}" for one in listed) == page


@pytest.mark.parametrize("name", ["service", "collector", "training"])
def test_every_file_of_a_package_is_of_an_installed_distribution(
    built: Packages, name: str, tmp_path: Path
) -> None:
    """No file stands in site-packages that is of none of the packages of the SBOM."""
    (site,) = unpack(getattr(built, name), tmp_path).glob("lib/python3.*/site-packages")
    recorded = {
        row[0]
        for record in site.glob("*.dist-info/RECORD")
        for row in csv.reader(record.read_text().splitlines())
    }
    strange = [
        str(file.relative_to(site))
        for file in site.rglob("*")
        if file.is_file() and file.suffix != ".pyc" and str(file.relative_to(site)) not in recorded
    ]
    assert [
        file for file in strange if not file.endswith((".dist-info/RECORD", ".dist-info/INSTALLER"))
    ] == []
