"""Which package of the product imports which, read from the source, and what the import contracts allow."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import connected_components

from tests.measure.source import PACKAGES, ROOT, list_product_files

OWN_MODULES = ""
"""The name of the unit that holds the modules which lie in a package itself, in none of its subpackages."""
_SEPARATOR = re.compile(r"\s*[:|]\s*")


@dataclass(frozen=True, slots=True, order=True)
class PackageUnit:
    """A subpackage of a package of the product, or the package's own modules."""

    package: str
    name: str = OWN_MODULES


Import = tuple[PackageUnit, PackageUnit]


@dataclass(frozen=True, slots=True)
class ImportMap:
    """All units, and which imports which."""

    units: frozenset[PackageUnit]
    imports: frozenset[Import]

    def list_units(self, package: str) -> list[PackageUnit]:
        """List the units of a package by name."""
        return sorted(unit for unit in self.units if unit.package == package)

    def list_imported(self, unit: PackageUnit) -> list[PackageUnit]:
        """List what a unit imports of its own package."""
        return sorted(to for of, to in self.imports if of == unit and to.package == unit.package)

    def find_package_imports(self) -> frozenset[tuple[str, str]]:
        """Find which package imports which."""
        return frozenset((of.package, to.package) for of, to in self.imports if of.package != to.package)


@dataclass(frozen=True, slots=True)
class ImportContracts:
    """The contracts of import-linter: the levels of packages, from the top, and of a package's subpackages."""

    levels: tuple[tuple[str, ...], ...]
    inner_levels: Mapping[str, tuple[tuple[str, ...], ...]]
    forbidden: frozenset[tuple[str, str]]

    def allows(self, of: str, to: str) -> bool:
        """Tell whether a package may import another one of a lower level."""
        return (of, to) not in self.forbidden and self.find_level(of) < self.find_level(to)

    def find_level(self, package: str) -> int:
        """Find a package's level, 0 for the top."""
        return next(level for level, names in enumerate(self.levels) if package in names)


def read_imports(root: Path = ROOT, paths: Iterable[Path] | None = None) -> ImportMap:
    """Read every import statement of the product, those inside functions and for type checkers included."""
    units, imports = set[PackageUnit](), set[Import]()
    for path in list_product_files() if paths is None else paths:
        parts = path.relative_to(root).with_suffix("").parts
        unit = find_unit(("predrain", *parts), root)
        if unit is None:
            continue
        if unit.name or path.name != "__init__.py":
            units.add(unit)
        for name in _list_imported_names(ast.parse(path.read_text())):
            imported = find_unit(tuple(name.split(".")), root)
            if imported is not None and imported != unit:
                imports.add((unit, imported))
    return ImportMap(frozenset(units), frozenset(one for one in imports if set(one) <= units))


def find_unit(name: Sequence[str], root: Path = ROOT) -> PackageUnit | None:
    """Find the unit that a dotted name lies in; None for what is none of the product's."""
    if len(name) < 2 or name[0] != "predrain" or name[1] not in PACKAGES:
        return None
    inner = name[2] if len(name) > 2 and (root / name[1] / name[2]).is_dir() else OWN_MODULES
    return PackageUnit(name[1], inner)


def _list_imported_names(module: ast.Module) -> Iterator[str]:
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def read_contracts(pyproject: Path = ROOT / "pyproject.toml") -> ImportContracts:
    """Read the contracts of import-linter from the project's file."""
    contracts: list[dict[str, Any]] = tomllib.loads(pyproject.read_text())["tool"]["importlinter"][
        "contracts"
    ]
    layers = [one for one in contracts if one["type"] == "layers"]
    (outer,) = (one for one in layers if "containers" not in one)
    inner = {
        _last(container): _split_levels(one["layers"])
        for one in layers
        for container in one.get("containers", ())
    }
    forbidden = {
        (_last(of), _last(to))
        for one in contracts
        if one["type"] == "forbidden"
        for of in one["source_modules"]
        for to in one["forbidden_modules"]
        if to.startswith("predrain.")
    }
    return ImportContracts(_split_levels(outer["layers"]), inner, frozenset(forbidden))


def _split_levels(layers: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(_last(name) for name in _SEPARATOR.split(layer)) for layer in layers)


def _last(name: str) -> str:
    return name.strip().rpartition(".")[2]


Cluster = tuple[PackageUnit, ...]
"""A unit alone, or several of which each is imported by way of every other one."""


def arrange_units(imported: ImportMap, package: str, contracts: ImportContracts) -> list[list[Cluster]]:
    """Arrange a package's units in levels, the top first: by its contract, else by what imports what."""
    units = imported.list_units(package)
    named = contracts.inner_levels.get(package)
    if named is not None:
        left = [unit for unit in units if not any(unit.name in names for names in named)]
        levels = [left, *([unit for unit in units if unit.name in names] for names in named)]
        return [[(unit,) for unit in level] for level in levels if level]
    clusters = find_clusters(units, imported)
    heights = _find_heights(clusters, imported)
    return [
        [cluster for cluster in clusters if heights[cluster] == height]
        for height in sorted(set(heights.values()), reverse=True)
    ]


def find_clusters(units: Sequence[PackageUnit], imported: ImportMap) -> list[Cluster]:
    """Find the units that import each other, directly or by way of others."""
    place = {unit: index for index, unit in enumerate(units)}
    pairs = sorted((place[of], place[to]) for of, to in imported.imports if of in place and to in place)
    of, to = (np.array([pair[side] for pair in pairs], dtype=np.intp) for side in (0, 1))
    matrix = csr_matrix((np.ones(len(pairs)), (of, to)), shape=(len(units), len(units)))
    _, labels = connected_components(matrix, connection="strong")
    return sorted(
        tuple(unit for unit, label in zip(units, labels, strict=True) if label == one)
        for one in sorted(set(labels.tolist()))
    )


def _find_heights(clusters: Collection[Cluster], imported: ImportMap) -> Mapping[Cluster, int]:
    """Find each cluster's height: 0 where it imports nothing of its package, else one above what it imports."""
    home = {unit: cluster for cluster in clusters for unit in cluster}
    heights: dict[Cluster, int] = {}

    def measure_height(cluster: Cluster) -> int:
        if cluster not in heights:
            below = {home[to] for unit in cluster for to in imported.list_imported(unit)} - {cluster}
            heights[cluster] = 1 + max(map(measure_height, below), default=-1)
        return heights[cluster]

    for cluster in clusters:
        measure_height(cluster)
    return heights
