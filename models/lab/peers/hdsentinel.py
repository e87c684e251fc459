"""Hard Disk Sentinel's health: each kind of trouble takes a share of the health, up to a limit; the remainders
multiply.

Source: hdsentinel.com, help, "Health calculation". `bad` is below 50 % health, `warning` below 100 %.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final

import numpy as np

from predrain.models.lab.peers.drive_days import DriveDayRows
from predrain.models.lab.peers.peer_answer import PeerVerdict, status_of

USUAL: Final = {5: (1.0, 70.0), 10: (3.0, 60.0), 196: (0.6, 30.0), 197: (0.6, 48.0), 198: (1.0, 70.0)}
STRICT: Final = {5: (6.0, 60.0), 10: (6.0, 40.0), 196: (4.0, 30.0), 197: (4.0, 30.0), 198: (6.0, 60.0)}
"""SMART id -> (per cent taken by each count, limit in per cent)."""


def _compute_health_verdict(takes: Mapping[int, tuple[float, float]], rows: DriveDayRows) -> PeerVerdict:
    place, health = rows.find_history_rows(), np.full(len(rows.drive), 100.0)
    for smart_id, (weight, limit) in takes.items():
        taken = np.minimum(weight * np.nan_to_num(rows.get_raw_values(smart_id, place)), limit)
        health *= (100.0 - taken) / 100.0
    lacking = [str(n) for n in takes if not rows.has_raw_values(n)]
    return PeerVerdict(
        100.0 - health,
        status_of(health < 50.0, health < 100.0),
        f"the history lacks {', '.join(lacking)}" if lacking else "",
    )


hdsentinel = partial(_compute_health_verdict, USUAL)
hdsentinel_strict = partial(_compute_health_verdict, STRICT)
