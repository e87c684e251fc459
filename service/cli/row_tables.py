"""Rows of a list as people and spreadsheets read them: columns with units, sorted, filtered, as a table or as CSV."""

from __future__ import annotations

import csv
import difflib
import fnmatch
import operator
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeAlias

from cyclopts import Parameter

from predrain.data.refusal import Refusal
from predrain.service.cli.shared_options import escape_to_one_line, make_console, print_json

if TYPE_CHECKING:
    from rich.table import Table

Row: TypeAlias = Any
"""A row of an answer of REST."""
Cell: TypeAlias = str | float | None
"""A value in the unit of its column; None: not known."""

URGENCY = "urgency"
_CONDITION = re.compile(r"([a-z0-9_]+)(!=|>=|<=|=|<|>)(.*)", re.DOTALL)
_COMPARISONS: Final[Mapping[str, Callable[[float, float], bool]]] = {
    ">": operator.gt,
    "<": operator.lt,
    ">=": operator.ge,
    "<=": operator.le,
}
_FORMULA_BEGINNINGS = ("=", "+", "-", "@")
"""A spreadsheet executes a text that begins like this, and a drive's model is text from outside."""
_NARROWEST = 8
"""The least characters of a column that is cut to the width of the terminal."""


class BadChoice(Refusal):
    """A sort order or a filter that names no column, or a comparison that the column does not have."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column. `name`: for --sort and --filter. `unit`: of its numbers; empty for text and plain numbers."""

    name: str
    head: str
    """The head in the terminal; empty: the column stands in CSV alone."""
    value: Callable[[Row], Cell]
    show: Callable[[Any], str] = str
    unit: str = ""
    number: bool = False
    cut: bool = False
    """True for text that is cut where the table would be wider than the terminal."""

    @property
    def csv_head(self) -> str:
        """Return the name with the unit in parentheses."""
        return f"{self.name} ({self.unit})" if self.unit else self.name


AsCsv = Annotated[
    bool,
    Parameter(
        name="--csv",
        negative="",
        help="Comma-separated values, all columns, each with its unit in the header.",
    ),
]


@Parameter(name="*")
@dataclass(frozen=True)
class RowChoice:
    """Which rows are listed, in which order, and for whom."""

    sort: Annotated[
        str,
        Parameter(
            allow_leading_hyphen=True,
            help="A column, as --csv names it, such as `temperature`; `-temperature` puts the largest first.",
        ),
    ] = URGENCY
    filter: Annotated[
        tuple[str, ...],
        Parameter(
            negative="",
            help="Only rows that meet a condition: `host=stor-2*`, `severity!=good`, `temperature>45` (°C), `size>=8` "
            "(TB), `age<1` (years). Repeated: all of them.",
        ),
    ] = ()
    csv: AsCsv = False
    as_json: Annotated[
        bool, Parameter(name="--json", negative="", help="JSON for programs: the rows as REST answers them.")
    ] = False


CHOSEN = RowChoice()


def print_rows(
    rows: Iterable[Row],
    columns: Sequence[Column],
    choice: RowChoice,
    urgency: Callable[[Row], Any],
    nothing: str,
) -> None:
    """Print the chosen rows in the chosen order and form. urgency: the sort key of the default order.

    nothing: the sentence for people where there is no row. Raises BadChoice.
    """
    chosen = choose_rows(rows, columns, choice, urgency)
    if choice.as_json:
        print_json(chosen)
    elif choice.csv:
        write_csv(chosen, columns)
    elif chosen:
        make_console().print(_build_table(chosen, columns))
    else:
        print(nothing)


def choose_rows(
    rows: Iterable[Row], columns: Sequence[Column], choice: RowChoice, urgency: Callable[[Row], Any]
) -> list[Row]:
    """Return the rows that meet all conditions, in the order that is asked for. Raises BadChoice."""
    require_one_form(as_csv=choice.csv, as_json=choice.as_json)
    tests = [_parse_condition(text, columns) for text in choice.filter]
    chosen = sorted((row for row in rows if all(test(row) for test in tests)), key=urgency)
    if choice.sort == URGENCY:
        return chosen
    column = _find_column(choice.sort.removeprefix("-"), columns)
    known = [row for row in chosen if column.value(row) is not None]
    unknown = [row for row in chosen if column.value(row) is None]
    return sorted(known, key=lambda row: _order(column, row), reverse=choice.sort.startswith("-")) + unknown


def require_one_form(*, as_csv: bool, as_json: bool) -> None:
    """Raise BadChoice if two forms of one answer are asked for."""
    if as_csv and as_json:
        raise BadChoice("--csv and --json are two forms of one answer; give one of them")


def _order(column: Column, row: Row) -> Any:
    value = column.value(row)
    return value if column.number else str(value).casefold()


def write_csv(rows: Iterable[Row], columns: Sequence[Column]) -> None:
    """Write every column of the rows to standard output; an empty cell is a value that is not known."""
    out = csv.writer(sys.stdout, lineterminator="\n")
    out.writerow([column.csv_head for column in columns])
    out.writerows([[_write_cell(column.value(row)) for column in columns] for row in rows])


def _write_cell(value: Cell) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        text = escape_to_one_line(value)
        return f"'{text}" if text.startswith(_FORMULA_BEGINNINGS) else text
    # Without an exponent: some spreadsheets take `5e-05` for a text, or round it to 0 as they show it.
    return f"{Decimal(f'{value:.10g}'):f}"


def _build_table(rows: Sequence[Row], columns: Sequence[Column]) -> Table:
    from rich.table import Table

    cells = {
        column.name: [_show_cell(column, row) for row in rows]
        for column in columns
        if column.head and any(column.value(row) not in (None, "") for row in rows)
    }
    shown = [column for column in columns if column.name in cells]
    widths = {column.name: max(map(len, (column.head, *cells[column.name]))) for column in shown}
    cut = [column.name for column in shown if column.cut]
    room = make_console().width - len(shown) - sum(widths[one.name] for one in shown if not one.cut)
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False)
    for column in shown:
        width = max(_NARROWEST, room // len(cut)) if column.cut else None
        table.add_column(
            column.head,
            justify="right" if column.number else "left",
            no_wrap=True,
            max_width=width,
            min_width=None if column.cut else widths[column.name],
        )
    for row in zip(*(cells[column.name] for column in shown), strict=True):
        table.add_row(*row)
    return table


def _show_cell(column: Column, row: Row) -> str:
    value = column.value(row)
    return "" if value is None else escape_to_one_line(column.show(value))


def _find_column(name: str, columns: Sequence[Column]) -> Column:
    found = next((one for one in columns if one.name == name), None)
    if found is None:
        near = difflib.get_close_matches(name, [one.name for one in columns], n=1)
        names = f"{near[0]!r} perhaps" if near else ", ".join(one.name for one in columns)
        raise BadChoice(f"there is no column {name!r}; give {names}")
    return found


def _parse_condition(text: str, columns: Sequence[Column]) -> Callable[[Row], bool]:
    """Return the test of a row that a condition such as `temperature>45` means. Raises BadChoice."""
    parts = _CONDITION.fullmatch(text.strip())
    if parts is None:
        raise BadChoice(
            f"{text!r} is no condition; give one like host=stor-2*, severity!=good or temperature>45"
        )
    name, sign, wanted = parts[1], parts[2], parts[3].strip()
    column = _find_column(name, columns)
    if sign in _COMPARISONS or (column.number and wanted):
        number = _parse_number(text, column, wanted)
        compare = _COMPARISONS.get(sign) or (operator.ne if sign == "!=" else operator.eq)
        return lambda row: (value := column.value(row)) is not None and compare(float(value), number)
    pattern, wants = wanted.casefold(), sign == "="
    return lambda row: fnmatch.fnmatchcase(str(column.value(row) or "").casefold(), pattern) is wants


def _parse_number(text: str, column: Column, wanted: str) -> float:
    if not column.number:
        raise BadChoice(
            f"{text!r} compares a text with a number; give {column.name}=PATTERN or {column.name}!=PATTERN"
        )
    try:
        return float(wanted)
    except ValueError:
        unit = f" in {column.unit}" if column.unit else ""
        raise BadChoice(f"{text!r} compares with no number; give {column.name} a number{unit}") from None
