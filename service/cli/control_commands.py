"""`predrain control`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from predrain.service.cli.shared_options import MetricsPort
from predrain.service.runtime import logging_setup, python_runtime


def run_controller_command(
    *,
    host: str | None = None,
    metrics_port: MetricsPort = None,
    state: Path | None = None,
    config: Path | None = None,
    insecure_without_tls: Annotated[bool, Parameter(negative="")] = False,
) -> int:
    """Drain what is at risk, beside workers and pages that are processes of their own, until SIGINT or SIGTERM.

    Of several one acts, by a lease in the cluster; the others stand by.

    Example: predrain control --config /etc/predrain/predrain.toml

    Parameters
    ----------
    host
        Address to listen on for metrics; beyond 127.0.0.1 it needs TLS or --insecure-without-tls.
    state
        Directory for what this process keeps; others on this machine may have the same.
    config
        Settings file; /etc/predrain/predrain.toml when it is there. It names Kafka, PostgreSQL and the cluster.
    insecure_without_tls
        Metrics may cross the network in the clear.
    """
    from predrain.service.cli.up_commands import with_options
    from predrain.service.config.settings import load_settings
    from predrain.service.processes.up import run_controller as run
    from predrain.service.processes.worker_process import until_told

    said = load_settings(config)
    settings = with_options(
        said, host=host, metrics_port=metrics_port, state=state, insecure=insecure_without_tls
    )
    logging_setup.configure_logging()
    python_runtime.tune_runtime()
    stopping = until_told()
    run(settings, lambda text: print(text, file=sys.stderr, flush=True), stopping)
    return 0
