"""The texts that one mgr keeps for the next, in config-keys `mgr/predrain/NAME`, signed with `hand_key`.

Who may write there may be somebody else than who has the key, so a text that the key has not signed is not believed.
Without a key nothing can be verified: then a text is taken as shown by a stranger, and nothing is done by it.
"""

from __future__ import annotations

from dataclasses import dataclass

from .cluster import MgrApi
from .signing import KEY_MIN, NotVerified, SignatureFault, sign_text, strip_signature, verify_text

PREFIX = "mgr/predrain/"
NO_KEY = "hand_key is not set: what a mgr keeps for the next one is neither signed nor verified"
WHY = {
    SignatureFault.UNSIGNED: (
        "carries no signature: somebody wrote it, or a module without signatures, or one without hand_key"
    ),
    SignatureFault.OTHER_KEY: "is signed with another hand_key",
    SignatureFault.WRONG: "carries a wrong signature: somebody changed it",
}


@dataclass(frozen=True)
class KeptText:
    """`text`: None where there is none that may be used. `doubt`: why it is not verified; "" where it is."""

    text: str | None
    doubt: str = ""


def read_kept(mgr: MgrApi, name: str, key: str) -> KeptText:
    """What an earlier mgr kept under `name`. Without a key an unsigned text is given out with its doubt."""
    value = mgr.get_store(name)
    if not value:
        return KeptText(None)
    if len(key) < KEY_MIN:
        if strip_signature(value) == value:
            return KeptText(value, NO_KEY)
        return KeptText(
            None, f"config-key {PREFIX}{name} is signed, and hand_key is not set; it is not believed"
        )
    try:
        return KeptText(verify_text(key, PREFIX + name, value))
    except NotVerified as refused:
        return KeptText(None, f"config-key {PREFIX}{name} {WHY[refused.fault]}; it is not believed")


def write_kept(mgr: MgrApi, name: str, key: str, text: str) -> None:
    """Keep `text` for the next mgr, signed where there is a key; "" forgets it."""
    if text and len(key) >= KEY_MIN:
        text = sign_text(key, PREFIX + name, text)
    mgr.set_store(name, text or None)


def read_key(mgr: MgrApi) -> str:
    """The key that the service has too; "" where there is none."""
    return (mgr.get_store("hand_key") or "").strip()
