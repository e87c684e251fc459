"""What a forecast is worth in bytes, by notch and by policy.

`python -m tests.bench.worth SCORES --truth FILE... --bundle DIR`

SCORES is what `predrain score` wrote with the bundle, of days that it had not seen. The first table goes through the
notches under the default policy; the second through policies, each a change of one thing, at the bundle's own
thresholds and at a quarter of them. `docs/decisions/0005-default-policy.md` quotes both.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from actions.policy import Policy
from actions.worth import Notch, Rung, ladder, laid_out, table, worth_of
from models.bundle import Bundle
from models.evaluate import read_scores, read_truth
from service.worth import replayed, sizes_of

SEED = 0


def policies() -> Iterator[tuple[str, Policy]]:
    """The default and what lies beside it. With a reading a day, two readings are what 24 hours come to."""
    own = Policy()
    yield "default (3 readings, 24 h)", own
    yield "1 reading", replace(own, trust_readings=1, trust_hours=0)
    yield "2 readings, 24 h", replace(own, trust_readings=2)
    yield "7 readings, 144 h", replace(own, trust_readings=7, trust_hours=144)
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
    yield "no mass suspicion", replace(own, suspicion_min=10**6)
    yield "suspicion above 3, not 5 %", replace(own, suspicion_share=0)
    yield "10 MB/s a backfill", replace(own, move_bytes_per_second=10e6)
    yield "at night only (22 to 6)", replace(own, window=(22, 6))


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print both tables."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.worth", description=__doc__)
    parser.add_argument("scores", type=Path)
    parser.add_argument("--truth", type=Path, nargs="+", required=True)
    parser.add_argument("--bundle", type=Path, required=True)
    parser.add_argument("--racks-a-cluster", type=int, default=5, help="of 4 hosts of 45 drives each")
    options = parser.parse_args(arguments)
    thresholds = Bundle.load(options.bundle).facts.thresholds
    own = Notch("thresholds", thresholds.warning, thresholds.bad)
    forecasts, fates, layout = replayed(
        read_scores(options.scores), read_truth(options.truth), sizes=sizes_of(options.truth), seed=SEED
    )
    if options.racks_a_cluster != 5:
        layout = laid_out(fates.models, layout.size_bytes, seed=SEED, racks_a_cluster=options.racks_a_cluster)
    print(table(ladder(forecasts, fates, layout, Policy(), own, tell=_tell)), end="\n\n")
    rungs = []
    for factor, beside in ((1.0, ""), (0.25, ", x 1/4")):
        for name, policy in policies():
            notch = own.times(factor, name + beside)
            rungs.append(Rung(notch, worth_of(forecasts, fates, layout, policy, notch)))
            _tell(f"{notch.name}: held back {dict(rungs[-1].worth.refused)}")
    print(table(rungs))
    return 0


if __name__ == "__main__":
    sys.exit(main())
