"""`predrain serve`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from predrain.service.runtime import logging_setup, python_runtime


def run_server_command(
    *,
    host: str | None = None,
    port: Annotated[int | None, Parameter(help="TCP port; 0 takes a free one.")] = None,
    state: Path | None = None,
    config: Path | None = None,
    insecure_without_tls: Annotated[bool, Parameter(negative="")] = False,
) -> int:
    """Answer: REST, the page, readings in; workers and a controller that are processes of their own do the rest.

    Example: predrain serve --port 8080 --state ./page

    Parameters
    ----------
    host
        Address to listen on; beyond 127.0.0.1 it needs TLS or --insecure-without-tls.
    state
        Directory of the token; of several such processes on one machine each needs its own.
    config
        Settings file; /etc/predrain/predrain.toml when it is there. It names Kafka and PostgreSQL.
    insecure_without_tls
        Tokens may cross the network in the clear.
    """
    from predrain.service.cli.up_commands import with_options
    from predrain.service.config.settings import load_settings
    from predrain.service.processes.up import run_web_service as run

    settings = with_options(
        load_settings(config), host=host, port=port, state=state, insecure=insecure_without_tls
    )
    logging_setup.configure_logging()
    python_runtime.tune_runtime()
    run(settings, lambda text: print(text, file=sys.stderr, flush=True), watched=sys.stderr.isatty())
    return 0
