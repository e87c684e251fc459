"""features: one schema of features, computed by two drivers. In: `History` or `Reading`s. Out: feature vectors. No
I/O, no clock, no settings.

Batch driver: `compute_feature_vectors(ledger_of(history), drive, day)`. Stream driver: `state =
observe_reading(state, reading)`, then `compute_state_matrix(states, day)`. Both measure `SCHEMA` by the same kernel
and agree to the last bit. `pack_drive_state` and `unpack_drive_state` convert a `DriveState` to bytes and back.
"""

from predrain.features.drive_history_rows import ledger_of
from predrain.features.drive_state import (
    DriveState,
    compute_state_matrix,
    compute_state_vector,
    observe_reading,
    replay_readings,
)
from predrain.features.feature_schema import NAMES_IN_ORDER, SCHEMA, schema_hash
from predrain.features.feature_vectors import compute_feature_vectors, rows_at
from predrain.features.state_packing import pack_drive_state, unpack_drive_state

__all__ = [
    "NAMES_IN_ORDER",
    "SCHEMA",
    "DriveState",
    "compute_feature_vectors",
    "compute_state_matrix",
    "compute_state_vector",
    "ledger_of",
    "observe_reading",
    "pack_drive_state",
    "replay_readings",
    "rows_at",
    "schema_hash",
    "unpack_drive_state",
]
