"""`predrain demo`."""

from __future__ import annotations

import signal
import tempfile
from datetime import date
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter


def run_demo_command(
    *,
    once: Annotated[
        bool, Parameter(negative="", help="as fast as it can, print the table, exit with 0")
    ] = False,
    cluster: Annotated[str, Parameter(help="cisco, cisco-18tb, echo, cnaf-sdds, cnaf-t1 or osg")] = "cisco",
    replay: Annotated[Path | None, Parameter(help="folder of real histories to replay instead")] = None,
    start: Annotated[date | None, Parameter(name="--from", help="first day shown")] = None,
    days: Annotated[int | None, Parameter(help="days to show")] = None,
    seed: Annotated[int, Parameter(help="seed of the simulated cluster, a whole number")] = 8,
    speed: Annotated[float, Parameter(help="real seconds a simulated day")] = 1.0,
    mode: Annotated[
        Literal["act", "propose", "observe"],
        Parameter(help="propose: drains wait for your approval on the page"),
    ] = "act",
    host: Annotated[str, Parameter(help="address to listen on")] = "127.0.0.1",
    port: Annotated[int, Parameter(help="TCP port to listen on; 0 takes a free one")] = 8080,
    state: Annotated[
        Path | None, Parameter(help="folder by which other commands find it (their --state)")
    ] = None,
) -> int:
    """Watch a simulated cluster with the lives of real drives: read, scored, drained before they fail.

    Example: predrain demo --once
    """
    from rich.console import Console

    from predrain.actions.core.drain_policy import Mode
    from predrain.service.cli.up_commands import with_options
    from predrain.service.config.settings import Settings
    from predrain.service.demo import demo_terminal
    from predrain.service.demo.demo_run import Demo, run_demo
    from predrain.service.runtime import logging_setup

    logging_setup.configure_logging()
    console = Console()
    settings = with_options(Settings(), host=host, port=port, state=None)
    daily = settings.forecast.model_copy(update={"reading_interval_hours": 24.0})
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    wanted = Demo(
        cluster=cluster,
        seed=seed,
        start=start,
        days=days,
        mode=Mode(mode),
        seconds_per_day=None if once else speed,
    )
    if replay is not None:
        from predrain.service.demo.history_replay import build_replay_demo

        wanted = build_replay_demo(wanted, replay, lambda line: console.print(line, highlight=False))
    with (
        tempfile.TemporaryDirectory(prefix="predrain-demo-") as scratch,
        demo_terminal.ProgressBar(console) as progress,
    ):
        named = settings.service.model_copy(
            update={"cluster_name": f"{cluster} (simulated)", "state": state or Path(scratch)}
        )
        run_demo(
            wanted,
            settings.model_copy(update={"forecast": daily, "service": named}),
            served=not once,
            tell=progress.print_line,
            day_over=progress.day_over,
            table_stands=progress.table_stands,
        )
    return 0
