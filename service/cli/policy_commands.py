"""`predrain policy`: what other settings would have done here."""

from __future__ import annotations

import sys
from contextlib import closing
from datetime import UTC, timedelta
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from predrain.service.cli.shared_options import THIS_MACHINE, AsJson, StateAddress, make_console, print_json

if TYPE_CHECKING:
    from predrain.service.forecasting.cost_replay import CostPreview

TB = 1e12
BAR = 16
"""Characters of the longest bar."""


def preview_policy_command(
    *,
    days: Annotated[
        int, Parameter(help="The number of days up to today that are replayed.", validator=Number(gte=1))
    ] = 90,
    where: StateAddress = THIS_MACHINE,
    as_json: AsJson = False,
) -> int:
    """Replay the last months at other costs of a failure: what would have been moved, and what rebuilt.

    The command reads the forecasts and outcomes that the service has kept, running or not, and changes nothing.

    Example: predrain policy preview --days 90
    """
    from predrain.actions.cost_benefit import NoForecastToReplay
    from predrain.data.clock import SystemClock
    from predrain.data.history import EPOCH
    from predrain.data.scorebook import Scorebook
    from predrain.service.config.state_directory import StateDir
    from predrain.service.forecasting.cost_replay import preview_policy
    from predrain.service.forecasting.deployed_models import DeployedModels
    from predrain.service.forecasting.fleet_experience import load_experience
    from predrain.service.forecasting.known_fates import lives_of
    from predrain.service.processes.up import forecaster_of
    from predrain.service.storage.backends import standing_store

    settings = where.settings()
    state = StateDir(settings.service.state)
    nothing = NoForecastToReplay(
        f"{state.path} holds no forecasts yet; start the service there (predrain up), and come back after some days"
    )
    if not state.scorebook.is_file():
        raise nothing
    print("reading forecasts and outcomes", file=sys.stderr, flush=True)
    deployed_models = DeployedModels(forecaster_of(settings.forecast.bundle), state.bundles)
    deployed_models.load_promoted_models()
    assert deployed_models.champion is not None
    with standing_store(settings) as store, closing(Scorebook(state.scorebook)) as scorebook:
        if store is None:
            raise nothing
        first = SystemClock().now().astimezone(UTC).date() - timedelta(days=days)
        book = scorebook.read(deployed_models.champion.fingerprint, (first - EPOCH).days)
        deployed_models.champion.learn_experience(
            load_experience(store, deployed_models.champion.fingerprint)
        )
        told = preview_policy(
            book,
            lives_of(store, first),
            store.latest_readings(),
            settings.policy.to_policy(),
            deployed_models.champion.thresholds,
            tell=lambda line: print(line, file=sys.stderr, flush=True),
        )
    if as_json:
        import msgspec

        print_json(msgspec.to_builtins(told))
        return 0
    _print_policy_preview(told)
    return 0


def _print_policy_preview(told: CostPreview) -> None:
    from rich.table import Column, Table

    print(told.describe_replay())
    columns = (
        "failure_cost",
        "drains",
        "in time",
        "needless",
        "undecided",
        "moved TB",
        "rebuilt TB",
        "moving h",
        "cost",
    )
    table = Table(*(Column(name, justify="right", no_wrap=True) for name in columns), "", box=None)
    most = max((row.cost_bytes for row in told.rows), default=0.0) or 1.0
    for row in told.rows:
        table.add_row(
            f"now: {row.failure_cost:g}" if row.current else f"{row.failure_cost:g}",
            *(str(number) for number in (row.drains, row.in_time, row.needless, row.undecided)),
            f"{row.moved_bytes / TB:,.1f}",
            f"{row.rebuilt_bytes / TB:,.1f}",
            f"{row.moving_hours:,.0f}",
            f"{row.cost_bytes / TB:,.0f}",
            "█" * round(BAR * row.cost_bytes / most),
        )
    make_console().print(table)
    here = next(row for row in told.rows if row.current)
    print(
        f"Cost: moved TB, and each rebuilt TB times {here.failure_cost:g}, the base cost that is set; the lowest bar "
        "is the best setting for these months. Costs set for a pool, class or host are scaled alike."
    )
