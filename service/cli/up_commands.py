"""`predrain up`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from predrain.service.cli.shared_options import AcceptStore
from predrain.service.runtime import logging_setup, python_runtime

if TYPE_CHECKING:
    from predrain.service.config.settings import Settings


def run_service_command(
    *,
    host: str | None = None,
    port: Annotated[int | None, Parameter(help="TCP port; 0 takes a free one.")] = None,
    state: Path | None = None,
    config: Path | None = None,
    insecure_without_tls: Annotated[bool, Parameter(negative="")] = False,
    accept_store: AcceptStore = None,
) -> int:
    """Run everything in one process: readings in, forecasts, drains, REST and the page.

    Where the settings name Kafka and PostgreSQL it shares the work with other processes (work, control, serve, up).

    Example: predrain up --port 8080 --state ./state

    Parameters
    ----------
    host
        Address to listen on; beyond 127.0.0.1 it needs TLS or --insecure-without-tls.
    state
        Directory of log, store and token.
    config
        Settings file; /etc/predrain/predrain.toml when it is there.
    insecure_without_tls
        Tokens may cross the network in the clear.
    """
    from predrain.service.config.settings import load_settings
    from predrain.service.processes.up import run_whole_service as run

    settings = with_options(
        load_settings(config), host=host, port=port, state=state, insecure=insecure_without_tls
    )
    logging_setup.configure_logging()
    python_runtime.tune_runtime()
    run(
        settings,
        lambda text: print(text, file=sys.stderr, flush=True),
        watched=sys.stderr.isatty(),
        accept_store=accept_store,
    )
    return 0


def with_options(
    settings: Settings,
    *,
    host: str | None,
    state: Path | None,
    port: int | None = None,
    metrics_port: int | None = None,
    insecure: bool = False,
) -> Settings:
    """Settings under what the command line says; a word there wins over file and variables."""
    said = {
        name: value
        for name, value in (
            ("host", host),
            ("port", port),
            ("metrics_port", metrics_port),
            ("state", state),
            ("insecure_without_tls", insecure or None),
        )
        if value is not None
    }
    return settings.model_copy(update={"service": settings.service.model_copy(update=said)})
