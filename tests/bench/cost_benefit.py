"""The worth of a forecast in bytes, by the cost of a failure and by policy.

`python -m tests.bench.cost_benefit SCORES --truth FILE... --bundle DIR`

SCORES is the file that `predrain score` wrote with the bundle for days that the bundle had not seen. The first table
has a row for each cost of a failure. The second table has a row for each policy, and each policy changes one thing. The
last lines have the share that was saved, for each cost and each interval between readings, on all drives and on two
halves of them by chance. `docs/decisions/0028-drain-when-it-pays.md` quotes these figures.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from predrain.actions.core.drain_policy import Policy
from predrain.actions.cost_benefit import (
    DriveFates,
    DriveLayout,
    FailureCostRow,
    Notch,
    ReplayResult,
    compare_failure_costs,
    format_cost_table,
    laid_out,
    replay_forecast_days,
    worth_of,
)
from predrain.actions.cost_benefit.byte_counts import failure_costs
from predrain.models.evaluate import read_scores, read_truth
from predrain.models.forecast.bundle import Bundle
from predrain.service.forecasting.score_cost_benefit import prepare_replay_inputs, sizes_of

SEED = 0


def policies() -> Iterator[tuple[str, Policy]]:
    """The default and what lies beside it."""
    own = Policy()
    yield "default", own
    yield "1 drain at once a cluster", replace(own, drains_per_cluster=1)
    yield "8 a cluster, 4 a rack", replace(own, drains_per_cluster=8, drains_per_rack=4)
    yield "0.5 % out at most", replace(own, out_share_max=0.005)
    yield (
        "no budget",
        replace(
            own, drains_per_host=10**6, drains_per_rack=10**6, drains_per_cluster=10**6, out_share_max=1,
            in_flight_max=10**6,
        ),
    )  # fmt: skip
    yield "no mass suspicion", replace(own, mass_suspicion_min=10**6)
    yield "suspicion above 3, not 5 %", replace(own, mass_suspicion_share=0)
    yield "10 MB/s a backfill", replace(own, backfill_bytes_per_second=10e6)
    yield "at night only (22 to 6)", replace(own, window=(22, 6))


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def prices(layout: DriveLayout) -> Iterator[tuple[str, Policy]]:
    """Costs of a failure; at last 3 in one half of the hosts and 30 in the other, by three seeds."""
    own = Policy()
    yield "failure_cost 10", own
    yield "failure_cost 20", replace(own, failure_cost=20.0)
    hosts = np.unique(layout.host)
    for seed in range(3):
        dear = np.random.default_rng(seed).permutation(len(hosts)) % 2 == 0
        costs = tuple(
            (f"host:host-{host}", 30.0 if one else 3.0) for host, one in zip(hosts, dear, strict=True)
        )
        yield f"failure_cost 3 and 30, seed {seed}", replace(own, failure_cost_overrides=costs)


def saved(
    done: ReplayResult, fates: DriveFates, layout: DriveLayout, policy: Policy, mine: NDArray[np.bool_]
) -> float:
    """Share of the cost of failures that was saved on some of the drives."""
    cost = failure_costs(layout, policy)
    failing = fates.died & (fates.last > done.first) & (fates.last <= done.last) & mine
    drains = [drain for drain in done.drains if mine[drain.drive]]
    gain = sum((cost[one.drive] * failing[one.drive] - 1.0) * one.moved_bytes for one in drains)
    return float(gain / (cost * layout.used_bytes * failing).sum())


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.cost_benefit", description=__doc__)
    parser.add_argument("scores", type=Path)
    parser.add_argument("--truth", type=Path, nargs="+", required=True)
    parser.add_argument("--bundle", type=Path, required=True)
    parser.add_argument("--racks-a-cluster", type=int, default=5, help="of 4 hosts of 45 drives each")
    options = parser.parse_args(arguments)
    thresholds = Bundle.load(options.bundle).facts.thresholds
    words = Notch(thresholds.warning, thresholds.bad)
    forecasts, fates, layout = prepare_replay_inputs(
        read_scores(options.scores), read_truth(options.truth), sizes=sizes_of(options.truth), seed=SEED
    )
    if options.racks_a_cluster != 5:
        layout = laid_out(fates.models, layout.size_bytes, seed=SEED, racks_a_cluster=options.racks_a_cluster)
    print(
        format_cost_table(compare_failure_costs(forecasts, fates, layout, Policy(), words, tell=_tell)),
        end="\n\n",
    )
    cost_rows = []
    for name, policy in policies():
        cost_rows.append(
            FailureCostRow(name, policy.failure_cost, worth_of(forecasts, fates, layout, policy, words))
        )
        _tell(f"{name}: held back {dict(cost_rows[-1].worth.refused)}")
    print(format_cost_table(cost_rows), end="\n\n")
    half = np.random.default_rng(SEED).permutation(len(fates.last)) % 2 == 0
    for hours in (1, 24):
        for name, policy in prices(layout):
            done = replay_forecast_days(forecasts, fates, layout, policy, words, reading_hours=hours)
            shares = [saved(done, fates, layout, policy, mine) for mine in (np.ones_like(half), half, ~half)]
            told = " / ".join(f"{share:.1%}" for share in shares)
            print(f"{name}, a reading every {hours} h: {told} saved (all, one half, the other)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
