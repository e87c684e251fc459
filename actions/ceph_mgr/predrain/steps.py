"""A step that the service asks of the mgr's hand: one absolute target value, sealed with a key that both hold.

The seal is HMAC-SHA256 over the step's text as it is sent: what names it, drain, revision, epoch, expiry, and the value
that the map held when it was decided. Key and value are the ledger's (`osd.3/reweight`: `1.0`).
"""

from __future__ import annotations

import hashlib
import hmac
import json
from dataclasses import asdict, dataclass

from .reading import Fields, NotBelieved
from .signing import KEY_MIN

EXPIRY_MAX_SECONDS = 60.0
TEXT_MAX = 8192


class NotOurs(Exception):
    """A text whose seal is wrong, or that is no step."""


@dataclass(frozen=True)
class RequestedStep:
    """`epoch`: of the map on which it was decided. `expects`: what the map then held under `key`, or a step of ours
    has written there since; None: not said.
    """

    id: str
    drain: str
    revision: int
    epoch: int
    expires_at: float
    key: str
    value: str
    expects: str | None = None

    @property
    def gives_back(self) -> bool:
        """Whether it clears a flag that a step set: right under a halt too, for nothing heals while one stands."""
        return self.key.startswith("flag/") and self.value == "off"


def text_of(step: RequestedStep) -> str:
    """As it is sent and sealed."""
    return json.dumps(asdict(step), sort_keys=True, separators=(",", ":"))


def seal(key: str, text: str) -> str:
    """Hex digits of the seal."""
    return hmac.new(key.encode(), text.encode(), hashlib.sha256).hexdigest()


def opened(key: str, text: str, given: str) -> RequestedStep:
    """The step, if its seal is right. Raises NotOurs."""
    if len(key) < KEY_MIN:
        raise NotOurs("there is no key for steps: ceph config-key set mgr/predrain/hand_key -i FILE")
    if len(text) > TEXT_MAX or not hmac.compare_digest(seal(key, text), given):
        raise NotOurs("its seal is not of our key")
    try:
        row = Fields(json.loads(text), "the step")
        return RequestedStep(
            id=row.exact("id", 64),
            drain=row.exact("drain", 200),
            revision=row.whole("revision", 0, 1 << 40),
            epoch=row.whole("epoch", 1, 1 << 40),
            expires_at=row.number("expires_at", 0, 1e11),
            key=row.exact("key", 200),
            value=row.exact("value", 2000),
            expects=row.exact("expects", 2000) if json.loads(text).get("expects") is not None else None,
        )
    except (ValueError, RecursionError, NotBelieved) as error:
        raise NotOurs(f"it is no step: {error}") from error
