"""The adversary: drains, cancels, removals and quarantines beside other hands, kills and lost answers, and afterwards a
comparison with a shadow cluster on which nothing was ever drained.

On the shadow an act of another person is done as it was done on the cluster, and the mon tidies both. When every drain
is cancelled, both maps must be equal. After a drain that ended as drained, the map equals that of the shadow on which
the same OSD has override 0. After a removal, the map equals that of the shadow on which the OSD has CRUSH weight 0 as
well, except for the upmap items that a removal leaves to the balancer.

Run `make sim SEEDS=100 FROM=0`, with `ARGS="--game four-cancels"` for four drains and nothing else, or
`--game pools` for pools whose PGs are split and merged and whose CRUSH rule changes, or `--game interruptions` for
clients that write meanwhile and OSDs that hang while PGs peer. Each failure prints the line that plays it again.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context

from tests.properties.four_cancels import FourCancels
from tests.properties.games import Adversary, Deaths
from tests.properties.interruptions import Interruptions
from tests.properties.operations import Operations
from tests.properties.pools import Pools

GAMES: Mapping[str, type[Adversary]] = {
    "all": Adversary,
    "deaths": Deaths,
    "operations": Operations,
    "four-cancels": FourCancels,
    "pools": Pools,
    "interruptions": Interruptions,
}


@dataclass(frozen=True)
class Verdict:
    """The result of one seed. `broken` is empty when every invariant held."""

    seed: int
    cluster: str
    seconds: float
    hours: float
    drains: int
    broken: str


def play(seed: int, kind: str = "all") -> Verdict:
    """Play one seed of a kind of game; a crash of the engine breaks it as well."""
    began = time.monotonic()
    game = GAMES[kind](seed)
    drains, broken = 0, ""
    try:
        drains = game.play()
    except Exception as trouble:
        said = str(trouble).splitlines() or [""]
        broken = f"{type(trouble).__name__}: {said[0][:600]} (after {' '.join(game.told)})"
    name = game.spec.name
    return Verdict(seed, name, time.monotonic() - began, game.run.elapsed / 3600, drains, broken)


def play_all(first: int, seeds: int, kind: str = "all") -> Iterator[Verdict]:
    """Play so many seeds on every core."""
    with ProcessPoolExecutor(os.cpu_count() or 1, get_context("spawn")) as pool:
        yield from pool.map(partial(play, kind=kind), range(first, first + seeds))


def main() -> int:
    """Play the seeds and print what broke; 1 when something did."""
    parser = argparse.ArgumentParser(prog="python -m tests.properties.adversary", description=__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--from", dest="first", type=int, default=0)
    parser.add_argument("--game", choices=GAMES, default="all", help="what is played (default: all)")
    options = parser.parse_args()
    again = "" if options.game == "all" else f" ARGS='--game {options.game}'"
    began, failed, played, hours = time.monotonic(), 0, 0, 0.0
    for verdict in play_all(options.first, options.seeds, options.game):
        played, hours = played + 1, hours + verdict.hours
        if verdict.broken:
            failed += 1
            print(
                f"make sim SEEDS=1 FROM={verdict.seed}{again}  # {verdict.cluster}: {verdict.broken}",
                flush=True,
            )
        elif played % 20 == 0:
            print(f"{played} of {options.seeds} played, {failed} broken", flush=True)
    spent = time.monotonic() - began
    print(
        f"{played} seeds from {options.first}, {hours:.0f} simulated hours, {played / spent:.2f} seeds a second: "
        f"{failed} broken"
    )
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
