"""The reasons for which a drain may not go on, as a closed list: programs decide by the reason, and its sentence is for
people.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from predrain.data.ids import OsdId


class HoldReason(StrEnum):
    """The guard that refuses, or the state that holds a drain without a guard."""

    HALT = "halt"
    STALE_VIEW = "stale-view"
    UNHEALTHY = "unhealthy"
    WHOLE = "whole"
    OPERATOR_FLAGS = "operator-flags"
    PLAN = "plan"
    REDUNDANCY = "redundancy"
    SPACE = "space"
    BUDGET = "budget"
    THROTTLE = "throttle"
    MASS_SUSPICION = "mass-suspicion"
    AUTOSCALE = "autoscale"
    UPGRADE = "upgrade"
    SCRUB_ERRORS = "scrub-errors"
    UNKNOWN_RELEASE = "unknown-release"
    WINDOW = "window"
    LEASE = "lease"
    CONFLICT = "conflict"
    BALANCER = "balancer"
    TRUST = "trust"
    SAFE_TO_DESTROY = "safe-to-destroy"
    MODE = "mode"
    """predrain only observes, so it proposes no drain."""
    UNREACHABLE = "unreachable"
    """The cluster does not answer, or what it keeps for predrain cannot be read."""
    STANDSTILL = "standstill"
    """No guard refuses, and nothing has moved for long."""
    OTHER = "other"
    """The reason comes from a version of predrain that has other guards."""

    @classmethod
    def _missing_(cls, value: object) -> HoldReason | None:
        return cls.OTHER if isinstance(value, str) else None


@dataclass(frozen=True, slots=True)
class HoldCause:
    """The first reason for a hold, and the OSD that it is about; None if it is about no single OSD.

    Programs compare holds by this value: the figures in the sentences change at every poll.
    """

    reason: HoldReason
    osd: OsdId | None = None
