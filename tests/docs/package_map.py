"""Draws the packages and subpackages of the product on their levels, with what imports what."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tests.docs.imports import (
    Cluster,
    ImportContracts,
    ImportMap,
    PackageUnit,
    arrange_units,
    read_contracts,
    read_imports,
)
from tests.docs.svg import draw_arrow, draw_box, draw_page, draw_text, wrap_text

WIDTH = 1280.0
LANE, GAP, PADDING, LINE = 46.0, 30.0, 12.0, 17.0
ARROW = 44.0
"""The height of the gap between two levels of packages."""
TITLE = 32.0
NARROWEST = 178.0
"""A box of a subpackage is at least this wide."""
COLUMNS = (("models", 0.39), ("actions", 0.38), ("collector", 0.23))
"""The packages of the middle, side by side, each with its part of the width."""


@dataclass(frozen=True, slots=True)
class PackageBox:
    """A package that was laid out: where it is, and what it is drawn with."""

    x: float
    y: float
    width: float
    height: float
    parts: tuple[str, ...]

    @property
    def middle(self) -> float:
        """The middle between its left and its right edge."""
        return self.x + self.width / 2

    @property
    def bottom(self) -> float:
        """Its lower edge."""
        return self.y + self.height

    @property
    def right(self) -> float:
        """Its right edge."""
        return self.x + self.width


def draw_package_map() -> str:
    """Draw the map of the packages as they are now."""
    imported, contracts = read_imports(), read_contracts()
    pairs = sorted(imported.find_package_imports())
    boxes = _place_packages(imported, contracts)
    arrows = _draw_imports(boxes, imported, contracts)
    bottom = max(box.bottom for box in boxes.values()) + 28
    legend = [
        "An arrow leads from a package to one that it imports; a dashed arrow is allowed and not used. The contracts "
        "of import-linter refuse every import upwards.",
        "Within a package no row imports a row above it. The small print names what a subpackage imports of its "
        "own package.",
        "A dashed frame holds subpackages that import each other, directly or by way of others.",
    ]
    against = [
        f"Against the contracts: {of} imports {to}." for of, to in pairs if not contracts.allows(of, to)
    ]
    lines = [draw_text("soft", LANE, bottom + LINE * row, text) for row, text in enumerate(legend)]
    lines += [
        draw_text("soft bad", LANE, bottom + LINE * (len(legend) + row), text)
        for row, text in enumerate(against)
    ]
    height = bottom + LINE * len(lines) + 4
    described = "; ".join(
        f"{package} imports {', '.join(to for of, to in pairs if of == package)}"
        for package in boxes
        if any(of == package for of, _ in pairs)
    )
    parts = [part for box in boxes.values() for part in box.parts]
    return draw_page(WIDTH, height, "Packages of predrain", f"{described}.", [*parts, *arrows, *lines])


def _place_packages(imported: ImportMap, contracts: ImportContracts) -> dict[str, PackageBox]:
    whole = WIDTH - 2 * LANE

    def place(package: str, x: float, y: float, width: float) -> PackageBox:
        return _lay_out_package(package, imported, contracts, x, y, width)

    boxes = {"service": place("service", LANE, 14, whole)}
    x, y = LANE, boxes["service"].bottom + ARROW
    shared = whole - GAP * (len(COLUMNS) - 1)
    for package, part in COLUMNS:
        boxes[package] = place(package, x, y, shared * part)
        x = boxes[package].right + GAP
    models = boxes["models"]
    boxes["features"] = place("features", models.x, models.bottom + ARROW, models.width)
    bottom = max(box.bottom for box in boxes.values()) + ARROW
    boxes["data"] = place("data", LANE, bottom, whole)
    return boxes


def _lay_out_package(
    package: str, imported: ImportMap, contracts: ImportContracts, x: float, y: float, width: float
) -> PackageBox:
    parts: list[str] = []
    below = y + TITLE
    for level in arrange_units(imported, package, contracts):
        alone = [cluster[0] for cluster in level if len(cluster) == 1]
        if alone:
            below = _lay_out_units(alone, imported, x + PADDING, below, width - 2 * PADDING, parts)
        for cluster in level:
            if len(cluster) > 1:
                below = _lay_out_circle(cluster, imported, x + PADDING, below, width - 2 * PADDING, parts)
    height = below - y + PADDING - 8
    frame = [draw_box("room", x, y, width, height), draw_text("title", x + PADDING, y + 22, f"{package}/")]
    return PackageBox(x, y, width, height, (*frame, *parts))


def _lay_out_circle(
    cluster: Cluster, imported: ImportMap, x: float, y: float, width: float, parts: list[str]
) -> float:
    inner = _lay_out_units(cluster, imported, x + 8, y + 8, width - 16, parts)
    parts.append(draw_box("frame", x, y, width, inner - y))
    return inner + 8


def _lay_out_units(
    units: Sequence[PackageUnit], imported: ImportMap, x: float, y: float, width: float, parts: list[str]
) -> float:
    """Lay units out in as many rows as they need; returns where the next row may begin."""
    most = max(1, int((width + 8) // (NARROWEST + 8)))
    rows = -(-len(units) // most)
    columns = -(-len(units) // rows)
    box = (width - 8 * (columns - 1)) / columns
    for row in range(rows):
        some = units[row * columns : (row + 1) * columns]
        lines = [wrap_text(_name_imports(unit, imported), box - 20) for unit in some]
        height = 28 + LINE * max(map(len, lines)) + (4 if any(lines) else 0)
        for column, (unit, small) in enumerate(zip(some, lines, strict=True)):
            left = x + column * (box + 8)
            parts.append(draw_box("box", left, y, box, height))
            parts.append(draw_text("name", left + 10, y + 19, _name_unit(unit)))
            parts += [
                draw_text("soft", left + 10, y + 37 + LINE * place, line) for place, line in enumerate(small)
            ]
        y += height + 8
    return y


def _name_unit(unit: PackageUnit) -> str:
    return unit.name or f"modules of {unit.package}"


def _name_imports(unit: PackageUnit, imported: ImportMap) -> str:
    return ", ".join(_name_unit(one) for one in imported.list_imported(unit))


def _draw_imports(boxes: dict[str, PackageBox], imported: ImportMap, contracts: ImportContracts) -> list[str]:
    """Draw an arrow for every import that is allowed: straight down where nothing is between, else along the edge."""
    arrows = []
    used = imported.find_package_imports()
    lanes = {"left": LANE - 14, "right": WIDTH - LANE + 14}
    for of, to in sorted((of, to) for of in boxes for to in boxes if contracts.allows(of, to)):
        kind = "" if (of, to) in used else "unused"
        upper, lower = boxes[of], boxes[to]
        narrow = min(upper, lower, key=lambda box: box.width)
        between = [
            box
            for name, box in boxes.items()
            if name not in (of, to) and box.x <= narrow.middle <= box.right and upper.y < box.y < lower.y
        ]
        if not between:
            arrows.append(draw_arrow([(narrow.middle, upper.bottom), (narrow.middle, lower.y - 2)], kind))
            continue
        side = "left" if min(upper.right, lower.right) < WIDTH - LANE - 1 else "right"
        outward = -1 if side == "left" else 1
        start, end = (upper.x, lower.x) if side == "left" else (upper.right, lower.right)
        edge, above, below = lanes[side], upper.y + 20, lower.y + 20
        lanes[side] += 12 * outward
        points = [(start, above), (edge, above), (edge, below), (end + 2 * outward, below)]
        arrows.append(draw_arrow(points, kind))
    return arrows
