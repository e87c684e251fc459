"""The signature of a backup, which proves its origin. It covers the manifest, which has the checksum of every file.

A backup is signed with a private key (Ed25519) that lies in the state directory and is in no backup. Its public half
checks the signature. The public key is no secret, but a person must not take it from the place of the backup.
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
from predrain.service.config.state_directory import StateDir

if TYPE_CHECKING:
    from joserfc.jwk import OKPKey

ALGORITHM: Final = "Ed25519"


class BackupKeyUnusable(Refusal):
    """The key that signs or checks backups is no such key, or other users can read it."""


class NotTrusted(Refusal):
    """No key vouches for the backup, and a person has not said to trust all of its contents."""


class BackupTrust(StrEnum):
    """The parts of a backup that are trusted after a restore.

    TOKENS: who may enter and do what. DRAINS: drains in progress, halts, silences, approvals. HISTORY: readings,
    outcomes, the audit. BUNDLES: the models that forecast. SETTINGS: the settings file at the time of the backup.
    """

    TOKENS = "tokens"
    DRAINS = "drains"
    HISTORY = "history"
    BUNDLES = "bundles"
    SETTINGS = "settings"


@dataclass(frozen=True, slots=True)
class BackupAuthority:
    """The reason to trust a backup: a public key, else the parts that a person said to trust."""

    key: Path | None = None
    trusted: frozenset[BackupTrust] = frozenset()

    def check(self, manifest: bytes, signature: bytes | None, names: Iterable[str]) -> str:
        """Return the id of the key that vouches for the backup, or "" if none does. names: the files that the backup
        holds.

        Raises UnusableBackup, NotTrusted, BackupKeyUnusable.
        """
        if self.key is not None:
            if signature is None:
                raise UnusableBackup(
                    "the backup has no signature: do not trust it, or say with --trust what you do trust"
                )
            return _verify_signature(manifest, signature, public_key(self.key))
        held = classify_contents(names)
        if missing := sorted(held - self.trusted):
            every = " ".join(f"--trust {one}" for one in sorted(held))
            raise NotTrusted(
                f"nobody vouches for the backup's {', '.join(missing)}: name the public key of the service that made it"
                f" (--key backup.pub), or, if you know the file, say what is trusted without proof: {every}"
            )
        return ""


def classify_contents(names: Iterable[str]) -> frozenset[BackupTrust]:
    """Return the parts of a backup that files of these names hold."""
    found = set[BackupTrust]()
    for name in names:
        if name == "store.sqlite":
            found |= {BackupTrust.TOKENS, BackupTrust.DRAINS, BackupTrust.HISTORY}
        elif name == SETTINGS:
            found.add(BackupTrust.SETTINGS)
        elif "/" in name:
            found.add(BackupTrust.BUNDLES)
        else:
            found.add(BackupTrust.HISTORY)
    return frozenset(found)


def signature_of(manifest: bytes, key: OKPKey) -> bytes:
    """Return the signature over a manifest: a JWS (RFC 7515) of its SHA-256."""
    from joserfc import jws

    header = {"alg": ALGORITHM, "kid": key.thumbprint()}
    return jws.serialize_compact(header, _compute_digest(manifest), key, algorithms=[ALGORITHM]).encode()


def signing_key(state: StateDir, file: Path | None = None) -> OKPKey:
    """Return the private key in `file`. Without a file return the state's own, which the first backup makes.

    Raises BackupKeyUnusable, OSError.
    """
    from joserfc.jwk import OKPKey

    path = file or state.path / PRIVATE_KEY
    if file is None and not path.exists():
        made = OKPKey.generate_key(ALGORITHM)
        _write_new_file(path, made.as_pem(private=True), 0o600)
    if path.stat().st_mode & 0o077:
        raise BackupKeyUnusable(f"{path} can be read by others; run chmod 600 {path}")
    key = _read_key_file(path)
    if not key.is_private:
        raise BackupKeyUnusable(f"{path} holds a public key; name the private one, which signs")
    public = path.with_name(PUBLIC_KEY)
    if file is None and not public.exists():
        _write_new_file(public, key.as_pem(private=False), 0o644)
    return key


def public_key(path: Path) -> OKPKey:
    """Return the key in `path` that checks signatures. Raises BackupKeyUnusable."""
    try:
        return _read_key_file(path)
    except OSError as error:
        raise BackupKeyUnusable(
            f"{path} cannot be read ({error}); give --key the service's backup.pub"
        ) from error


def _verify_signature(manifest: bytes, signature: bytes, key: OKPKey) -> str:
    from joserfc import jws
    from joserfc.errors import JoseError

    try:
        found = jws.deserialize_compact(signature, key, algorithms=[ALGORITHM])
    except (JoseError, ValueError) as error:
        raise UnusableBackup(
            f"the backup is not signed by the key that you named ({error}): do not trust it, or name another key"
        ) from error
    if found.payload != _compute_digest(manifest):
        raise UnusableBackup("the backup's signature is of another backup: do not trust it")
    return key.thumbprint()


def _read_key_file(path: Path) -> OKPKey:
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


def _write_new_file(path: Path, content: bytes, mode: int) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    with os.fdopen(handle, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _compute_digest(manifest: bytes) -> bytes:
    return hashlib.sha256(manifest).hexdigest().encode()
