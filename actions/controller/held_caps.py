"""Find out which of the required rights a cephx user really has. Ceph shows a user's own caps to administrators only.

So each command is sent in a form that a cluster can only refuse: for a PG, an OSD or a device that cannot exist, with
a value that is no number, or with a text that no key accepts. Without the right the answer is EACCES; with it, another
error. Commands without such a form (flags, the balancer, `config rm`) are not sent: `predrain ceph auth` grants them
together with the others.
"""

from __future__ import annotations

import errno
from collections.abc import Mapping
from dataclasses import dataclass

from predrain.actions.cluster.channel import Argument, CommandChannel
from predrain.actions.cluster.config_key_store import PREFIX
from predrain.actions.cluster.signed_keys import HALT
from predrain.actions.controller.ceph_caps import (
    CephGrant,
    CephUser,
    RequiredCap,
    list_grants,
    list_required_rights,
)

_NO_OSD, _NO_PG, _NOTHING = 2**31 - 2, f"{2**31 - 2}.0", "doctor"
"""The last one is the end of a key below any prefix that is granted."""
_TOO_LONG = b" " * (64 * 1024 + 1)
_FORMS: Mapping[str, Mapping[str, Argument]] = {
    "config-key get": {},
    "config-key exists": {},
    "config-key dump": {},
    "config-key rm": {},
    "config-key set": {},
    "orch upgrade status": {},
    "osd pg-upmap-items": {"pgid": _NO_PG, "id": [0, 1]},
    "osd rm-pg-upmap-items": {"pgid": _NO_PG},
    "osd pg-temp": {"pgid": _NO_PG, "id": []},
    "osd reweight": {"id": _NO_OSD, "weight": 1.0},
    "osd crush reweight": {"name": f"osd.{_NO_OSD}", "weight": 1.0},
    "osd primary-affinity": {"id": _NO_OSD, "weight": 1.0},
    "config set": {"value": "no number"},
    "device rm-life-expectancy": {"devid": "predrain-doctor"},
}
_REAL = ((("key", "=", f"{PREFIX}{HALT}"),),)
"""Limits for which no form exists that can only be refused: a test must not set a halt."""
_DENIED = (-errno.EACCES, -errno.EPERM)


@dataclass(frozen=True, slots=True)
class HeldCaps:
    """The rights of a user. `missing`: those that were refused. `asked`: number of rights tested. `wide`: the key may
    read other users' keys.
    """

    missing: tuple[RequiredCap, ...]
    asked: int
    wide: bool


def probe_held_caps(channel: CommandChannel, name: str, user: CephUser, pool: str) -> HeldCaps:
    """Test which of the rights that `user` needs the cephx user `name` of `channel` has, without changing anything.
    Raises ClusterUnreachable.
    """
    sendable = [grant for grant in list_grants(user) if grant.prefix in _FORMS and grant.limits not in _REAL]
    missing = [
        RequiredCap(one.to, one.text(), one.why) for one in sendable if _is_grant_refused(channel, one)
    ]
    lock = list_required_rights(user, pool)[-1]
    if channel.unlock(pool, "doctor", "doctor").rc in _DENIED:
        missing.append(lock)
    wide = channel.ask("mon", "auth get", {"entity": name, "format": "json"}).ok
    return HeldCaps(tuple(missing), len(sendable) + 1, wide)


def _is_grant_refused(channel: CommandChannel, grant: CephGrant) -> bool:
    limits = {key: value if how == "=" else f"{value}{_NOTHING}" for key, how, value in grant.limits}
    given = _TOO_LONG if grant.prefix == "config-key set" else b""
    reply = channel.ask(grant.to, grant.prefix, {**_FORMS[grant.prefix], **limits}, given=given)
    return reply.rc in _DENIED
