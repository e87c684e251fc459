"""Texts that one mgr stores for the next, in the config-keys `mgr/predrain/NAME`, signed with `executor_key`.

A person with write access to these keys may not have `executor_key`, so a text without a valid signature is not used.
Without a key nothing can be verified: a text is then shown as unverified, and the module does not act on it.
"""

from __future__ import annotations

from dataclasses import dataclass

from .mgr_commands import MgrApi
from .text_signing import KEY_MIN, NotVerified, SignatureFault, sign_text, strip_signature, verify_text

PREFIX = "mgr/predrain/"
NO_KEY = (
    "executor_key is not set: the texts that a mgr keeps for the next one are neither signed nor verified"
)
FAULT_TEXTS = {
    SignatureFault.UNSIGNED: (
        "carries no signature: it was written by hand, by a module without signatures, or by one without executor_key"
    ),
    SignatureFault.OTHER_KEY: "is signed with another executor_key",
    SignatureFault.WRONG: "carries a wrong signature: it was changed",
}


@dataclass(frozen=True)
class KeptText:
    """A stored text. `text`: None if there is none that may be used. `doubt`: why it is not verified; "" if it is."""

    text: str | None
    doubt: str = ""


def read_kept(mgr: MgrApi, name: str, key: str) -> KeptText:
    """Read the text that an earlier mgr stored as `name`. Without a key, return an unsigned text together with its
    doubt.
    """
    value = mgr.get_store(name)
    if not value:
        return KeptText(None)
    if len(key) < KEY_MIN:
        if strip_signature(value) == value:
            return KeptText(value, NO_KEY)
        return KeptText(
            None, f"config-key {PREFIX}{name} is signed, and executor_key is not set; it is not believed"
        )
    try:
        return KeptText(verify_text(key, PREFIX + name, value))
    except NotVerified as refused:
        return KeptText(None, f"config-key {PREFIX}{name} {FAULT_TEXTS[refused.fault]}; it is not believed")


def write_kept(mgr: MgrApi, name: str, key: str, text: str) -> None:
    """Store `text` for the next mgr, signed if there is a key. An empty text removes the entry."""
    if text and len(key) >= KEY_MIN:
        text = sign_text(key, PREFIX + name, text)
    mgr.set_store(name, text or None)


def read_key(mgr: MgrApi) -> str:
    """Return the key that the module shares with the service, or "" if there is none."""
    return (mgr.get_store("executor_key") or "").strip()
