"""The causes for which a plan may not be carried out, as a closed list with typed figures.

Programs compare these values. `data.messages.describe_plan_refusal` makes the sentence for people.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from predrain.data.ids import OsdId, PgId


class PlanRefusalKind(StrEnum):
    """The cause of a refusal. The comment of a member names its figures."""

    # Targets
    TARGET_TOO_FULL = "target_too_full"
    """`osd` would be `percent` full, above `limit_percent`."""
    NO_LESS_FULL_TARGET = "no_less_full_target"
    """As before, and no less full legal target is left."""
    SIZES_UNKNOWN = "sizes_unknown"
    """`osd` reports no sizes."""
    NO_TARGET_WITH_SIZES = "no_target_with_sizes"
    """`pg` has no legal target that reports its size."""
    TARGET_AVOIDED = "target_avoided"
    """A person excluded `osd`, and `pg` has no other legal target."""
    SHARED_DEVICE = "shared_device"
    """`size` members of `pg` end on OSDs of the device `name`; the `others` are too few to serve from."""
    UPMAP_NOT_KEPT = "upmap_not_kept"
    """The mon keeps no upmap of `pg` under the CRUSH rule of its pool."""
    NO_LEGAL_TARGET = "no_legal_target"
    """`pg` cannot be mapped to `members`, and no other legal target is left."""

    # Removal of a disk
    REMOVAL_WITH_FULL_UPMAPS = "removal_with_full_upmaps"
    """Full pg_upmap entries forbid the upmap items that a removal needs."""
    REMOVAL_WITH_OLD_CLIENTS = "removal_with_old_clients"
    """The release `name` in require_min_compat_client forbids upmap items."""
    REMOVAL_WITH_WEIGHT_SETS = "removal_with_weight_sets"

    # Pools without a spare failure domain: `pgs` PGs of the pool `pool` would lack one of `size` places
    ZERO_WITH_WEIGHT_SETS = "zero_with_weight_sets"
    ZERO_WITHOUT_PLACE = "zero_without_place"
    """CRUSH weight 0 does not give `pg` a place."""
    ZERO_OF_LAST_OSD = "zero_of_last_osd"
    """As before, and no other OSD is on the hosts `name`."""
    ZERO_BESIDE_DRAIN = "zero_beside_drain"
    """`osd` beside it drains as well."""

    # Maps that are not computed
    PLACEMENT_DIFFERS = "placement_differs"
    """`pgs` of `others` compared PGs of `osds` differ; `pg` is on `members` and not on `computed`."""
    RULE_MISSING = "rule_missing"
    """The pool `pool` uses CRUSH rule `rule`, which the map does not have."""
    BUCKET_ALGORITHM = "bucket_algorithm"
    """The bucket `name` uses `step`, which is not straw2."""
    LOCAL_RETRIES = "local_retries"
    """The rule `name` retries locally."""
    RULE_STEP = "rule_step"
    """The rule `name` has the step `step`."""
    PRIMARIES_UNKNOWN = "primaries_unknown"
    """The PGs that a quarantined OSD leads are not computed, for `cause` and its figures."""

    # The drain's own OSDs
    OSD_GONE = "osd_gone"
    """An OSD of a quarantine is not in the map any more."""
    FILL_WITHOUT_OSD = "fill_without_osd"
    """`osd` is not in the map."""
    FILL_OF_DOWN_OSD = "fill_of_down_osd"
    FILL_WITHOUT_WEIGHT = "fill_without_weight"
    """`osd` has CRUSH weight 0."""
    FILL_OF_IN_OSD = "fill_of_in_osd"
    """`osd` is in already and fills at Ceph's own pace."""

    OLDER_SENTENCE = "older_sentence"
    """A plan of version 0.1.0 refused with the sentence `text`; it is planned again soon."""


@dataclass(frozen=True, slots=True)
class PlanRefusal:
    """One cause with its figures. Equal values read the same; a figure that the kind does not have is empty."""

    kind: PlanRefusalKind
    osd: OsdId | None = None
    osds: tuple[OsdId, ...] = ()
    pg: PgId | None = None
    pgs: int = 0
    others: int = 0
    members: tuple[int, ...] = ()
    computed: tuple[int, ...] = ()
    percent: int = 0
    """Fullness in whole percent: a smaller change is no other refusal."""
    limit_percent: int = 0
    pool: str = ""
    size: int = 0
    """Shards or copies of a PG of the pool."""
    rule: int = 0
    name: str = ""
    step: str = ""
    cause: PlanRefusalKind | None = None
    text: str = ""
