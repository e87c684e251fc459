"""The committed table of drives in service is what its script makes of the source data."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from predrain.models.forecast.rules.fleet_levels import TABLE, DriveKind
from tests.bench.fleet_tables import make_standings


@pytest.mark.slow
@pytest.mark.parametrize("kind", DriveKind)
def test_the_committed_table_is_what_its_script_makes(kind: DriveKind, shared_data: Path) -> None:
    committed = json.loads(TABLE.read_text())["kinds"][kind.value]
    assert make_standings(shared_data / "evidence", kind) == committed
