"""Writes man pages and completions below a `share` folder: `python -m predrain.service.cli.terminal_files FOLDER`.

Both come from the commands themselves, as `--help` and the reference do.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from datetime import UTC, date, datetime
from importlib import metadata
from pathlib import Path
from typing import Final, get_args

from predrain.data.refusal import Refusal
from predrain.service.cli import COMMANDS
from predrain.service.cli.command_catalogue import CommandOption, CommandPage, list_commands
from predrain.service.cli.completion_commands import Shell, write_completion

_COMPLETIONS: Final = {
    "bash": "bash-completion/completions/predrain",
    "zsh": "zsh/vendor-completions/_predrain",
    "fish": "fish/vendor_completions.d/predrain.fish",
}
"""The places where the shells of Debian and Red Hat look, by shell."""
_CODE = re.compile(r"`([^`]+)`")
_EXIT_CODES: Final = (
    ("0", "done"),
    ("1", "failed; one sentence on standard error names the cure"),
    ("2", "wrong usage"),
    ("3", "done in part; the refusals are on standard error"),
)
_VARIABLES: Final = (
    ("PREDRAIN_URL", "The address of a service on another machine."),
    ("PREDRAIN_TOKEN_FILE", "A file with a token for it, of mode 0600."),
    ("PREDRAIN_CA_FILE", "The PEM file of the CA that signed its certificate."),
    ("PREDRAIN_PROFILE", "The profile, if it is not in its usual place."),
)
_PROFILE: Final = (
    "The profile, of mode 0600, in TOML: `url`, `token_file` or `token`, `ca_file`, `insecure_without_tls`. Commands "
    "read it if neither an option nor a variable names a service."
)


class CommandsMissing(Refusal):
    """Some commands cannot be imported, so that their pages would be missing."""


def write_terminal_files(share: Path, day: date) -> None:
    """Write every man page, dated `day`, and the completions of the shells below `share`.

    Raises CommandsMissing if the packages of some commands are not installed.
    """
    pages = list_commands()
    known = {page.words[0] for page in pages}
    if missing := [name for names in COMMANDS.values() for name in names if name not in known]:
        raise CommandsMissing(
            f"the packages of {', '.join(missing)} are not installed: pip install 'predrain[service]'"
        )
    version = metadata.version("predrain")
    folder = share / "man" / "man1"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "predrain.1").write_text(write_overview(pages, version, day))
    for page in pages:
        (folder / f"{_name_page(page)}.1").write_text(write_man_page(page, version, day))
    for shell in get_args(Shell):
        script = share / _COMPLETIONS[shell]
        script.parent.mkdir(parents=True, exist_ok=True)
        script.write_text(write_completion(shell))


def write_man_page(page: CommandPage, version: str, day: date) -> str:
    """Return the man page of one command, in roff."""
    name = _name_page(page)
    first, _, more = page.prose.partition("\n\n")
    lines = [
        *_begin(name, _flatten(first), version, day),
        ".SH SYNOPSIS",
        f".B {_escape(page.usage)}",
        "[OPTIONS]",
    ]
    lines += [".SH DESCRIPTION", _mark_up(_flatten(first))]
    for paragraph in more.split("\n\n"):
        if paragraph.strip():
            lines += [".PP", _mark_up(_flatten(paragraph))]
    for title, positional in (("ARGUMENTS", True), ("OPTIONS", False)):
        told = [one for one in page.options if one.positional is positional]
        if told:
            lines += [f".SH {title}", *(line for one in told for line in _write_option(one))]
    lines += [".SH EXAMPLES", ".nf", _escape(page.example), ".fi"]
    lines += [".SH SEE ALSO", ".BR predrain (1)"]
    return "\n".join(lines) + "\n"


def write_overview(pages: list[CommandPage], version: str, day: date) -> str:
    """Return the man page of predrain itself: its commands by group, variables, files and exit codes."""
    summary = "forecast disk failures in Ceph clusters and drain dying OSDs"
    lines = [*_begin("predrain", summary, version, day), ".SH SYNOPSIS", ".B predrain", "COMMAND [OPTIONS]"]
    lines += [
        ".SH DESCRIPTION",
        "Each command has a man page of its own, such as",
        ".BR predrain\\-disks (1).",
    ]
    for group, commands in COMMANDS.items():
        lines += [f".SS {_escape(group.name)}"]
        for page in pages:
            if page.words[0] in commands:
                lines += [".TP", f".BR {_escape(_name_page(page))} (1)", _mark_up(_flatten(page.summary))]
    lines += [".SH ENVIRONMENT", *_write_list(_VARIABLES)]
    lines += [".SH FILES", *_write_list((("~/.config/predrain/profile.toml", _PROFILE),))]
    lines += [".SH EXIT STATUS", *_write_list(_EXIT_CODES)]
    return "\n".join(lines) + "\n"


def _begin(name: str, summary: str, version: str, day: date) -> Iterator[str]:
    yield f'.TH {_escape(name.upper())} 1 {day.isoformat()} "predrain {_escape(version)}" "predrain"'
    yield ".SH NAME"
    yield f"{_escape(name)} \\- {_mark_up(summary)}"


def _write_list(items: tuple[tuple[str, str], ...]) -> Iterator[str]:
    for name, text in items:
        yield from (".TP", f".B {_escape(name)}", _mark_up(text))


def _write_option(one: CommandOption) -> Iterator[str]:
    value = "" if one.is_switch or one.positional else f" {one.placeholder}"
    names = one.placeholder if one.positional else ", ".join(one.names)
    needed = " Needed." if one.required else ""
    default = f" Default: {one.default}." if one.default else ""
    yield from (".TP", f".B {_escape(names + value)}", _mark_up(f"{_flatten(one.help)}{needed}{default}"))


def _name_page(page: CommandPage) -> str:
    return "-".join(("predrain", *page.words))


def _flatten(text: str) -> str:
    return " ".join(text.split())


def _mark_up(text: str) -> str:
    """Return text for the body of a page: what stands in backquotes is bold."""
    marked = _CODE.sub(lambda code: f"\x01{code[1]}\x02", text)
    return _escape(marked).replace("\x01", "\\fB").replace("\x02", "\\fR")


def _escape(text: str) -> str:
    """Return text in which roff finds no command, in ASCII."""
    told = text.replace("\\", "\\e").replace("-", "\\-")
    told = "".join(one if ord(one) < 128 else f"\\[u{ord(one):04X}]" for one in told)
    return f"\\&{told}" if told.startswith((".", "'")) else told


def _read_build_day() -> date:
    """Return the day of SOURCE_DATE_EPOCH, so that a build can be repeated, or today."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    return (datetime.fromtimestamp(int(epoch), UTC) if epoch else datetime.now(UTC)).date()


if __name__ == "__main__":
    write_terminal_files(Path(sys.argv[1]), _read_build_day())
