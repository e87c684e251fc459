"""The signature of every text below `predrain/` in the cluster's config-key store, except the halt.

The form of a signed text, version 1, is one header line and the text itself:

    predrain-signed 1 KEY_ID SIGNATURE
    TEXT

SIGNATURE is HMAC-SHA256 in hex over the version, the name of the key, and the text, so that a value that is copied
to another name is refused. The key of the HMAC is derived from the key that controllers share. KEY_ID identifies
that key without revealing it, so that a text signed with another key is distinguished from a text that was
changed.

The service and the module in ceph-mgr share this one file, so it needs only the standard library of Python 3.9.
The module itself uses nothing below `predrain/` except the halt. Its own texts below `mgr/predrain/` have the same
form (kept_texts).
"""

from __future__ import annotations

import hashlib
import hmac
import re
from enum import Enum

KEY_MIN = 32
"""The fewest letters of a key that is accepted. 256 bits in base64 are more."""
HALT = "halt"
UNSIGNED_NAMES = frozenset({HALT})
"""Names below `predrain/` whose text is accepted without a signature. A halt is the safe direction, and any person
with access to the cluster may set one.
"""

_HEADER = re.compile(r"predrain-signed 1 ([0-9a-f]{8}) ([0-9a-f]{64})\n")
_DERIVE_KEY = b"predrain config-key signature 1"
_DERIVE_ID = b"predrain config-key key id 1"


class SignatureFault(Enum):
    """The reason why a text is not used."""

    UNSIGNED = "unsigned"
    """The text carries no signature: a person or version 0.1.0 wrote it."""
    OTHER_KEY = "other key"
    """The header names another key."""
    WRONG = "wrong signature"
    """The header names our key, but the signature does not match this text under this name."""


class NotVerified(Exception):
    """A text that is not used. `fault` is the reason; `key_id` is the key that its header names (empty without a
    header).
    """

    def __init__(self, fault: SignatureFault, key_id: str = "") -> None:
        self.fault, self.key_id = fault, key_id
        super().__init__(fault.value)


def get_key_id(key: str) -> str:
    """Return eight hex digits that identify `key` without revealing it."""
    return hmac.new(key.encode(), _DERIVE_ID, hashlib.sha256).hexdigest()[:8]


def sign_text(key: str, name: str, text: str) -> str:
    """Return `text` in the signed form for the key `predrain/NAME`."""
    return f"predrain-signed 1 {get_key_id(key)} {_compute_signature(key, name, text)}\n{text}"


def verify_text(key: str, name: str, value: str) -> str:
    """Return the text of the signed form `value` that was read from `predrain/NAME`. Raises NotVerified."""
    header = _HEADER.match(value)
    if header is None:
        raise NotVerified(SignatureFault.UNSIGNED)
    if header[1] != get_key_id(key):
        raise NotVerified(SignatureFault.OTHER_KEY, header[1])
    text = value[header.end() :]
    if not hmac.compare_digest(header[2], _compute_signature(key, name, text)):
        raise NotVerified(SignatureFault.WRONG, header[1])
    return text


def strip_signature(value: str) -> str:
    """Return the text of `value` without its header, unverified: it may be shown to a person, but never acted on."""
    header = _HEADER.match(value)
    return value if header is None else value[header.end() :]


def _compute_signature(key: str, name: str, text: str) -> str:
    derived = hmac.new(key.encode(), _DERIVE_KEY, hashlib.sha256).digest()
    said = name.encode()
    signed = b"predrain-signed 1\n%d %b\n%b" % (len(said), said, text.encode())
    return hmac.new(derived, signed, hashlib.sha256).hexdigest()
