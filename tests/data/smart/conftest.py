"""Real smartctl outputs (their sources are in samples/README.md) and a way to ask for one by its name."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from predrain.data.smart import SmartDocument, decode_smartctl_output

SAMPLES = Path(__file__).parent / "samples"


@pytest.fixture(scope="session")
def samples() -> dict[str, bytes]:
    """Every sample by its name: `ata-052`."""
    return {path.stem: path.read_bytes() for path in sorted(SAMPLES.glob("*.json"))}


@pytest.fixture(scope="session")
def sample(samples: dict[str, bytes]) -> Callable[[str], SmartDocument]:
    """Decode one sample."""
    return lambda name: decode_smartctl_output(samples[name])


@pytest.fixture(scope="session")
def altered(samples: dict[str, bytes]) -> Callable[..., SmartDocument]:
    """Decode one sample after a change to its JSON, made in place by the given function."""

    def alter(name: str, change: Callable[[dict[str, Any]], object]) -> SmartDocument:
        document = json.loads(samples[name])
        change(document)
        return decode_smartctl_output(json.dumps(document).encode())

    return alter
