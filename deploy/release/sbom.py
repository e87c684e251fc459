"""The CycloneDX document of one artefact: what uv and npm list of the locks, cut down to what the artefact holds.

`deploy/deb/build` and `deploy/release/build` start it with the system's Python, which has the standard library alone.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import Distribution, PathDistribution
from pathlib import Path
from typing import Any
from urllib.parse import quote
from uuid import NAMESPACE_URL, uuid5

from predrain.data.refusal import Refusal

OWN = "predrain"
LICENSE = [{"license": {"id": "Apache-2.0"}}]
LONGEST_LICENSE = 100
"""Characters. Some packages write the text of their license into the field that should have its name."""
Component = dict[str, Any]


class SbomRefused(Refusal):
    """An artefact holds what its locks do not list."""


@dataclass(frozen=True, slots=True)
class Artefact:
    """The package that a document describes: its URL without the version (`pkg:pypi/predrain`), and the version."""

    url: str
    version: str

    def describe_component(self) -> Component:
        """Return the artefact as a component of CycloneDX."""
        purl = f"{self.url}@{quote(self.version, safe='')}"
        name = self.url.rsplit("/", 1)[-1]
        return {
            "type": "application",
            "bom-ref": purl,
            "name": name,
            "version": self.version,
            "purl": purl,
            "licenses": LICENSE,
        }


def build_sbom(
    artefact: Artefact, listed: Sequence[Mapping[str, Any]], at: datetime, site: Path | None = None
) -> dict[str, Any]:
    """Return the CycloneDX document of an artefact.

    `listed` are the documents of uv and npm. With `site`, a folder of installed packages, a Python package is in the
    document if it is installed there, with its license, and with the one archive that it was installed from. The same
    arguments give the same document: `at` is its time, and its serial number is computed from its content.

    Raises SbomRefused if a package is installed that is not listed, or has another version than the listed one.
    """
    components: dict[str, Component] = {}
    edges: dict[str, list[str]] = {}
    for document in listed:
        urls = {one["bom-ref"]: one["purl"] for one in document["components"]}
        components |= {one["purl"]: _normalize_component(one) for one in document["components"]}
        for edge in document.get("dependencies", ()):
            if edge["ref"] in urls:
                edges[urls[edge["ref"]]] = [urls[ref] for ref in edge.get("dependsOn", ()) if ref in urls]
    if site is not None:
        components = dict(_iterate_installed(components, site))
    kept = sorted(components)
    needed = {url for ref in kept for url in edges.get(ref, ())}
    subject = artefact.describe_component()
    roots = [ref for ref in kept if ref not in needed]
    document = {
        "$schema": "http://cyclonedx.org/schema/bom-1.5.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "timestamp": at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "tools": [tool for one in listed for tool in one["metadata"]["tools"]],
            "component": subject,
        },
        "components": [components[ref] for ref in kept],
        "dependencies": [{"ref": subject["bom-ref"], "dependsOn": roots}]
        + [
            {"ref": ref, "dependsOn": sorted(url for url in edges.get(ref, ()) if url in components)}
            for ref in kept
        ],
    }
    content = json.dumps(document, sort_keys=True)
    return {**document, "serialNumber": uuid5(NAMESPACE_URL, content).urn}


def normalize_name(name: str) -> str:
    """Return the name of a Python package as package URLs write it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the document of an artefact; return the exit code. SOURCE_DATE_EPOCH is the time of the document."""
    parser = argparse.ArgumentParser(
        prog="python -m deploy.release.sbom", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("listed", nargs="*", type=Path, help="a CycloneDX document of uv or npm")
    parser.add_argument("--url", required=True, help="the package URL of the artefact, without a version")
    parser.add_argument("--version", required=True)
    parser.add_argument("--site", type=Path, help="the artefact's site-packages")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args(arguments)
    at = datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), UTC)
    listed = [json.loads(file.read_text()) for file in options.listed]
    try:
        document = build_sbom(Artefact(options.url, options.version), listed, at, options.site)
    except SbomRefused as refused:
        print(f"sbom: {refused}", file=sys.stderr)
        return 1
    options.out.write_text(json.dumps(document, indent=1, ensure_ascii=False, sort_keys=True) + "\n")
    return 0


def _normalize_component(listed: Component) -> Component:
    """Return a component that is named by its package URL, without empty fields and those of one tool alone."""
    own = {key: value for key, value in listed.items() if key not in ("bom-ref", "properties") and value}
    return {**own, "bom-ref": listed["purl"]}


def _iterate_installed(listed: Mapping[str, Component], site: Path) -> Iterator[tuple[str, Component]]:
    """Give each listed component that is not a Python package, or that is installed in `site`."""
    python = {
        (one["name"], one["version"]): url for url, one in listed.items() if url.startswith("pkg:pypi/")
    }
    yield from ((url, one) for url, one in listed.items() if not url.startswith("pkg:pypi/"))
    for folder in sorted(site.glob("*.dist-info")):
        installed = PathDistribution(folder)
        name = normalize_name(installed.metadata["Name"])
        if name == OWN:
            continue
        if (name, installed.version) not in python:
            raise SbomRefused(
                f"{name} {installed.version} is in the artefact and not in uv.lock; build it again by: make clean setup"
            )
        url = python[name, installed.version]
        yield url, {**_choose_archive(listed[url], installed), "licenses": list(_iterate_licenses(installed))}


def _choose_archive(listed: Component, installed: Distribution) -> Component:
    """Return the component with the archive that was installed, of all archives that the lock lists."""
    tags = set(re.findall(r"(?m)^Tag: (\S+)$", installed.read_text("WHEEL") or ""))
    archives = listed.get("externalReferences", [])
    chosen = [one for one in archives if set(_iterate_tags(one["url"])) == tags]
    return {**listed, "externalReferences": chosen or archives}


def _iterate_tags(url: str) -> Iterator[str]:
    """Give the tags of a wheel by its file name, and nothing for another file."""
    name = url.rsplit("/", 1)[-1]
    if not name.endswith(".whl"):
        return
    interpreters, binaries, platforms = name.removesuffix(".whl").split("-")[-3:]
    for interpreter in interpreters.split("."):
        for binary in binaries.split("."):
            yield from (f"{interpreter}-{binary}-{platform}" for platform in platforms.split("."))


def _iterate_licenses(installed: Distribution) -> Iterable[dict[str, Any]]:
    """Return what the package says of its license: an expression, or else names; nothing if it says nothing."""
    metadata = installed.metadata
    for expression in metadata.get_all("License-Expression") or ():
        return [{"expression": expression}]
    (named, *_) = metadata.get_all("License") or ("",)
    if named and "\n" not in named and len(named) <= LONGEST_LICENSE:
        return [{"license": {"name": named}}]
    classifiers = metadata.get_all("Classifier") or ()
    return [
        {"license": {"name": one.rsplit(" :: ", 1)[-1]}}
        for one in classifiers
        if one.startswith("License :: ")
    ]


if __name__ == "__main__":
    sys.exit(main())
