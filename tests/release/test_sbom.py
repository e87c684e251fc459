"""The SBOM of an artefact lists what the artefact holds, is CycloneDX, and is the same each time."""

from __future__ import annotations

import json
import os
import re
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from deploy.release.sbom import Artefact, SbomRefused, build_sbom
from tests.conftest import ROOT

AT = datetime(2027, 1, 2, 3, 4, 5, tzinfo=UTC)
WHEEL = Artefact("pkg:pypi/predrain", "9.0.0")
HOST = "https://files.pythonhosted.org/packages"


def python_package(name: str, version: str, *archives: str) -> dict[str, Any]:
    """A component as uv lists it."""
    return {
        "type": "library",
        "bom-ref": f"{name}-3@{version}",
        "name": name,
        "version": version,
        "purl": f"pkg:pypi/{name}@{version}",
        "externalReferences": [{"type": "distribution", "url": f"{HOST}/{file}"} for file in archives],
        "properties": [{"name": "uv:package:marker", "value": "sys_platform == 'linux'"}],
    }


LOCKED = {
    "metadata": {"tools": [{"vendor": "Astral Software Inc.", "name": "uv", "version": "0.13.8"}]},
    "components": [
        python_package(
            "py-smart",
            "1.4",
            "py_smart-1.4.tar.gz",
            "py_smart-1.4-cp311-cp311-a.b.whl",
            "py_smart-1.4-cp312-cp312-a.b.whl",
        ),
        python_package("chardet", "7.7"),
        python_package("only-on-3-14", "1.0"),
    ],
    "dependencies": [{"ref": "py-smart-3@1.4", "dependsOn": ["chardet-3@7.7", "only-on-3-14-3@1.0"]}],
}
PAGE = {
    "metadata": {"tools": [{"vendor": "npm", "name": "cli", "version": "11.17.0"}]},
    "components": [{"type": "library", "bom-ref": "preact@11.2.0", "name": "preact", "version": "11.2.0",
                    "purl": "pkg:npm/preact@11.2.0", "properties": [], "scope": "required"}],
    "dependencies": [{"ref": "predrain-page@9.0.0", "dependsOn": ["preact@11.2.0"]}],
}  # fmt: skip


def install(site: Path, name: str, version: str, *fields: str) -> None:
    """A package as an installer leaves it in site-packages."""
    folder = site / f"{name}-{version}.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text(
        "\n".join(["Metadata-Version: 2.4", f"Name: {name}", f"Version: {version}", *fields])
    )
    (folder / "WHEEL").write_text("Wheel-Version: 1.0\nTag: cp311-cp311-a\nTag: cp311-cp311-b\n")


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """Two packages of others and ours; a third one is for another version of Python."""
    install(tmp_path, "Py.Smart", "1.4", "License-Expression: MIT")
    install(
        tmp_path,
        "chardet",
        "7.7",
        "License: " + "long " * 100,
        "Classifier: License :: OSI Approved :: LGPL 2.1",
    )
    install(tmp_path, "predrain", "9.0.0")
    return tmp_path


def find_fault(document: dict[str, Any]) -> object:
    """Return the error that CycloneDX's schema finds in the document, or None."""
    return JsonStrictValidator(SchemaVersion.V1_5).validate_str(json.dumps(document))


def test_a_python_package_is_listed_if_it_is_installed(site: Path) -> None:
    listed = build_sbom(WHEEL, [LOCKED, PAGE], AT, site)["components"]
    assert [one["purl"] for one in listed] == [
        "pkg:npm/preact@11.2.0",
        "pkg:pypi/chardet@7.7",
        "pkg:pypi/py-smart@1.4",
    ]


def test_a_package_is_listed_with_the_archive_that_was_installed_and_its_license(site: Path) -> None:
    (_, chardet, smart) = build_sbom(WHEEL, [LOCKED, PAGE], AT, site)["components"]
    assert [one["url"] for one in smart["externalReferences"]] == [f"{HOST}/py_smart-1.4-cp311-cp311-a.b.whl"]
    assert smart["licenses"] == [{"expression": "MIT"}]
    assert chardet["licenses"] == [{"license": {"name": "LGPL 2.1"}}]


def test_dependencies_name_listed_packages_alone(site: Path) -> None:
    edges = {
        one["ref"]: one["dependsOn"] for one in build_sbom(WHEEL, [LOCKED, PAGE], AT, site)["dependencies"]
    }
    assert edges["pkg:pypi/py-smart@1.4"] == ["pkg:pypi/chardet@7.7"]
    assert edges["pkg:pypi/predrain@9.0.0"] == ["pkg:npm/preact@11.2.0", "pkg:pypi/py-smart@1.4"]


@pytest.mark.parametrize(("name", "version"), [("unknown", "1.0"), ("only_on_3_14", "2.0")])
def test_a_package_that_the_locks_do_not_list_is_refused(site: Path, name: str, version: str) -> None:
    install(site, name, version)
    with pytest.raises(SbomRefused, match=rf"{version} is in the artefact and not in uv\.lock"):
        build_sbom(WHEEL, [LOCKED], AT, site)


def test_the_document_is_cyclonedx(site: Path) -> None:
    assert find_fault(build_sbom(WHEEL, [LOCKED, PAGE], AT, site)) is None
    assert find_fault({**build_sbom(WHEEL, [LOCKED, PAGE], AT, site), "version": "one"}) is not None


def test_the_same_content_gives_the_same_document_and_other_content_another_number(site: Path) -> None:
    stamped = {**LOCKED, "serialNumber": "urn:uuid:c3278a40-e66e-48b2-829f-5295c07fa99f"}
    first, second = (build_sbom(WHEEL, [one, PAGE], AT, site) for one in (LOCKED, stamped))
    assert first == second
    assert build_sbom(WHEEL, [PAGE], AT)["serialNumber"] != first["serialNumber"]


@pytest.mark.system
@pytest.mark.slow
def test_every_package_whose_code_is_in_the_page_is_in_the_list_of_the_page(tmp_path: Path) -> None:
    page, path = ROOT / "service" / "page", f"{ROOT / '.tools' / 'bin'}:{os.environ['PATH']}"
    if not (page / "node_modules" / ".bin" / "vite").exists():
        pytest.fail("service/page/node_modules is missing: run make setup")
    subprocess.run(
        ["node_modules/.bin/vite", "build", "--sourcemap", "--logLevel=error", f"--outDir={tmp_path}", "--emptyOutDir"],
        cwd=page, env={**os.environ, "PATH": path}, check=True, timeout=200,
    )  # fmt: skip
    sources = [one for file in tmp_path.rglob("*.map") for one in json.loads(file.read_text())["sources"]]
    packages = {
        found[1] for one in sources if (found := re.search(r".*node_modules/((?:@[^/]+/)?[^/]+)/", one))
    }
    assert packages
    listed = subprocess.run(
        [ROOT / "deploy/release/list-page"], capture_output=True, text=True, check=True, timeout=60
    )
    assert packages == {one["name"] for one in json.loads(listed.stdout)["components"]}
