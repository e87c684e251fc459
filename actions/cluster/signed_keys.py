"""`SignedKeys`: the cluster's texts below `predrain/`, each signed when it is written and verified when it is read.

Every text that predrain trusts from the cluster's config-key store is read here: stored drains, `ended`, `steps`,
`lives`, requests, the record of received requests, and answers. A text with no signature or a wrong one is not
returned and is not overwritten or removed. The exception names the key, the fault, and the remedy.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field

from predrain.actions.ceph_mgr.predrain.text_signing import (
    HALT,
    UNSIGNED_NAMES,
    NotVerified,
    SignatureFault,
    get_key_id,
    sign_text,
    strip_signature,
    verify_text,
)
from predrain.actions.cluster.cluster_port import ClusterUnreachable, ConfigKeyStore, DamagedConfigKey
from predrain.data.refusal import Refusal

__all__ = [
    "ADOPT",
    "ANSWERS",
    "HALT",
    "NO_KEY",
    "REQUESTS",
    "ConfirmedTextsChanged",
    "NoSigningKey",
    "SignedKeys",
    "Unverified",
    "UnverifiedText",
    "compute_digest",
]

ADOPT = "predrain ceph adopt"
REQUESTS, ANSWERS = "requests/", "answers/"
NO_KEY = (
    "This process has no key to sign with, so it may plan and nothing more; give it the controllers' key file by "
    "--signing-key FILE or `signing_key` of [ceph]"
)


class Unverified(ClusterUnreachable):
    """A text in the cluster without a valid signature. Nothing that depends on it is done before a person has checked
    it.
    """

    def __init__(self, name: str, fault: SignatureFault, sentence: str) -> None:
        self.name, self.fault = name, fault
        super().__init__(sentence)


class NoSigningKey(ClusterUnreachable):
    """This process has no signing key, so it may plan and do nothing else."""


class ConfirmedTextsChanged(Refusal):
    """The texts in the cluster are no longer those that a person confirmed."""


@dataclass(frozen=True, slots=True)
class UnverifiedText:
    """One text without a valid signature, as it is shown to a person: `text` is without its header."""

    name: str
    fault: SignatureFault
    text: str
    sentence: str

    @property
    def is_adoptable(self) -> bool:
        """Return whether a person may have it signed. Requests and answers are not adoptable, since they can be sent
        again.
        """
        return not self.name.startswith((REQUESTS, ANSWERS))


@dataclass(frozen=True, slots=True)
class SignedKeys:
    """A `ConfigKeyStore` over another one. `key`: None if this process may read the halt and nothing else.

    Each method raises what the other store raises, Unverified and NoSigningKey.
    """

    keep: ConfigKeyStore
    key: str | None = field(repr=False)

    def read(self, name: str) -> str | None:
        """Return the verified text, or None if there is none."""
        value = self.keep.read(name)
        return value if value is None or name in UNSIGNED_NAMES else self._verify(name, value)

    def names(self, under: str = "") -> tuple[str, ...]:
        """Return all names that begin with `under`, also those of unverified texts."""
        return self.keep.names(under)

    def write(self, name: str, text: str) -> None:
        """Replace the text, unless the present one is unverified."""
        if name in UNSIGNED_NAMES:
            self.keep.write(name, text)
            return
        key = self._get_key()
        self._respect(name)
        self.keep.write(name, sign_text(key, name, text))

    def remove(self, name: str) -> None:
        """Remove the text, unless it is unverified."""
        if name not in UNSIGNED_NAMES:
            self._respect(name)
        self.keep.remove(name)

    def find_unverified(self) -> tuple[UnverifiedText, ...]:
        """Return all unverified texts by name, without texts whose pieces are damaged."""
        found: list[UnverifiedText] = []
        for name in self.keep.names():
            if name in UNSIGNED_NAMES:
                continue
            try:
                value = self.keep.read(name)
            except DamagedConfigKey:
                continue
            try:
                if value is not None:
                    self._verify(name, value)
            except Unverified as fault:
                assert value is not None
                found.append(UnverifiedText(name, fault.fault, strip_signature(value), str(fault)))
        return tuple(found)

    def adopt(self, digest: str) -> tuple[str, ...]:
        """Sign each adoptable text if `digest` is still that of the list. Return the names of the texts.

        Raises ConfirmedTextsChanged; nothing was signed then.
        """
        key = self._get_key()
        listed = tuple(one for one in self.find_unverified() if one.is_adoptable)
        if compute_digest(listed) != digest:
            raise ConfirmedTextsChanged(
                f"Nothing was signed, since the list is no longer the one that was shown; look again: {ADOPT}"
            )
        for one in listed:
            self.keep.write(one.name, sign_text(key, one.name, one.text))
        return tuple(one.name for one in listed)

    def _respect(self, name: str) -> None:
        """Check that no unverified text is stored under the name, since a person must see it first. Raises
        Unverified.
        """
        try:
            self.read(name)
        except DamagedConfigKey:
            return

    def _verify(self, name: str, value: str) -> str:
        key = self._get_key()
        try:
            return verify_text(key, name, value)
        except NotVerified as fault:
            raise Unverified(name, fault.fault, _explain_unverified(name, fault, key)) from None

    def _get_key(self) -> str:
        if self.key is None:
            raise NoSigningKey(NO_KEY)
        return self.key


def compute_digest(texts: Iterable[UnverifiedText]) -> str:
    """Return sixteen hex digits that identify exactly these texts under these names."""
    made = hashlib.sha256()
    for one in texts:
        for part in (one.name, one.fault.value, one.text):
            said = part.encode()
            made.update(b"%d " % len(said) + said)
    return made.hexdigest()[:16]


def _explain_unverified(name: str, fault: NotVerified, key: str) -> str:
    """Explain in a sentence why the text is not verified, and the remedy."""
    said = f"The text predrain/{name} in the cluster"
    if fault.fault is SignatureFault.OTHER_KEY:
        said += (
            f" is signed with another key ({fault.key_id}) than this one's ({get_key_id(key)}): give all controllers "
            "the same file as `signing_key` of [ceph]; where the other key is lost,"
        )
    elif fault.fault is SignatureFault.WRONG:
        said += " carries a wrong signature: it was changed, or copied from another key;"
    else:
        said += (
            " carries no signature: it was written by hand, or by a predrain that did not sign its texts yet;"
        )
    if name.startswith((REQUESTS, ANSWERS)):
        return (
            f"{said} it is not carried out; look at it (`ceph config-key get predrain/{name}`), then remove it "
            f"(`ceph config-key rm predrain/{name}`)"
        )
    return (
        f"{said} see `{ADOPT}`, which lists such texts and signs them when a person confirms the list, or remove it "
        f"(`ceph config-key rm predrain/{name}`)"
    )
