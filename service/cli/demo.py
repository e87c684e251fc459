"""`predrain demo`."""

from __future__ import annotations

import signal
import tempfile
from datetime import date
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter


def demo(
    *,
    once: Annotated[
        bool, Parameter(negative="", help="as fast as it can, print the table, exit with 0")
    ] = False,
    cluster: Annotated[str, Parameter(help="cisco, cisco-18tb, echo, cnaf-sdds, cnaf-t1 or osg")] = "cisco",
    replay: Annotated[Path | None, Parameter(help="folder of real histories to replay instead")] = None,
    start: Annotated[date | None, Parameter(name="--from", help="first day shown")] = None,
    days: Annotated[int | None, Parameter(help="days to show")] = None,
    seed: int = 8,
    speed: Annotated[float, Parameter(help="real seconds a simulated day")] = 1.0,
    mode: Annotated[
        Literal["act", "propose", "observe"],
        Parameter(help="propose: drains wait for your approval on the page"),
    ] = "act",
    host: str = "127.0.0.1",
    port: int = 8080,
    state: Annotated[
        Path | None, Parameter(help="folder by which other commands find it (their --state)")
    ] = None,
) -> int:
    """Watch a simulated cluster with the lives of real drives: read, scored, drained before they fail.

    Example: predrain demo --once
    """
    from rich.console import Console

    from predrain.actions.core.policy import Mode
    from predrain.service import logging_setup as logs
    from predrain.service.cli.up import with_options
    from predrain.service.demo import show
    from predrain.service.demo.run import Demo, run
    from predrain.service.settings import Settings

    logs.configure()
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
        from predrain.service.demo.replay import replayed

        wanted = replayed(wanted, replay, lambda line: console.print(line, highlight=False))
    with (
        tempfile.TemporaryDirectory(prefix="predrain-demo-") as scratch,
        show.ProgressBar(console) as progress,
    ):
        named = settings.service.model_copy(
            update={"cluster_name": f"{cluster} (simulated)", "state": state or Path(scratch)}
        )
        run(
            wanted,
            settings.model_copy(update={"forecast": daily, "service": named}),
            served=not once,
            tell=progress.say,
            day_over=progress.day_over,
            table_stands=progress.table_stands,
        )
    return 0
