"""`predrain policy`: what other settings would have done here."""

from __future__ import annotations

import sys
from contextlib import closing
from datetime import UTC, timedelta
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from predrain.service.cli.options import HERE, AsJson, Where, print_json, terminal

if TYPE_CHECKING:
    from predrain.service.cost_replay import Preview

TB = 1e12
BAR = 16
"""Characters of the longest bar."""


def preview(
    *,
    days: Annotated[
        int, Parameter(help="Days back from today that are replayed.", validator=Number(gte=1))
    ] = 90,
    where: Where = HERE,
    as_json: AsJson = False,
) -> int:
    """Replay the last months at other costs of a failure: what would have been moved, and what rebuilt.

    It reads the forecasts and outcomes that the service has kept, running or not, and changes nothing.

    Example: predrain policy preview --days 90
    """
    from predrain.actions.cost_benefit import NoForecastToReplay
    from predrain.data.clock import SystemClock
    from predrain.data.history import EPOCH
    from predrain.data.scorebook import Scorebook
    from predrain.service.backends import standing_store
    from predrain.service.cost_replay import preview_policy
    from predrain.service.scoring.deployed_models import Lineup
    from predrain.service.scoring.fates import lives_of
    from predrain.service.scoring.fleet_experience import load_experience
    from predrain.service.state_directory import StateDir
    from predrain.service.up import forecaster_of

    settings = where.settings()
    state = StateDir(settings.service.state)
    nothing = NoForecastToReplay(
        f"{state.path} holds no forecasts yet; start the service there (predrain up), and come back after some days"
    )
    if not state.scorebook.is_file():
        raise nothing
    print("reading forecasts and outcomes", file=sys.stderr, flush=True)
    lineup = Lineup(forecaster_of(settings.forecast.bundle), state.bundles)
    lineup.follow()
    assert lineup.champion is not None
    with standing_store(settings) as store, closing(Scorebook(state.scorebook)) as scorebook:
        if store is None:
            raise nothing
        first = SystemClock().now().astimezone(UTC).date() - timedelta(days=days)
        book = scorebook.read(lineup.champion.fingerprint, (first - EPOCH).days)
        lineup.champion.learn_experience(load_experience(store, lineup.champion.fingerprint))
        told = preview_policy(
            book,
            lives_of(store, first),
            store.latest_readings(),
            settings.policy.policy(),
            lineup.champion.thresholds,
            tell=lambda line: print(line, file=sys.stderr, flush=True),
        )
    if as_json:
        import msgspec

        print_json(msgspec.to_builtins(told))
        return 0
    _show(told)
    return 0


def _show(told: Preview) -> None:
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
            f"now: {row.failure_cost:g}" if row.here else f"{row.failure_cost:g}",
            *(str(number) for number in (row.drains, row.in_time, row.for_nothing, row.undecided)),
            f"{row.moved_bytes / TB:,.1f}",
            f"{row.rebuilt_bytes / TB:,.1f}",
            f"{row.moving_hours:,.0f}",
            f"{row.cost_bytes / TB:,.0f}",
            "█" * round(BAR * row.cost_bytes / most),
        )
    terminal().print(table)
    here = next(row for row in told.rows if row.here)
    print(
        f"Cost: moved TB, and each rebuilt TB times {here.failure_cost:g}, the base cost that is set; the lowest bar "
        "is the best setting for these months. Costs set for a pool, class or host are scaled alike."
    )
