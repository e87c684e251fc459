"""`predrain work`."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path

from service import interpreter, logs
from service.settings import load


def work(*, state: Path | None = None, config: Path | None = None) -> int:
    """Score a share of the readings, with any number of other such processes, until SIGINT or SIGTERM.

    Example: predrain work --config /etc/predrain/predrain.toml

    Parameters
    ----------
    state
        Directory with promoted bundles, the same for all workers.
    config
        Settings file; /etc/predrain/predrain.toml when it is there. It names Kafka and PostgreSQL.
    """
    from data.clock import SystemClock
    from service.adapters import open_log, open_store, shared
    from service.cli.up import with_options
    from service.scoring.lineup import Lineup
    from service.state import StateDir
    from service.up import forecaster_of, this_process
    from service.working import Working, until_told

    settings = with_options(load(config), host=None, port=None, state=state)
    shared(settings)
    logs.configure()
    stopping = until_told()
    interpreter.tune()
    with ExitStack() as closing:
        place = StateDir(settings.service.state).make()
        log = open_log(settings, place)
        closing.callback(log.close)
        store = open_store(settings, place)
        closing.callback(store.close)
        lineup = Lineup(forecaster_of(settings.forecast.bundle), place.bundles)
        name = this_process("worker")
        print(f"{name} takes its share", file=sys.stderr, flush=True)
        Working(log, store, SystemClock(), lineup, name).run(stopping)
    return 0
