"""Every command with its words, its prose, its example and its options: the one source of reference and man pages."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from cyclopts import App, Argument

from predrain.service.cli import app, import_all_commands

_EMPTY = ("None", "", "()", "False", str(inspect.Parameter.empty))
"""Defaults that say nothing."""


@dataclass(frozen=True, slots=True)
class CommandOption:
    """An option or an argument. `default`: empty if it says nothing. `kind`: the type of its value."""

    names: tuple[str, ...]
    kind: Any
    default: str
    help: str
    required: bool
    positional: bool
    many: bool
    """True for an argument that takes several values."""

    @property
    def is_switch(self) -> bool:
        """Return whether the option takes no value."""
        return self.kind is bool

    @property
    def placeholder(self) -> str:
        """Return the word in capitals that stands for the value."""
        return self.names[0].lstrip("-").upper()


@dataclass(frozen=True, slots=True)
class CommandPage:
    """One command."""

    words: tuple[str, ...]
    prose: str
    example: str
    options: tuple[CommandOption, ...]

    @property
    def summary(self) -> str:
        """Return the first sentence of the prose, in one line."""
        return " ".join(self.prose.partition("\n\n")[0].split())

    @property
    def usage(self) -> str:
        """Return the command as it is typed, with its arguments and the options that it needs."""
        written = f"predrain {' '.join(self.words)}"
        for one in self.options:
            name = one.placeholder
            if one.positional:
                written += f" {name}..." if one.many else f" {name}" if one.required else f" [{name}]"
            elif one.required:
                written += f" {one.names[0]} {name}"
        return written


def list_commands() -> list[CommandPage]:
    """Return every command in order of its words."""
    import_all_commands()
    return [
        _read_command(words, command) for words, command in sorted(find_commands(app), key=lambda one: one[0])
    ]


def find_commands(group: App, above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], App]]:
    """Yield every command below `group` with its words; a command may have further ones below it."""
    for name in group:
        if name.startswith("-"):
            continue
        if group[name].default_command is not None:
            yield (*above, name), group[name]
        yield from find_commands(group[name], (*above, name))


def _read_command(words: tuple[str, ...], command: App) -> CommandPage:
    assert command.default_command is not None
    told = (inspect.getdoc(command.default_command) or "").partition("\nParameters\n")[0].strip()
    prose, _, example = told.partition("Example: ")
    taken = command.assemble_argument_collection(parse_docstring=True)
    return CommandPage(
        words, prose.strip(), " ".join(example.split()), tuple(_read_option(one) for one in taken if one.show)
    )


def _read_option(one: Argument) -> CommandOption:
    default = str(one.field_info.default)
    return CommandOption(
        names=tuple(one.names),
        kind=one.hint,
        default="" if one.required or default in _EMPTY else default,
        help=one.parameter.help or "",
        required=one.required,
        positional=not one.field_info.is_keyword_only,
        many=one.field_info.kind is inspect.Parameter.VAR_POSITIONAL,
    )
