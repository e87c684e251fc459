"""Options that several commands share, and how answers are printed."""

from __future__ import annotations

import getpass
import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter
from cyclopts.validators import Number

from predrain.service.cli.missing_extras import name_installation
from predrain.service.terminal.remote_service import (
    STANDARD_INPUT,
    RemoteNaming,
    RemoteUnusable,
    find_remote_service,
)
from predrain.service.terminal.service_connection import CliClient

if TYPE_CHECKING:
    from rich.console import Console

    from predrain.service.config.settings import Settings

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
class StateAddress:
    """Which state directory of this machine is meant."""

    state: Annotated[Path | None, Parameter(help="State directory of the service.")] = None
    config: Annotated[Path | None, Parameter(help="Settings file.")] = None

    def settings(self) -> Settings:
        """Settings under the options. Raises BadSettings."""
        from predrain.service.config.settings import load_settings

        settings = load_settings(self.config)
        if self.state is None:
            return settings
        service = settings.service.model_copy(update={"state": self.state})
        return settings.model_copy(update={"service": service})

    def names_this_machine(self) -> bool:
        """Return whether an option names something of this machine, so that no remote service is meant."""
        return self.state is not None or self.config is not None


@Parameter(name="*")
@dataclass(frozen=True)
class ServiceAddress(StateAddress):
    """Which service is meant: one on another machine, or the one that runs on a state directory of this machine."""

    url: Annotated[
        str | None,
        Parameter(
            group="Service on another machine",
            help="Address of a service on another machine; PREDRAIN_URL, else the profile, when not given.",
        ),
    ] = None
    token_file: Annotated[
        Path | None,
        Parameter(
            group="Service on another machine",
            help="File with a token, for its owner only (mode 0600); PREDRAIN_TOKEN_FILE when not given.",
        ),
    ] = None
    token: Annotated[
        str | None,
        Parameter(
            group="Service on another machine",
            allow_leading_hyphen=True,
            help="`-` reads the token from standard input, one line. Nothing else is taken.",
        ),
    ] = None
    ca_file: Annotated[
        Path | None,
        Parameter(
            group="Service on another machine",
            help="PEM file of the CA that signed the service's certificate; PREDRAIN_CA_FILE when not given.",
        ),
    ] = None
    insecure_without_tls: Annotated[
        bool,
        Parameter(
            group="Service on another machine",
            negative="",
            help="The token may cross the network in the clear, to an http:// address.",
        ),
    ] = False

    def settings(self) -> Settings:
        """Settings under the options. Raises BadSettings, and RemoteUnusable where no service can run."""
        try:
            return super().settings()
        except ModuleNotFoundError as missing:
            if self.names_this_machine():
                raise
            raise RemoteUnusable(
                "no service is named: give --url, or set PREDRAIN_URL; on the service's own machine: "
                + name_installation("service")
            ) from missing

    def client(self) -> CliClient:
        """Return the service that is meant. Raises NotRunning, RemoteUnusable, TokenFileOpen."""
        return self.remote_client() or CliClient.from_settings(self.settings())

    def remote_client(self) -> CliClient | None:
        """Return the service on another machine, or None if one of this machine is meant.

        A command calls the method once, since `--token -` reads standard input. Raises RemoteUnusable, TokenFileOpen.
        """
        if self.token not in (None, STANDARD_INPUT):
            raise RemoteUnusable(
                "--token takes only `-`, since all users of a machine see its command lines; give --token-file a file"
            )
        options = RemoteNaming(
            "the command line", self.url, self.token, self.token_file, self.ca_file, self.insecure_without_tls
        )
        if self.names_this_machine():
            if self.url or self.token or self.token_file:
                raise RemoteUnusable(
                    "--url, --token and --token-file name a service on another machine, and --state, --config and the "
                    "cluster's options one of this machine; give those of one service"
                )
            return None
        remote = find_remote_service(options, os.environ, _read_token_line)
        return None if remote is None else CliClient.from_remote(remote)


def _read_token_line() -> str:
    """Read the token from standard input; a person who types it does not see it."""
    return getpass.getpass("token: ") if sys.stdin.isatty() else sys.stdin.readline()


THIS_MACHINE = StateAddress()
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
