"""The two packages as they are built from this checkout: each holds a command that runs, and what it needs alone.

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

from tests.system.install.conftest import Packages, build

pytestmark = [pytest.mark.system, pytest.mark.slow, pytest.mark.timeout(600)]
MB = 1_000_000
LAB = ("pandas", "sklearn", "matplotlib", "dask", "distributed", "mlflow", "jax")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Packages:
    if not shutil.which("dpkg-deb"):
        why = "the packages are built with dpkg-deb of Debian"
        pytest.fail(why) if os.environ.get("CI") == "true" else pytest.skip(why)
    return build(tmp_path_factory.mktemp("built"))


def unpack(package: Path, into: Path) -> Path:
    """The site-packages of an unpacked package."""
    subprocess.run(["dpkg-deb", "-x", package, into], check=True)
    (site,) = into.glob("usr/lib/*/lib/python3.*/site-packages")
    return site


def run(site: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """The package's command under Debian's Python, which sees nothing but the package."""
    program = f"import sys; sys.path.insert(0, {str(site)!r}); from predrain.service.cli import main; sys.exit(main())"
    return subprocess.run(
        ["/usr/bin/python3", "-I", "-S", "-c", program, *command], capture_output=True, text=True, check=False
    )


def test_the_service_package_runs_and_leaves_the_laboratory_out(built: Packages, tmp_path: Path) -> None:
    site = unpack(built.service, tmp_path)
    assert run(site, "up", "--help").returncode == 0
    assert [name for name in LAB if (site / name).exists()] == []
    assert run(site, "train", "--help").returncode == 0
    compared = run(site, "backtest", "none.parquet", "--out", str(tmp_path / "report"))
    assert (compared.returncode, "Traceback" in compared.stderr) == (1, False), compared.stderr
    assert built.service.stat().st_size < 200 * MB


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
    site = unpack(built.collector, tmp_path)
    assert run(site, "collect", "--help").returncode == 0
    assert not (site / "predrain" / "models").exists()
    served = run(site, "up")
    assert served.returncode == 1
    assert "Traceback" not in served.stderr
    assert "install" in served.stderr
    assert built.collector.stat().st_size < 17 * MB


@pytest.mark.parametrize("name", ["service", "collector"])
def test_the_sbom_of_a_package_lists_all_that_it_holds_and_no_more(
    built: Packages, name: str, tmp_path: Path
) -> None:
    package: Path = getattr(built, name)
    site = unpack(package, tmp_path)
    beside = package.with_name(f"{package.name}.cdx.json").read_text()
    (inside,) = tmp_path.glob("usr/share/doc/*/sbom.cdx.json")
    assert inside.read_text() == beside
    assert JsonStrictValidator(SchemaVersion.V1_5).validate_str(beside) is None
    listed = json.loads(beside)["components"]
    names = [folder.name.removesuffix(".dist-info").split("-") for folder in site.glob("*.dist-info")]
    holds = {(re.sub(r"[-_.]+", "-", name).lower(), version) for name, version in names}
    holds.remove(("predrain", package.name.split("_")[1]))
    assert {(one["name"], one["version"]) for one in listed if one["purl"].startswith("pkg:pypi/")} == holds
    assert all(len(one["externalReferences"]) == 1 for one in listed if one["purl"].startswith("pkg:pypi/"))
    page = (site / "predrain" / "service" / "page" / "dist").exists()
    assert any(one["purl"] == f"pkg:npm/preact@{one['version']}" for one in listed) == page


@pytest.mark.parametrize("name", ["service", "collector"])
def test_every_file_of_a_package_is_of_an_installed_distribution(
    built: Packages, name: str, tmp_path: Path
) -> None:
    """No file stands in site-packages that is of none of the packages of the SBOM."""
    site = unpack(getattr(built, name), tmp_path)
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
