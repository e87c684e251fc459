"""The state of a disk in words: the same on the page, in alerts and on the command line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from predrain.data.life_cycle import LifeChange, LifeEvidence, LifeState, RetiredWhy

STATE_TEXTS: Final[Mapping[LifeState, str]] = {
    LifeState.NEW: "It is new",
    LifeState.IN_SERVICE: "It is in service",
    LifeState.SILENT: "It is silent",
    LifeState.DRAINING: "It is being drained",
    LifeState.DRAINED: "It is drained and waits to be swapped",
    LifeState.FILLING: "It is being filled",
    LifeState.FAILED: "It failed",
}
RETIRED_TEXTS: Final[Mapping[RetiredWhy, str]] = {
    RetiredWhy.REPLACED: "It was replaced",
    RetiredWhy.REMOVED: "It was removed",
    RetiredWhy.MOVED: "Its history was given to the host where the disk lives",
    RetiredWhy.LOST: "It is lost from sight",
}
EVIDENCE_TEXTS: Final[Mapping[LifeEvidence, str]] = {
    LifeEvidence.NAMED_BY_CLUSTER: "the cluster names it under {}, and nobody has read it",
    LifeEvidence.FIRST_READING: "{} read it for the first time",
    LifeEvidence.READING: "{} reads it",
    LifeEvidence.NO_READING: "no reading comes from {}",
    LifeEvidence.NOT_LISTED: "{} is awake and reads it no more",
    LifeEvidence.UNREADABLE: "it does not answer ({})",
    LifeEvidence.DRAIN: "drain {}",
    LifeEvidence.OSD_SERVES: "{} serves on it again",
    LifeEvidence.OTHER_DISK: "{} stands in its slot",
    LifeEvidence.OSD_GONE: "the cluster has {} no more",
    LifeEvidence.STATEMENT: "{} said so",
    LifeEvidence.HISTORY_MOVED: "what {} sent was settled to be of another disk",
}


def describe_life(change: LifeChange) -> str:
    """Describe the state and its evidence in one sentence."""
    said = RETIRED_TEXTS[change.why] if change.why is not None else STATE_TEXTS[change.state]
    if change.state is LifeState.IN_SERVICE and change.osds:
        said += f" under {' and '.join(f'osd.{osd}' for osd in change.osds)}"
    return f"{said}: {EVIDENCE_TEXTS[change.evidence].format(change.subject or 'somebody')}."
