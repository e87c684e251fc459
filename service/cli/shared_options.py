"""Options that several commands share, and how answers are printed."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter
from cyclopts.validators import Number

from predrain.service.config.settings import Settings, load_settings
from predrain.service.terminal.service_connection import CliClient

if TYPE_CHECKING:
    from rich.console import Console

MetricsPort = Annotated[
    int | None,
    Parameter(help="TCP port for GET /metrics; 0 takes a free one.", validator=Number(gte=0, lte=65535)),
]

AcceptStore = Annotated[
    str | None,
    Parameter(
        help="Id of the loss that a refused start named: use the store that is there, empty or another, though the log "
        "belongs to a lost one. It accepts that loss and no later one.",
    ),
]


@Parameter(name="*")
@dataclass(frozen=True)
class ServiceAddress:
    """Which service is meant."""

    state: Annotated[Path | None, Parameter(help="State directory of the service.")] = None
    config: Annotated[Path | None, Parameter(help="Settings file.")] = None

    def settings(self) -> Settings:
        """Settings under the options. Raises BadSettings."""
        settings = load_settings(self.config)
        if self.state is None:
            return settings
        service = settings.service.model_copy(update={"state": self.state})
        return settings.model_copy(update={"service": service})

    def client(self) -> CliClient:
        """The running service. Raises NotRunning."""
        return CliClient.from_settings(self.settings())


HERE = ServiceAddress()
AsJson = Annotated[bool, Parameter(name="--json", negative="", help="JSON for programs.")]


def make_console(*, stderr: bool = False, quiet: bool = False) -> Console:
    """Make a console for people. Text of people, drives and clusters is printed as it is, without markup."""
    from rich.console import Console

    return Console(stderr=stderr, quiet=quiet, markup=False, highlight=False)


def escape_to_one_line(text: str) -> str:
    """Return the text on one line, its control characters escaped: it may hold commands for a terminal."""
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in text)


def print_json(value: Any) -> None:
    """For programs: one object, keys as REST names them."""
    print(json.dumps(value, indent=2, sort_keys=False))


def format_binary_size(count: int | None) -> str:
    """TiB with one decimal, smaller sizes in GiB or MiB."""
    if count is None:
        return "unknown"
    for unit, size in (("TiB", 2**40), ("GiB", 2**30)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count / 2**20:.0f} MiB" if count else "nothing"


def format_whole_percent(part: float | None) -> str:
    """A fullness or probability in whole percents."""
    return "unknown" if part is None else f"{part:.0%}"
