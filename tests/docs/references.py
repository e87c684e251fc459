"""The parts of the reference that the code itself gives, by the names that mark them in the pages."""

from __future__ import annotations

import inspect
import json
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, get_type_hints

from cyclopts import App, Argument

from predrain.actions.guards import GUARDS
from predrain.data.drain import DrainState
from predrain.data.outside_text import TEXT_FIELDS
from predrain.service.cli import _import_all_commands, app
from predrain.service.config.channels import list_channel_names
from predrain.service.config.collector_table import CollectorTable
from predrain.service.config.settings import NAME, find_table_model, is_table_named, list_setting_keys
from predrain.service.rest.metrics.metric_catalogue import CATALOGUE
from tests.docs import rule_tables
from tests.docs.kinds import kind
from tests.docs.pages import DOCS

Row = tuple[str, ...]
OPTIONS: Row = ("option", "kind", "default", "meaning")
CHANNELS_WITH_SECTION = ("mail", "webhook")
SHARED = 8
"""In how many commands an option stands before it is one that many share."""
EMPTY = ("None", "", "()", "False", str(inspect.Parameter.empty))


def table(head: Row, rows: list[Row]) -> str:
    """A Markdown table."""
    lines = [f"| {' | '.join(cell.replace('|', '&#124;') for cell in line)} |" for line in (head, *rows)]
    return "\n".join([lines[0], "|" + "---|" * len(head), *lines[1:]])


def settings(name: str) -> str:
    """Every key of one table of the settings."""
    rows = [
        (f"`{of}.{key}`", _kind_of(of, key), f"`{_shown(default)}`", told)
        for of, key, default, told in list_setting_keys()
        if of == name
    ]
    return table(("key", "kind", "default", "meaning"), rows)


def further_channels() -> str:
    """Every table of a notification channel that has no section of its own in the page."""
    parts = []
    for name in list_channel_names():
        if name not in CHANNELS_WITH_SECTION:
            model, written = find_table_model(name), f"{name}.{NAME}" if is_table_named(name) else name
            parts.append(f"## `[{written}]`\n\n{inspect.getdoc(model)}\n\n{settings(written)}\n")
    return "\n".join(parts)


def metrics(section: str) -> str:
    """Every family of one section of the catalogue."""
    rows = [
        (
            f"`{one.series_name}`",
            "counter" if one.counts else "gauge",
            ", ".join(f"`{label}`" for label in one.labels),
            one.bound,
            one.told,
        )
        for one in CATALOGUE[section]
    ]
    return table(("metric", "kind", "labels", "series", "what it says"), rows)


def text_fields() -> str:
    """Every kind of text from outside with its limit."""
    rows = [(one.name, str(one.limit), one.enters, "yes" if one.identifies else "") for one in TEXT_FIELDS]
    return table(("field", "characters at most", "where it enters", "identifies"), rows)


def guards() -> str:
    """Every guard in the order in which it is asked, with the first line of its page, when it has a say, and whether a
    person may insist past it.
    """
    any_asked = frozenset[DrainState]().union(*(guard.during for guard in GUARDS))
    rows = []
    for guard in GUARDS:
        title = (DOCS / "guards" / f"{guard.code}.md").read_text().partition("\n")[0]
        during = [state.value for state in DrainState if state in guard.during]
        link = f"[{guard.code}](../guards/{guard.code}.md)"
        rows.append(
            (
                link,
                title.removeprefix(f"# {guard.code}: "),
                "always" if guard.during == any_asked else ", ".join(during),
                "yes" if guard.insistable else "never",
            )
        )
    return table(("guard", "refuses because", "asked while a drain is", "a person may insist"), rows)


def commands() -> str:
    """Every command: what it does, how it is written, its options; those that many share stand first and once."""
    _import_all_commands()
    found = sorted(_leaves(app, ()))
    options = {words: [one for one in _taken(command) if one.show] for words, command in found}
    seen = Counter(
        _option(one) for taken in options.values() for one in taken if one.field_info.is_keyword_only
    )
    shared = {option for option, times in seen.items() if times >= SHARED}
    parts = ["## Options that many commands share", table(OPTIONS, sorted(shared))]
    parts += [_command(words, command, options[words], shared) for words, command in found]
    return "\n\n".join(parts)


def routes() -> str:
    """Every route of REST, with what it takes and may answer."""
    from tests.docs.routes import document

    return "\n\n".join(
        _route(path, *one) for path, ones in document()["paths"].items() for one in ones.items()
    )


BLOCKS: dict[str, Callable[[], str]] = {
    **{
        f"settings.{name}": lambda name=name: settings(name)
        for name in dict.fromkeys(of for of, *_ in list_setting_keys())
        if name in CHANNELS_WITH_SECTION or name.partition(".")[0] not in list_channel_names()
    },
    "settings.further-channels": further_channels,
    **{
        f"metrics.{section.lower().replace(chr(32), chr(45))}": lambda section=section: metrics(section)
        for section in CATALOGUE
    },
    "guards": guards,
    "text": text_fields,
    "commands": commands,
    "routes": routes,
    "ramps": rule_tables.ramps,
    "signals": rule_tables.signals,
}


def _shown(default: Any) -> str:
    return "none" if default is None else json.dumps(default)


def _kind_of(of: str, key: str) -> str:
    if of == "collector":
        return kind(get_type_hints(CollectorTable, include_extras=True)[key])
    model = find_table_model(of.partition(".")[0])
    assert model is not None
    field = model.model_fields[key]
    return kind(field.annotation, field.metadata)


def _leaves(group: App, above: Row) -> Iterator[tuple[Row, App]]:
    for name in group:
        if name.startswith("-"):
            continue
        if group[name].default_command is None:
            yield from _leaves(group[name], (*above, name))
        else:
            yield (*above, name), group[name]


def _taken(command: App) -> Iterator[Argument]:
    yield from command.assemble_argument_collection(parse_docstring=True)


def _option(one: Argument) -> Row:
    default = str(one.field_info.default)
    shown = "needed" if one.required else "" if default in EMPTY else f"`{default}`"
    words = "switch" if one.hint is bool else kind(one.hint)
    return ", ".join(f"`{name}`" for name in one.names), words, shown, one.parameter.help or ""


def _command(words: Row, command: App, taken: list[Argument], shared: set[Row]) -> str:
    assert command.default_command is not None
    told = (inspect.getdoc(command.default_command) or "").partition("\nParameters\n")[0].strip()
    prose, _, example = told.partition("Example: ")
    written = f"predrain {' '.join(words)}"
    for one in taken:
        if not one.field_info.is_keyword_only:
            many = one.field_info.kind is inspect.Parameter.VAR_POSITIONAL
            name = one.names[0].lstrip("-").upper()
            written += f" {name}..." if many else f" {name}" if one.required else f" [{name}]"
        elif one.required:
            written += f" {one.names[0]} {one.names[0].lstrip('-').upper()}"
    parts = [f"## {' '.join(words)}", prose.strip(), f"```\n{written}\n```"]
    if example.strip() != written:
        parts.append(f"For example:\n\n```\n{' '.join(example.split())}\n```")
    listed = [_option(one) for one in taken]
    if own := [row for row in listed if row not in shared]:
        parts.append(table(OPTIONS, own))
    if others := [row[0] for row in listed if row in shared]:
        parts.append(f"{'Also' if own else 'Takes'} {', '.join(others)}.")
    return "\n\n".join(parts)


def _route(path: str, method: str, operation: dict[str, Any]) -> str:
    rows = [
        (f"`{one['name']}`", one["in"], "yes" if one.get("required") else "", one.get("description", ""))
        for one in operation.get("parameters", ())
    ]
    answers = [
        (status, one["description"], ", ".join(f"`{kind}`" for kind in one.get("content", ())))
        for status, one in sorted(operation["responses"].items())
    ]
    parts = [f"## {method.upper()} {path}", operation.get("description", operation.get("summary", ""))]
    if body := operation.get("requestBody"):
        parts.append(f"Takes a body: {', '.join(f'`{kind}`' for kind in body['content'])}.")
    if rows:
        parts.append(table(("parameter", "in", "needed", "meaning"), rows))
    parts.append(table(("answer", "meaning", "as"), answers))
    return "\n\n".join(part for part in parts if part)
