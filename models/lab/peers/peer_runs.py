"""Run peers by name: each gives scores for every drive seen by each landmark, or the reason why it cannot."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from predrain.data.history import History
from predrain.data.refusal import Refusal
from predrain.models.evaluate.arrays import Ints, Texts
from predrain.models.evaluate.drive_outcomes import FailureTruth
from predrain.models.lab.peers.counter_rules import (
    any5_rise,
    score_any4,
    score_any5,
    score_level,
    score_rise,
    smart_197,
)
from predrain.models.lab.peers.drive_days import DriveDayRows
from predrain.models.lab.peers.hdsentinel import hdsentinel, hdsentinel_strict
from predrain.models.lab.peers.learned_peers import LEARNERS as PLAIN
from predrain.models.lab.peers.learned_peers import TrainingHistory
from predrain.models.lab.peers.peer_answer import NotComputable, PeerVerdict
from predrain.models.lab.peers.peer_columns import NOTHING, SmartColumns
from predrain.models.lab.peers.redhat import redhat_recipe
from predrain.models.lab.peers.scrutiny import apply_scrutiny_thresholds
from predrain.models.lab.peers.vendor_thresholds import apply_vendor_thresholds

if TYPE_CHECKING:
    import pyarrow as pa

RULES: Final[Mapping[str, Callable[[DriveDayRows], PeerVerdict]]] = {
    "any5": score_any5,
    "any4": score_any4,
    "smart_197": smart_197,
    "any5_rise": any5_rise,
    "level": score_level,
    "rise": score_rise,
    "vendor": apply_vendor_thresholds,
    "scrutiny": apply_scrutiny_thresholds,
    "hdsentinel": hdsentinel,
    "hdsentinel_strict": hdsentinel_strict,
}
LEARNERS: Final[Mapping[str, Callable[[TrainingHistory], PeerVerdict]]] = {
    **PLAIN,
    "redhat_recipe": redhat_recipe,
}
ABSENT: Final = {
    "ceph_prophetstor": "its 75 support vector machines are scikit-learn pickles that Ceph ships; they are not "
    "among the histories, and predrain loads no pickle"
}
NAMES: Final = (*RULES, *LEARNERS, *ABSENT)
DEFAULT: Final = ("lgbm_plain", "rf5", "smart_197", "any5", "any5_rise", "level", "rise")


class UnknownPeer(Refusal):
    """There is no peer of this name."""


@dataclass(frozen=True, slots=True)
class PeerAnswer:
    """A peer's scores, or None and the reason. `note` names the inputs that the peer lacked."""

    name: str
    table: pa.Table | None
    note: str


def refuse_unknown(names: Sequence[str]) -> None:
    """Check that these peers exist. Raises UnknownPeer."""
    strange = sorted(set(names) - set(NAMES))
    if strange:
        raise UnknownPeer(f"There is no peer {', '.join(strange)}; known are {', '.join(NAMES)}.")


def peer_scores(
    names: Sequence[str],
    history: History,
    truth: FailureTruth,
    landmarks: Ints,
    *,
    split: int,
    seed: int,
    columns: SmartColumns = NOTHING,
    drives: Texts | None = None,
    threads: int = 1,
    tell: Callable[[str], None] = lambda _line: None,
) -> list[PeerAnswer]:
    """Return the answers of the named peers: tables of serial_number, date, model, p_fail_30d and, with an alarm,
    status.

    split: day (since 1970-01-01) after which nothing may be learned. truth: gives the learners their labels; they
    learn nothing from a drive that it lacks. drives: serial numbers of those to be scored; None scores all. Raises
    UnknownPeer.
    """
    refuse_unknown(names)
    first = history.day[history.start[:-1]].astype(np.int64)
    day, drive = (grid.ravel() for grid in np.meshgrid(landmarks, np.arange(history.drives), indexing="ij"))
    scored = np.ones(history.drives, dtype=bool) if drives is None else np.isin(history.serials, drives)
    seen = np.flatnonzero((first[drive] <= day) & scored[drive])
    asked = DriveDayRows.from_history(history, drive[seen], day[seen], columns)
    lesson = TrainingHistory(asked, truth, split, seed, threads)
    found = []
    for name in names:
        tell(f"peer {name}")
        try:
            if name in ABSENT:
                raise NotComputable(ABSENT[name])
            verdict = RULES[name](asked) if name in RULES else LEARNERS[name](lesson)
            found.append(PeerAnswer(name, _build_score_table(asked, verdict), verdict.note))
        except NotComputable as lacking:
            found.append(PeerAnswer(name, None, str(lacking)))
    return found


def _build_score_table(rows: DriveDayRows, verdict: PeerVerdict) -> pa.Table:
    import pyarrow as pa

    judged = np.flatnonzero(~np.isnan(verdict.score))
    place = rows.history.start[rows.drive[judged] + 1] - 1
    models = np.array(rows.history.model_names, dtype=object)[rows.history.model[place]]
    columns = {
        "serial_number": pa.array(rows.history.serials[rows.drive[judged]], pa.string()),
        "date": pa.array(rows.day[judged].astype(np.int32), pa.int32()).cast(pa.date32()),
        "model": pa.array(models, pa.string()),
        "p_fail_30d": pa.array(verdict.score[judged], pa.float64()),
    }
    if verdict.status is not None:
        columns["status"] = pa.array(verdict.status[judged], pa.string())
    return pa.table(columns)
