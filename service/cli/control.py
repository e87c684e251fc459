"""`predrain control`."""

from __future__ import annotations

import sys
from pathlib import Path

from service import interpreter, logs
from service.settings import load


def control(*, state: Path | None = None, config: Path | None = None) -> int:
    """Drain what is at risk, beside workers and pages that are processes of their own, until SIGINT or SIGTERM.

    Of several one acts, by a lease in the cluster; the others stand by.

    Example: predrain control --config /etc/predrain/predrain.toml

    Parameters
    ----------
    state
        Directory for what this process keeps; others on this machine may have the same.
    config
        Settings file; /etc/predrain/predrain.toml when it is there. It names Kafka, PostgreSQL and the cluster.
    """
    from service.cli.up import with_options
    from service.up import control as run
    from service.up import this_process
    from service.working import until_told

    settings = with_options(load(config), host=None, port=None, state=state)
    logs.configure()
    interpreter.tune()
    stopping = until_told()
    run(
        settings,
        lambda: print(f"{this_process('controller')} controls", file=sys.stderr, flush=True),
        stopping,
    )
    return 0
