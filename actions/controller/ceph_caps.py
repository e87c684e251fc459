"""The rights that a cephx user needs so that predrain can work, and not one command more (ceph.md f).

The rights are one table. Each line is a command that the engine sends, with its allowed arguments and its purpose. The
caps are printed from the table, and a test compares every command of the engine with it. Without a line the mon
answers EACCES: so for `osd out`, `osd purge`, `osd blocklist`, settings of other names or sections, keys of other
prefixes, and `tell`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from predrain.actions.cluster.channel import Argument
from predrain.actions.cluster.cluster_view import BALANCER, PROPOSE_INTERVAL
from predrain.actions.cluster.config_key_store import PREFIX
from predrain.actions.cluster.signed_keys import ANSWERS, HALT, REQUESTS
from predrain.actions.core.held_throttles import OPTIONS
from predrain.actions.mechanics.crush_removal import FLAGS


class CephUser(StrEnum):
    """The cephx users of predrain."""

    SERVICE = "service"
    """Reads the cluster, holds the lease and moves data."""
    READING = "reading"
    """Reads the cluster, sets a halt and writes requests, which the mgr module or another controller executes."""
    HANDS = "hands"
    """The optional second user: device light and orchestrator, which can remove OSDs."""


class CapsPart(StrEnum):
    """The part of predrain that needs a grant."""

    SEE = "see"
    """Read predrain's texts in the cluster, and whether an upgrade runs."""
    ASK = "ask"
    """Set a halt and write requests to the controller with the lease; not write its drains, and not lift a halt."""
    LEAD = "lead"
    """Hold the lease as the only controller, and store its state in the cluster."""
    MOVE = "move"
    """Drain, and restore."""
    HAND_OVER = "hand over"
    """The tasks after a drain."""


_PARTS = {
    CephUser.SERVICE: {CapsPart.SEE, CapsPart.LEAD, CapsPart.MOVE},
    CephUser.READING: {CapsPart.SEE, CapsPart.ASK},
    CephUser.HANDS: {CapsPart.HAND_OVER},
}


@dataclass(frozen=True, slots=True)
class CephGrant:
    """One command to one kind of daemon. `limits`: argument, `=` or ` prefix `, value; each must hold."""

    to: str
    prefix: str
    why: str
    part: CapsPart = CapsPart.MOVE
    limits: tuple[tuple[str, str, str], ...] = ()

    def text(self) -> str:
        """Return the grant as a cap."""
        with_ = " with " + " ".join(f"{name}{how}{value}" for name, how, value in self.limits)
        return f'allow command "{self.prefix}"{with_ if self.limits else ""}'

    def covers(self, to: str, prefix: str, arguments: Mapping[str, Argument]) -> bool:
        """Return whether the grant covers the command, by the rules of the mon."""
        return (self.to, self.prefix) == (to, prefix) and all(
            str(arguments.get(name, "")).startswith(value)
            if "prefix" in how
            else arguments.get(name) == value
            for name, how, value in self.limits
        )


@dataclass(frozen=True, slots=True)
class RequiredCap:
    """One cap of a service, and its purpose."""

    service: str
    cap: str
    why: str


@dataclass(frozen=True, slots=True)
class CephCaps:
    """Caps as `ceph auth` takes them; "" for a service without caps."""

    mon: str
    mgr: str
    osd: str

    def by_service(self) -> dict[str, str]:
        """Return the caps that are not empty, by service."""
        return {
            service: cap for service, cap in (("mon", self.mon), ("mgr", self.mgr), ("osd", self.osd)) if cap
        }


def _build_limited_grant(prefix: str, why: str, **limits: str) -> CephGrant:
    return CephGrant(
        "mon", prefix, why, CapsPart.MOVE, tuple((name, "=", value) for name, value in limits.items())
    )


_FAST_MAPS = tuple(
    _build_limited_grant(
        f"config {verb}",
        f"{why}, where policy.fast_maps_seconds asks for it",
        who="mon",
        name=PROPOSE_INTERVAL,
    )
    for verb, why in (("set", "let maps follow each other sooner while PGs move"), ("rm", "end that"))
)
FAST_MAPS_CAPS = frozenset(grant.text() for grant in _FAST_MAPS)
"""Caps that only fast maps need; everything else works without them."""

GRANTS: tuple[CephGrant, ...] = (
    *(
        CephGrant("mon", f"config-key {verb}", why, part, (("key", " prefix ", PREFIX),))
        for verb, why, part in (
            ("get", "read the drains kept in the cluster, and whether they are halted", CapsPart.SEE),
            ("exists", "see whether a piece of them is there", CapsPart.SEE),
            ("dump", "list them", CapsPart.SEE),
            ("set", "keep them", CapsPart.LEAD),
            ("rm", "forget them; lift a halt", CapsPart.LEAD),
        )
    ),
    CephGrant("mon", "config-key set", "halt everything", CapsPart.ASK, (("key", "=", f"{PREFIX}{HALT}"),)),
    CephGrant(
        "mon",
        "config-key set",
        "ask the controller that leads for a drain, signed with the controllers' key",
        CapsPart.ASK,
        (("key", " prefix ", f"{PREFIX}{REQUESTS}"),),
    ),
    *(
        CephGrant("mon", "config-key rm", why, CapsPart.ASK, (("key", " prefix ", f"{PREFIX}{under}"),))
        for under, why in ((REQUESTS, "withdraw what it asked"), (ANSWERS, "remove an answer that was read"))
    ),
    CephGrant(
        "mgr",
        "orch upgrade status",
        "hold while an upgrade runs; for Ceph this read is a write",
        CapsPart.SEE,
    ),
    CephGrant("mon", "osd pg-upmap-items", "move single PGs off a disk"),
    CephGrant("mon", "osd rm-pg-upmap-items", "give them back"),
    CephGrant("mon", "osd pg-temp", "let the old members serve a PG while the new one is filled"),
    CephGrant("mon", "osd reweight", "take a disk's share in steps; the end of a drain"),
    CephGrant("mon", "osd crush reweight", "the same for a disk that is not replaced in its slot"),
    CephGrant("mon", "osd primary-affinity", "let other OSDs answer reads for a slow disk"),
    *(
        _build_limited_grant(
            f"osd {verb}", f"{verb} {flag} for seconds, while PGs are kept in place by upmap items", key=flag
        )
        for flag in FLAGS
        for verb in ("set", "unset")
    ),
    *(
        _build_limited_grant(f"config {verb}", why, who="osd", name=option)
        for option in OPTIONS
        for verb, why in (("set", "lower a recovery throttle"), ("rm", "restore it where nothing was set"))
    ),
    *_FAST_MAPS,
    CephGrant("mgr", "balancer off", "keep the balancer from refilling a disk that is drained"),
    CephGrant("mgr", "balancer on", "start it again, where it was on"),
    _build_limited_grant("config rm", "the same, where nothing was set", who="mgr", name=BALANCER),
    CephGrant("mgr", "device set-life-expectancy", "show in `ceph device ls` how long a disk has"),
    CephGrant("mgr", "device rm-life-expectancy", "withdraw that"),
    CephGrant("mgr", "device light", "light the drawer of a drained disk", CapsPart.HAND_OVER),
    CephGrant(
        "mgr", "orch osd rm", "let the orchestrator replace or remove a drained OSD", CapsPart.HAND_OVER
    ),
)


def list_grants(user: CephUser) -> tuple[CephGrant, ...]:
    """Return the commands that the user may send."""
    return tuple(each for each in GRANTS if each.part in _PARTS[user])


def list_required_rights(
    user: CephUser = CephUser.SERVICE, pool: str = "predrain"
) -> tuple[RequiredCap, ...]:
    """Return all caps that the user needs, with reasons. `allow r` of the mon also allows `osd in`; Ceph has no
    narrower one.
    """
    see = "see the cluster: maps, PGs, statistics, settings"
    listed = [RequiredCap("mon", "allow r", see), RequiredCap("mgr", "allow r", see)]
    listed += [RequiredCap(each.to, each.text(), each.why) for each in list_grants(user)]
    if user is not CephUser.HANDS:
        why = "the lease of the controller that acts, and a probe of the latency of clients"
        listed.append(RequiredCap("osd", f"allow rwx pool={pool}", why))
    return tuple(listed)


def build_cephx_caps(user: CephUser = CephUser.SERVICE, pool: str = "predrain") -> CephCaps:
    """Build the caps of the user in the form that `ceph auth` takes."""
    listed = list_required_rights(user, pool)
    return CephCaps(
        *(", ".join(r.cap for r in listed if r.service == service) for service in ("mon", "mgr", "osd"))
    )
