"""The parts of the reference that the code itself gives, by the names that mark them in the pages."""

from __future__ import annotations

import inspect
import json
from collections import Counter
from collections.abc import Callable
from typing import Any, get_type_hints

from predrain.actions.guards import GUARDS
from predrain.data.drain import DrainState
from predrain.data.outside_text import TEXT_FIELDS
from predrain.service.cli.command_catalogue import CommandOption, CommandPage, list_commands
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
    pages = list_commands()
    seen = Counter(_option(one) for page in pages for one in page.options if not one.positional)
    shared = {option for option, times in seen.items() if times >= SHARED}
    parts = ["## Options that many commands share", table(OPTIONS, sorted(shared))]
    parts += [_command(page, shared) for page in pages]
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


def _option(one: CommandOption) -> Row:
    shown = "needed" if one.required else f"`{one.default}`" if one.default else ""
    words = "switch" if one.is_switch else kind(one.kind)
    return ", ".join(f"`{name}`" for name in one.names), words, shown, one.help


def _command(page: CommandPage, shared: set[Row]) -> str:
    parts = [f"## {' '.join(page.words)}", page.prose, f"```\n{page.usage}\n```"]
    if page.example != page.usage:
        parts.append(f"For example:\n\n```\n{page.example}\n```")
    listed = [_option(one) for one in page.options]
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
