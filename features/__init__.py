"""features: one schema, two drivers. In: `History` or `Reading`s. Out: feature vectors. No I/O, no clock, no
settings.

Batch: `vectors(ledger_of(history), drive, day)`. Stream: `state = observe(state, reading)`, then `matrix(states,
day)`. Both measure `SCHEMA` by the same kernel and agree to the last bit. `pack`/`unpack` keep a `DriveState` as
bytes.
"""

from predrain.features.ledger import ledger_of
from predrain.features.packing import pack, unpack
from predrain.features.schema import NAMES_IN_ORDER, SCHEMA, schema_hash
from predrain.features.state import DriveState, matrix, observe, replay, vector
from predrain.features.vector import rows_at, vectors

__all__ = [
    "NAMES_IN_ORDER",
    "SCHEMA",
    "DriveState",
    "ledger_of",
    "matrix",
    "observe",
    "pack",
    "replay",
    "rows_at",
    "schema_hash",
    "unpack",
    "vector",
    "vectors",
]
