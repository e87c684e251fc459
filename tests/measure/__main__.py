"""`python -m tests.measure` (`make measure`): the figures that the code base is held to, in one table.

A figure that is over its limit is printed as missed. The exit code is 0 all the same, since some limits are aims that
are not reached yet; with `--strict` it is 1. `--details` prints the functions and types behind the traced figures.

The figures count the following:

- Names: Every `def` of the product's packages, methods and nested functions included, dunder methods left out. A
  one-word name has no underscore between two words.
- Traces: The distinct functions of the product that are entered in any thread, and their distinct files, on a service
  with a real SQLite store over a simulated cluster. The work of the simulated cluster is left out, since a service has
  a real one in its place. A drain's proposal and approval are counted from the entry of the route's function to the
  return of the store's `save_drain`, so that the ASGI layers around the route are not in them. The way to the first
  upmap is counted over every tick after the approval until the command is handed to the cluster.
- Types: The product's classes whose instances are made (their `__init__` runs) or returned (alone, or in a tuple, list,
  set or dict) by a function of the product. Only the functions are traced that are entered on the way from smartctl's
  JSON text over reading, drive state, feature vector and forecast to the outlook. Enumerations count. Generated
  `msgspec` structs have no `__init__` of their own and count where they are returned.
- Lines: All lines of the product's files, those of generated files left out.
"""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Sequence

import structlog
from rich.console import Console
from rich.table import Table

from tests.measure.figures import Figure, Measurement, measure_source, measure_traces

NARROWEST = 110
"""Columns that the table takes where it is not printed to a wider terminal."""
ALWAYS_SHOWN = "longest files"
"""The words in the title of the one list that is printed without `--details`."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and judge where that is asked for."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.measure", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--strict", action="store_true", help="exit with 1 when a limit is missed")
    parser.add_argument("--details", action="store_true", help="print what the figures were counted from")
    options = parser.parse_args(arguments)
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    source, traces = measure_source(), measure_traces()
    whole = Measurement((*source.figures, *traces.figures), (*source.details, *traces.details))
    console = Console()
    if console.width < NARROWEST:
        console = Console(width=NARROWEST)
    print_measurement(whole, console, details=options.details)
    return choose_exit_code(whole, strict=options.strict)


def choose_exit_code(measurement: Measurement, *, strict: bool) -> int:
    """Choose the exit code: a missed limit counts only where that is asked for."""
    return 1 if strict and not measurement.is_met else 0


def print_measurement(measurement: Measurement, console: Console, *, details: bool) -> None:
    """Print the table and the lists."""
    table = Table("figure", "value", "limit", "")
    for column in table.columns[1:3]:
        column.justify = "right"
    for figure in measurement.figures:
        table.add_row(*describe_figure(figure))
    console.print(table)
    for title, lines in measurement.details:
        if lines and (details or ALWAYS_SHOWN in title):
            console.print(f"\n{title}:", *(f"  {line}" for line in lines), sep="\n", highlight=False)


def describe_figure(figure: Figure) -> tuple[str, str, str, str]:
    """Describe a figure: its name, its value and its limit with the unit, and whether it is met."""
    unit = f" {figure.unit}" if figure.unit else ""
    digits = 1 if figure.unit == "%" else 0
    value = f"{figure.value:,.{digits}f}{unit}"
    if figure.limit is None:
        return figure.name, value, "", ""
    return figure.name, value, f"{figure.limit:,.0f}{unit}", "met" if figure.is_met else "missed"


if __name__ == "__main__":
    sys.exit(main())
