"""What a cephx user must be allowed so that predrain can work, and not one command more (ceph.md f).

One table: each line is a command that the engine sends, with the arguments that it may have and what it is for. The
caps are printed from it, and a test holds every command of the engine against it. Without these the mon answers
EACCES: `osd out`, `osd purge`, `osd blocklist`, settings of other names or sections, keys of other prefixes, `tell`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from predrain.actions.cluster.channel import Argument
from predrain.actions.cluster.config_key_store import PREFIX
from predrain.actions.cluster.signed_keys import ANSWERS, HALT, REQUESTS
from predrain.actions.cluster.view import BALANCER, PROPOSE_INTERVAL
from predrain.actions.core.throttle_options import OPTIONS
from predrain.actions.mechanics.retire import FLAGS


class User(StrEnum):
    """Whose rights."""

    SERVICE = "service"
    """Sees, leads and moves."""
    READING = "reading"
    """Sees, sets a halt and lays requests; the mgr module or another controller carries them out."""
    HANDS = "hands"
    """The optional second key: device light and orchestrator, which can remove OSDs."""


class CapsPart(StrEnum):
    """What a grant belongs to."""

    SEE = "see"
    """What the cluster keeps for predrain, and whether an upgrade runs."""
    ASK = "ask"
    """A halt, and requests to the controller that leads. Not the drains that it keeps, and not the end of a halt."""
    LEAD = "lead"
    """One controller at a time, its state kept in the cluster."""
    MOVE = "move"
    """Drains, and the way back."""
    HAND_OVER = "hand over"
    """What comes after a drain."""


_PARTS = {
    User.SERVICE: {CapsPart.SEE, CapsPart.LEAD, CapsPart.MOVE},
    User.READING: {CapsPart.SEE, CapsPart.ASK},
    User.HANDS: {CapsPart.HAND_OVER},
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
        """As a cap."""
        with_ = " with " + " ".join(f"{name}{how}{value}" for name, how, value in self.limits)
        return f'allow command "{self.prefix}"{with_ if self.limits else ""}'

    def covers(self, to: str, prefix: str, arguments: Mapping[str, Argument]) -> bool:
        """Whether the command falls under it, as the mon judges."""
        return (self.to, self.prefix) == (to, prefix) and all(
            str(arguments.get(name, "")).startswith(value)
            if "prefix" in how
            else arguments.get(name) == value
            for name, how, value in self.limits
        )


@dataclass(frozen=True, slots=True)
class Right:
    """One cap of a service, and what it is for."""

    service: str
    cap: str
    why: str


@dataclass(frozen=True, slots=True)
class Caps:
    """Caps as `ceph auth` takes them; empty where there are none."""

    mon: str
    mgr: str
    osd: str

    def by_service(self) -> dict[str, str]:
        """Those that are not empty."""
        return {
            service: cap for service, cap in (("mon", self.mon), ("mgr", self.mgr), ("osd", self.osd)) if cap
        }


def _limited(prefix: str, why: str, **limits: str) -> CephGrant:
    return CephGrant(
        "mon", prefix, why, CapsPart.MOVE, tuple((name, "=", value) for name, value in limits.items())
    )


_FAST_MAPS = tuple(
    _limited(f"config {verb}", f"{why}, where policy.fast_maps asks for it", who="mon", name=PROPOSE_INTERVAL)
    for verb, why in (("set", "let maps follow each other sooner while PGs move"), ("rm", "end that"))
)
FAST_MAPS_CAPS = frozenset(grant.text() for grant in _FAST_MAPS)
"""Caps without which fast maps stay off and all else works."""

GRANTS: tuple[CephGrant, ...] = (
    *(
        CephGrant("mon", f"config-key {verb}", why, part, (("key", " prefix ", PREFIX),))
        for verb, why, part in (
            ("get", "read the drains kept in the cluster, and whether somebody halted them", CapsPart.SEE),
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
        _limited(f"osd {verb}", f"{verb} {flag} for seconds, while PGs are pinned where they are", key=flag)
        for flag in FLAGS
        for verb in ("set", "unset")
    ),
    *(
        _limited(f"config {verb}", why, who="osd", name=option)
        for option in OPTIONS
        for verb, why in (("set", "lower a recovery throttle"), ("rm", "restore it where nothing was set"))
    ),
    *_FAST_MAPS,
    CephGrant("mgr", "balancer off", "keep the balancer from refilling a disk that is drained"),
    CephGrant("mgr", "balancer on", "start it again, where it was on"),
    _limited("config rm", "the same, where nothing was set", who="mgr", name=BALANCER),
    CephGrant("mgr", "device set-life-expectancy", "show in `ceph device ls` how long a disk has"),
    CephGrant("mgr", "device rm-life-expectancy", "withdraw that"),
    CephGrant("mgr", "device light", "light the drawer of a drained disk", CapsPart.HAND_OVER),
    CephGrant(
        "mgr", "orch osd rm", "let the orchestrator replace or remove a drained OSD", CapsPart.HAND_OVER
    ),
)


def granted(user: User) -> tuple[CephGrant, ...]:
    """The commands that the user may send."""
    return tuple(each for each in GRANTS if each.part in _PARTS[user])


def rights(user: User = User.SERVICE, pool: str = "predrain") -> tuple[Right, ...]:
    """All that the user needs, with reasons. `allow r` of the mon lets it send `osd in` as well; Ceph is so."""
    see = "see the cluster: maps, PGs, statistics, settings"
    listed = [Right("mon", "allow r", see), Right("mgr", "allow r", see)]
    listed += [Right(each.to, each.text(), each.why) for each in granted(user)]
    if user is not User.HANDS:
        why = "the lease of the controller that acts, and a probe of what clients feel"
        listed.append(Right("osd", f"allow rwx pool={pool}", why))
    return tuple(listed)


def caps(user: User = User.SERVICE, pool: str = "predrain") -> Caps:
    """The same as caps."""
    listed = rights(user, pool)
    return Caps(
        *(", ".join(r.cap for r in listed if r.service == service) for service in ("mon", "mgr", "osd"))
    )


def hands() -> Caps:
    """The caps of the optional second user."""
    return caps(User.HANDS)
