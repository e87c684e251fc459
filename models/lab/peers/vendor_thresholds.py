"""The drive's own verdict: a normalised value at or below its vendor's threshold.

Backblaze publishes no thresholds. These are the thresholds that smartctl printed (`thresh`) for drives of these
models. 187, 197 and 198 have threshold 0 with every vendor, so they never fail.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from predrain.models.lab.peers.drive_days import DriveDayRows
from predrain.models.lab.peers.peer_answer import NotComputable, PeerVerdict, status_of

_HITACHI: Final = {1: 16, 2: 54, 3: 24, 5: 5, 7: 67, 8: 20, 10: 60}
_WDC: Final = {1: 51, 3: 21, 5: 140}
THRESHOLDS: Final[Mapping[str, Mapping[int, int]]] = {
    "Hitachi HDS721050": _HITACHI,
    "Hitachi HUA722010": _HITACHI,
    "HGST HUS72": _HITACHI,
    "HGST HUH721008": _HITACHI | {22: 25},
    "WDC WD4000FYYX": _WDC,
    "WDC WD20EFRX": _WDC,
    "WDC WD5003ABYX": _WDC,
    "WDC WD1004FBYZ": _WDC,
    "ST3500418AS": {1: 6, 4: 20, 5: 36, 7: 30, 10: 97, 12: 20, 184: 99, 190: 45},
    "ST32000644NS": {1: 44, 4: 20, 5: 36, 7: 30, 10: 97, 12: 20, 184: 99, 190: 45},
    "ST2000DM006": {1: 6, 4: 20, 5: 10, 7: 30, 10: 97, 12: 20, 184: 99, 190: 45},
}
"""First letters of a model -> SMART id -> threshold."""


def apply_vendor_thresholds(rows: DriveDayRows) -> PeerVerdict:
    """Count the normalised values that are at or below a threshold above 0; alarm from one on.

    Drives of models without thresholds have no score. Raises NotComputable.
    """
    if not rows.columns.normalised:
        raise NotComputable("the history holds no normalised values")
    models = rows.get_models().astype(str)
    score, place = np.full(len(models), np.nan), rows.find_history_rows()
    for prefix, thresholds in THRESHOLDS.items():
        mine = np.flatnonzero(np.char.startswith(models, prefix))
        if not len(mine):
            continue
        tripped = [rows.get_normalised_values(n, place[mine]) <= limit for n, limit in thresholds.items()]
        score[mine] = np.sum(tripped, axis=0)
    judged = ~np.isnan(score)
    if not judged.any():
        raise NotComputable("no threshold is known for any model of the history")
    note = "" if judged.all() else f"thresholds are known for {judged.mean():.0%} of the rows only"
    return PeerVerdict(score, status_of(score >= 1), note)
