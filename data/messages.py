"""Sentences about plans, made of the typed values of `data` where people read them: REST, journal, guards, errors.

No program compares these sentences. The figures that the engine alone has are put into words by
`actions.core.messages`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from predrain.data.drain import Bound, BoundKind, Mechanic, Plan
from predrain.data.plan_refusal import PlanRefusal, PlanRefusalKind

_UNITS = ((2**40, "TiB"), (2**30, "GiB"), (2**20, "MiB"))

BOUND_TEXTS: Mapping[BoundKind, str] = {
    BoundKind.TARGET_STARTS: "osd.{b.osd}, which receives {pgs}, {b.at_once} on their way at once",
    BoundKind.TARGET_WRITES: "osd.{b.osd}, which receives {size} at {rate}",
    BoundKind.SOURCE_READS: "osd.{b.osd}, which reads {size} at {rate}",
    BoundKind.PRIMARY_FILLS: "osd.{b.osd}, primary of PGs of {size}, which fills one at a time at {rate}",
    BoundKind.HOST_NETWORK: "the network of {b.host}, {size} at {rate}",
    BoundKind.IN_FLIGHT: "{b.at_once} PGs in flight at {rate} each",
    BoundKind.PEERING: "{b.at_once} PGs peering at once",
    BoundKind.ONE_BY_ONE: "one PG at a time, because there is no latency signal",
    BoundKind.POLLS: "then {b.polls} polls to begin and to end",
    BoundKind.OVERRIDE_ZERO: "then override 0: {pgs} peer once more",
    BoundKind.WEIGHT_ZERO: "then CRUSH weight 0: {pgs} kept where they are by upmap items",
}

_FULL = "osd.{r.osd} would be {r.percent}% full, {limit}"
_BY_HAND = "Drain it to be replaced, and take the weight away by hand"
_HOMELESS = (
    "At override 0 {pgs} of pool {r.pool} would end without {r.size} distinct places ({r.size} shards, no spare "
    "failure domain)"
)
_ZERO_FAILS = _HOMELESS + "; CRUSH weight 0 does not help (PG {r.pg}). It cannot be emptied"
WEIGHT_SETS = (
    "The CRUSH map has weight-sets (choose_args), and a change of a CRUSH weight also overwrites weights in them, "
    "which predrain does not give back"
)
_K = PlanRefusalKind
REFUSAL_TEXTS: Mapping[PlanRefusalKind, str] = {
    _K.TARGET_TOO_FULL: _FULL + ".",
    _K.NO_LESS_FULL_TARGET: _FULL + "; no less full legal target is left.",
    _K.SIZES_UNKNOWN: "osd.{r.osd} reports no sizes; its room is not known.",
    _K.NO_TARGET_WITH_SIZES: "PG {r.pg} has no legal target that reports its size.",
    _K.TARGET_AVOIDED: "osd.{r.osd} is left out as a target, and PG {r.pg} has no other legal one.",
    _K.SHARED_DEVICE: (
        "{r.size} members of PG {r.pg} end on OSDs of {r.name}, which die together, and it would not serve from "
        "the {r.others} others."
    ),
    _K.UPMAP_NOT_KEPT: (
        "The mon keeps no upmap of PG {r.pg}, since the CRUSH rule of its pool chooses buckets of several types in "
        "a row (CrushWrapper::verify_upmap). The plan needs upmaps: give the pool another rule, or empty the OSD by "
        "hand with `ceph osd reweight`."
    ),
    _K.NO_LEGAL_TARGET: (
        "PG {r.pg} cannot be mapped to {members} by an upmap, and no other legal target is left."
    ),
    _K.REMOVAL_WITH_FULL_UPMAPS: (
        "A disk that goes for good ends at CRUSH weight 0, and nothing can be kept in place then: full pg_upmap "
        f"entries stand. {_BY_HAND}."
    ),
    _K.REMOVAL_WITH_OLD_CLIENTS: (
        "A disk that goes for good ends at CRUSH weight 0, and nothing can be kept in place then: "
        f"require_min_compat_client is {{r.name}}. {_BY_HAND}."
    ),
    _K.REMOVAL_WITH_WEIGHT_SETS: (
        f"A disk that goes for good ends at CRUSH weight 0. {WEIGHT_SETS}. {_BY_HAND}; or remove the weight-sets "
        "first (ceph osd crush weight-set rm-compat)."
    ),
    _K.ZERO_WITH_WEIGHT_SETS: (
        f"{_HOMELESS}, and the mechanic that is left, CRUSH weight 0, is not to be had. {WEIGHT_SETS}: remove them "
        "(ceph osd crush weight-set rm-compat, ceph osd crush weight-set rm POOL), or drain by hand."
    ),
    _K.ZERO_WITHOUT_PLACE: _ZERO_FAILS + ".",
    _K.ZERO_OF_LAST_OSD: (
        _ZERO_FAILS + ": no other OSD is on {r.name}, and a host cannot be evacuated without a spare one."
    ),
    _K.ZERO_BESIDE_DRAIN: _HOMELESS + ", and osd.{r.osd} beside it drains as well; wait for that.",
    _K.PLACEMENT_DIFFERS: (
        "The placement that was computed is not the cluster's: {r.pgs} of {others} of {osds} differ, e.g. PG "
        "{r.pg} is on {members} and not {computed}; nothing is planned."
    ),
    _K.RULE_MISSING: "Pool {r.pool} uses CRUSH rule {r.rule}, which the map does not have.",
    _K.BUCKET_ALGORITHM: (
        "Bucket {r.name} uses {r.step}; only straw2 is computed, so neither a walk by upmap nor a ladder by override "
        "reweight can be planned here: {cure}, or drain by hand."
    ),
    _K.LOCAL_RETRIES: (
        "Rule {r.name} retries locally (choose_local_tries, choose_local_fallback_tries), which is not computed; set "
        "newer tunables (ceph osd crush tunables jewel), or take such steps out of it."
    ),
    _K.RULE_STEP: (
        "Rule {r.name} has {step}, which is not computed; give its pools a rule without it (ceph osd pool set POOL "
        "crush_rule), or drain by hand."
    ),
    _K.PRIMARIES_UNKNOWN: "Which PGs it leads cannot be computed: {cause}",
    _K.OSD_GONE: "An OSD of it is not in the map any more.",
    _K.FILL_WITHOUT_OSD: "osd.{r.osd} is not in the map; make the OSD on the new disk first.",
    _K.FILL_OF_DOWN_OSD: "osd.{r.osd} is down; start it on the new disk first.",
    _K.FILL_WITHOUT_WEIGHT: (
        "osd.{r.osd} has CRUSH weight 0, so no PG belongs there; give it its weight first, while it is out."
    ),
    _K.FILL_OF_IN_OSD: (
        "osd.{r.osd} is in already and fills at Ceph's own pace; `ceph osd out {r.osd}` first, to have it paced."
    ),
    _K.OLDER_SENTENCE: "{r.text}",
}
_CURES = {"straw": "convert it (ceph osd crush set-all-straw-buckets-to-straw2, which moves some data)"}
_CURE = (
    "move its items to a new straw2 bucket (ceph osd crush add-bucket, ceph osd crush move, which moves data)"
)


def describe_plan_refusal(refusal: PlanRefusal) -> str:
    """Return the whole sentence for a cause that forbids a plan."""
    return REFUSAL_TEXTS[refusal.kind].format(
        r=refusal,
        pgs=format_count(refusal.pgs, "PG"),
        others=format_count(refusal.others, "PG"),
        osds=", ".join(f"osd.{osd}" for osd in refusal.osds),
        members=list(refusal.members),
        computed=list(refusal.computed),
        limit=describe_limit(refusal.limit_percent / 100),
        step="multi-step retries (MSR)" if "msr" in refusal.step else f"a step {refusal.step!r}",
        cure=_CURES.get(refusal.step, _CURE),
        cause=describe_plan_refusal(replace(refusal, kind=refusal.cause, cause=None))
        if refusal.cause
        else "",
    )


def describe_bound(bound: Bound) -> str:
    """Return the words for a lower limit of a plan's duration, with its figures."""
    return bound.text or BOUND_TEXTS[bound.kind].format(
        b=bound,
        pgs=format_count(bound.pgs, "PG"),
        size=format_size(bound.bytes),
        rate=f"{bound.bytes_per_second / 1e6:.0f} MB/s",
    )


def describe_bottleneck(plan: Plan) -> str:
    """Return the words for the longest limit of a plan's duration, or for the lack of one."""
    if plan.bounds:
        return describe_bound(plan.bounds[0])
    if plan.eta_hours is None:
        return "unknown"
    return "nothing to change" if plan.mechanic is Mechanic.PRIMARY_AFFINITY else "nothing to move"


def describe_limit(limit: float) -> str:
    """Describe the fullness that no target may pass; the cluster's ratios may leave no capacity at all."""
    return (
        f"limit {limit:.0%}"
        if limit > 0
        else "and the cluster's nearfull and backfillfull ratios leave no room"
    )


def format_count(number: int, noun: str) -> str:
    """Format a number with its noun: `1 PG`, `3 PGs`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def format_size(size: int) -> str:
    """Format a size: `12 GiB`, `1.4 MiB`, `900 bytes`."""
    for unit, name in _UNITS:
        if size >= unit:
            return f"{size / unit:.0f} {name}" if size >= 10 * unit else f"{size / unit:.1f} {name}"
    return f"{size} bytes"
