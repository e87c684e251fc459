"""Which of the rights that it needs a cephx user really holds. Ceph tells a user's own caps to administrators only.

So each command is sent in a form that a cluster can only refuse: for a PG, an OSD or a device that cannot be there,
with a value that is no number, with a text that no key takes. Without the right the answer is EACCES; with it, it is
another one. Commands that have no such form (flags, the balancer, `config rm`) are not sent: `predrain ceph auth`
gives them together with the others.
"""

from __future__ import annotations

import errno
from collections.abc import Mapping
from dataclasses import dataclass

from predrain.actions.cluster.channel import Argument, CommandChannel
from predrain.actions.cluster.config_key_store import PREFIX
from predrain.actions.cluster.signed_keys import HALT
from predrain.actions.controller.ceph_caps import CephGrant, Right, User, granted, rights

_NO_OSD, _NO_PG, _NOTHING = 2**31 - 2, f"{2**31 - 2}.0", "doctor"
"""The last is the end of a key below any prefix that is granted."""
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
"""Limits that leave no form which can only be refused: nobody asks to halt in order to see whether he may."""
_DENIED = (-errno.EACCES, -errno.EPERM)


@dataclass(frozen=True, slots=True)
class HeldCaps:
    """`missing`: rights that were refused. `asked`: of how many. `wide`: the key may read other users' keys."""

    missing: tuple[Right, ...]
    asked: int
    wide: bool


def held(channel: CommandChannel, name: str, user: User, pool: str) -> HeldCaps:
    """What the user `name` of `channel` may do, of what `user` needs. Changes nothing. Raises ClusterUnreachable."""
    sendable = [grant for grant in granted(user) if grant.prefix in _FORMS and grant.limits not in _REAL]
    missing = [Right(one.to, one.text(), one.why) for one in sendable if _refused(channel, one)]
    lock = rights(user, pool)[-1]
    if channel.unlock(pool, "doctor", "doctor").rc in _DENIED:
        missing.append(lock)
    wide = channel.ask("mon", "auth get", {"entity": name, "format": "json"}).ok
    return HeldCaps(tuple(missing), len(sendable) + 1, wide)


def _refused(channel: CommandChannel, grant: CephGrant) -> bool:
    limits = {key: value if how == "=" else f"{value}{_NOTHING}" for key, how, value in grant.limits}
    given = _TOO_LONG if grant.prefix == "config-key set" else b""
    reply = channel.ask(grant.to, grant.prefix, {**_FORMS[grant.prefix], **limits}, given=given)
    return reply.rc in _DENIED
