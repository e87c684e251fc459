"""A step that the service requests of the mgr executor: one absolute target value, signed with a key that both
hold.

The signature is HMAC-SHA256 over the step's text as it is sent: its id, drain, revision, epoch, expiry, and the
value that the map held when the step was decided. Key and value have the form of the record of sent values
(`osd.3/reweight`: `1.0`).
"""

from __future__ import annotations

import hashlib
import hmac
import json
from dataclasses import asdict, dataclass

from .json_fields import Fields, InvalidField
from .text_signing import KEY_MIN

EXPIRY_MAX_SECONDS = 60.0
TEXT_MAX = 8192


class UnsignedStep(Exception):
    """A text with a wrong signature, or one that is not a step."""


@dataclass(frozen=True)
class RequestedStep:
    """One step. `epoch`: of the map on which it was decided. `expects`: the value that this map held under `key`,
    or that an earlier step of predrain has written since; None: not given.
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
        """Return whether the step clears a flag that an earlier step set. This is allowed under a halt too, because
        the cluster does not recover while such a flag is set.
        """
        return self.key.startswith("flag/") and self.value == "off"


def text_of(step: RequestedStep) -> str:
    """Return the text that is sent and signed."""
    return json.dumps(asdict(step), sort_keys=True, separators=(",", ":"))


def sign_step(key: str, text: str) -> str:
    """Return the signature of the text in hex digits."""
    return hmac.new(key.encode(), text.encode(), hashlib.sha256).hexdigest()


def parse_signed_step(key: str, text: str, given: str) -> RequestedStep:
    """Return the step if its signature `given` is right. Raises UnsignedStep."""
    if len(key) < KEY_MIN:
        raise UnsignedStep("there is no key for steps: ceph config-key set mgr/predrain/executor_key -i FILE")
    if len(text) > TEXT_MAX or not hmac.compare_digest(sign_step(key, text), given):
        raise UnsignedStep("its signature is not of our key")
    try:
        row = Fields(json.loads(text), "the step")
        return RequestedStep(
            id=row.exact_text("id", 64),
            drain=row.exact_text("drain", 200),
            revision=row.whole_number("revision", 0, 1 << 40),
            epoch=row.whole_number("epoch", 1, 1 << 40),
            expires_at=row.number("expires_at", 0, 1e11),
            key=row.exact_text("key", 200),
            value=row.exact_text("value", 2000),
            expects=row.exact_text("expects", 2000) if json.loads(text).get("expects") is not None else None,
        )
    except (ValueError, RecursionError, InvalidField) as error:
        raise UnsignedStep(f"it is no step: {error}") from error
