"""Who made a backup: a signature over its manifest, which has the checksum of every file in the backup.

A backup is signed with a private key (Ed25519) that lies in the state directory and is in no backup. Its public half
checks the signature; it is no secret, but who checks must have it from elsewhere than from beside the backup.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Final

from predrain.data.refusal import Refusal
from predrain.service.backup.manifest import PRIVATE_KEY, PUBLIC_KEY, SETTINGS, UnusableBackup
from predrain.service.state_directory import StateDir

if TYPE_CHECKING:
    from joserfc.jwk import OKPKey

ALGORITHM: Final = "Ed25519"


class BackupKeyUnusable(Refusal):
    """The key that backups are signed with, or checked with, is none or can be read by others."""


class NotTrusted(Refusal):
    """Nobody vouches for the backup, and not all of what it brings was said to be trusted."""


class Trust(StrEnum):
    """What a backup brings that is believed from then on.

    TOKENS: who may enter and do what. DRAINS: what is under way, halts, silences, what was approved. HISTORY: readings,
    outcomes, the audit. BUNDLES: what forecasts. SETTINGS: the settings file of then.
    """

    TOKENS = "tokens"
    DRAINS = "drains"
    HISTORY = "history"
    BUNDLES = "bundles"
    SETTINGS = "settings"


@dataclass(frozen=True, slots=True)
class Authority:
    """By what a backup is believed: a public key, else what a person said to trust."""

    key: Path | None = None
    trusted: frozenset[Trust] = frozenset()

    def check(self, manifest: bytes, signature: bytes | None, names: Iterable[str]) -> str:
        """Who vouches for the backup: the id of the key, or nobody (empty). names: of the files that the backup holds.

        Raises Unusable, NotTrusted, SigningKeyUnusable.
        """
        if self.key is not None:
            if signature is None:
                raise UnusableBackup(
                    "the backup has no signature: do not trust it, or say with --trust what you do trust"
                )
            return _checked(manifest, signature, public_key(self.key))
        held = classify_contents(names)
        if missing := sorted(held - self.trusted):
            every = " ".join(f"--trust {one}" for one in sorted(held))
            raise NotTrusted(
                f"nobody vouches for the backup's {', '.join(missing)}: name the public key of the service that made it"
                f" (--key backup.pub), or, if you know the file, say what is trusted without proof: {every}"
            )
        return ""


def classify_contents(names: Iterable[str]) -> frozenset[Trust]:
    """What files of these names bring."""
    found = set[Trust]()
    for name in names:
        if name == "store.sqlite":
            found |= {Trust.TOKENS, Trust.DRAINS, Trust.HISTORY}
        elif name == SETTINGS:
            found.add(Trust.SETTINGS)
        elif "/" in name:
            found.add(Trust.BUNDLES)
        else:
            found.add(Trust.HISTORY)
    return frozenset(found)


def signature_of(manifest: bytes, key: OKPKey) -> bytes:
    """The signature over a manifest: a JWS (RFC 7515) of its SHA-256."""
    from joserfc import jws

    header = {"alg": ALGORITHM, "kid": key.thumbprint()}
    return jws.serialize_compact(header, _digest(manifest), key, algorithms=[ALGORITHM]).encode()


def signing_key(state: StateDir, file: Path | None = None) -> OKPKey:
    """The private key in `file`; without one the state's own, which the first backup makes. Raises SigningKeyUnusable,
    OSError."""
    from joserfc.jwk import OKPKey

    path = file or state.path / PRIVATE_KEY
    if file is None and not path.exists():
        made = OKPKey.generate_key(ALGORITHM)
        _write(path, made.as_pem(private=True), 0o600)
    if path.stat().st_mode & 0o077:
        raise BackupKeyUnusable(f"{path} can be read by others; run chmod 600 {path}")
    key = _read(path)
    if not key.is_private:
        raise BackupKeyUnusable(f"{path} holds a public key; name the private one, which signs")
    public = path.with_name(PUBLIC_KEY)
    if file is None and not public.exists():
        _write(public, key.as_pem(private=False), 0o644)
    return key


def public_key(path: Path) -> OKPKey:
    """The key in `path` that checks signatures. Raises SigningKeyUnusable."""
    try:
        return _read(path)
    except OSError as error:
        raise BackupKeyUnusable(
            f"{path} cannot be read ({error}); give --key the service's backup.pub"
        ) from error


def _checked(manifest: bytes, signature: bytes, key: OKPKey) -> str:
    from joserfc import jws
    from joserfc.errors import JoseError

    try:
        found = jws.deserialize_compact(signature, key, algorithms=[ALGORITHM])
    except (JoseError, ValueError) as error:
        raise UnusableBackup(
            f"the backup is not signed by the key that you named ({error}): do not trust it, or name another key"
        ) from error
    if found.payload != _digest(manifest):
        raise UnusableBackup("the backup's signature is of another backup: do not trust it")
    return key.thumbprint()


def _read(path: Path) -> OKPKey:
    from joserfc.errors import JoseError
    from joserfc.jwk import OKPKey

    try:
        key = OKPKey.import_key(path.read_bytes())
    except (JoseError, ValueError, TypeError) as error:
        raise BackupKeyUnusable(f"{path} holds no Ed25519 key in PEM ({error}); name one") from error
    if key.curve_name != ALGORITHM:
        raise BackupKeyUnusable(
            f"{path} holds a key of {key.curve_name}, and backups are signed with Ed25519"
        )
    return key


def _write(path: Path, content: bytes, mode: int) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    with os.fdopen(handle, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _digest(manifest: bytes) -> bytes:
    return hashlib.sha256(manifest).hexdigest().encode()
