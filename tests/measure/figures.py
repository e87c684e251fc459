"""The figures that the code base is held to, each with its limit, and how they are measured."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.measure.source import (
    LONGEST_BODY,
    ROOT,
    count_function_names,
    count_lines,
    find_long_functions,
    find_shared_class_names,
    list_class_files,
    list_longest_files,
    list_product_files,
)
from tests.measure.tracing import FunctionTrace

LONGEST_FILES = 15
"""So many of the longest files are listed."""
PAGE_SOURCE = "service/page/src/"


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured number. A figure without a limit is only printed."""

    name: str
    value: float
    unit: str
    limit: float | None = None

    @property
    def is_met(self) -> bool:
        """True if the number is within its limit, or has no limit."""
        return self.limit is None or self.value <= self.limit


@dataclass(frozen=True, slots=True)
class Measurement:
    """All figures, and lists that say where the numbers come from: a title and its lines."""

    figures: tuple[Figure, ...]
    details: tuple[tuple[str, tuple[str, ...]], ...]

    @property
    def is_met(self) -> bool:
        """True if every figure is within its limit, or has no limit."""
        return all(figure.is_met for figure in self.figures)


def measure_source() -> Measurement:
    """Measure what the text of the product says, which takes some seconds."""
    python, typescript = list_product_files("*.py"), list_page_files()
    names = count_function_names(python)
    shared = find_shared_class_names(list_class_files())
    long = find_long_functions(python)
    lines, page_lines = count_lines(python), count_lines(typescript)
    figures = (
        Figure("functions of the product with a one-word name", names.share, "%", 40.0),
        Figure("functions of the product", names.functions, ""),
        Figure("public class names that two classes share", len(shared), "", 0.0),
        Figure(f"functions of more than {LONGEST_BODY} lines", len(long), "", 0.0),
        Figure("product lines of Python", sum(lines.values()), "lines"),
        Figure("product files of Python", len(lines), "files"),
        Figure("product lines of TypeScript", sum(page_lines.values()), "lines"),
    )
    longest = list_longest_files(lines, LONGEST_FILES)
    details = (
        ("Class names that are shared", tuple(f"{name}: {', '.join(at)}" for name, at in shared.items())),
        (f"Functions of more than {LONGEST_BODY} lines", tuple(f"{name}: {n}" for name, n in long.items())),
        (f"The {LONGEST_FILES} longest files", tuple(_name_length(path, count) for path, count in longest)),
    )
    return Measurement(figures, details)


def measure_traces() -> Measurement:
    """Measure how much code one request, one first upmap and one outlook take, which takes less than a minute."""
    # These import the whole service.
    from predrain.service.forecasting.bundle_choice import BundledForecaster
    from tests.measure.scenarios import running_service, trace_drain, trace_reading

    forecaster = BundledForecaster.load()
    with (
        tempfile.TemporaryDirectory(prefix="predrain-measure-") as folder,
        running_service(Path(folder), forecaster) as service,
    ):
        reading = trace_reading(service, forecaster)
        proposal, approval, upmap = trace_drain(service)
    figures = (
        *_figure_trace("proposal, from the REST route to the saved drain", proposal, 35, 12),
        *_figure_trace("approval, from the REST route to the saved drain", approval, 35, 12),
        *_figure_trace("approved drain to its first upmap", upmap, 250, 40),
        Figure("types between smartctl's JSON text and the outlook", len(reading.types), "", 10.0),
    )
    details = (
        ("Functions from the proposal's route to the saved drain", tuple(proposal.list_functions())),
        ("Functions from the approval's route to the saved drain", tuple(approval.list_functions())),
        ("Functions from the approved drain to its first upmap", tuple(upmap.list_functions())),
        ("Types between smartctl's JSON text and the outlook", tuple(reading.list_types())),
    )
    return Measurement(figures, details)


def list_page_files() -> list[Path]:
    """List the TypeScript files of the page, its tests left out."""
    found = [*list_product_files("*.ts"), *list_product_files("*.tsx")]
    return [path for path in found if PAGE_SOURCE in str(path) and ".test." not in path.name]


def _figure_trace(name: str, trace: FunctionTrace, functions: int, files: int) -> Sequence[Figure]:
    return (
        Figure(f"{name}: functions", trace.functions, "functions", functions),
        Figure(f"{name}: files", trace.files, "files", files),
    )


def _name_length(path: Path, lines: int) -> str:
    return f"{path.relative_to(ROOT)}: {lines}"
