"""Two drains as transcripts: what was seen, decided and answered, line by line. `GOLDEN=write` rewrites them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from predrain.actions.simulator.cluster_spec import ClusterSpec
from predrain.data.drain import DrainState
from tests.actions.made import wide_spec
from tests.actions.run import Run

FOLDER = Path(__file__).resolve().parents[1] / "golden" / "drain"

SPECS = {
    "smooth": lambda: wide_spec(hosts=6, per_host=2, pg_num=32, used=0.3),
    "target_fills": lambda: wide_spec(hosts=8, per_host=2, racks=0, pg_num=128, used=0.55),
}


def transcript(spec: ClusterSpec) -> str:
    """Return the transcript of a drain of osd.0 to its end. In `target_fills`, the fuller cluster, new upmap items keep
    a PG in place at reweight steps.
    """
    with Run(spec, seed=8) as run:
        drain = run.drain("osd.0")
        run.until(drain, DrainState.VERIFIED)
        return run.transcript(drain)


@pytest.mark.slow
@pytest.mark.parametrize("name", SPECS)
def test_a_drain_goes_as_it_is_written_down(name: str) -> None:
    path = FOLDER / f"{name}.txt"
    played = transcript(SPECS[name]())
    if os.environ.get("GOLDEN") == "write":
        path.write_text(played)
    assert played == path.read_text()


def test_the_golden_drain_whose_target_fills_shows_a_pin_kept_elsewhere() -> None:
    assert "kept in place by new upmap items" in (FOLDER / "target_fills.txt").read_text()
