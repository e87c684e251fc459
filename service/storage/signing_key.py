"""The key that signs the values in the cluster's config_key store: of the settings, else one that the first start
makes.

The key is in a file of its own beside the store, so that removing the store does not remove the key.
"""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from pathlib import Path

from predrain.actions.ceph_mgr.predrain.text_signing import KEY_MIN
from predrain.data.refusal import Refusal
from predrain.service.config.settings import CephTable
from predrain.service.config.state_directory import StateDir


class SigningKeyUnusable(Refusal):
    """The file of the key is missing, is readable by others, or holds no key."""


def find_signing_key(ceph: CephTable, state: StateDir) -> str | None:
    """Return the key of the settings, else the one that a service made in `state`; None if there is neither.

    Raises SigningKeyUnusable.
    """
    path = find_key_file(ceph, state)
    return None if path is None else read_signing_key(path)


def find_key_file(ceph: CephTable, state: StateDir) -> Path | None:
    """Return the file of the key: `signing_key`, else `executor_key` of [ceph], else the one in `state` if it
    exists.
    """
    if (named := ceph.signing_key or ceph.executor_key) is not None:
        return named
    return state.signing_key if state.signing_key.exists() else None


def find_or_make_signing_key(ceph: CephTable, state: StateDir) -> str:
    """Return the key like `find_signing_key`, but make one in `state`, readable for its owner only, if there is
    none.

    Raises SigningKeyUnusable.
    """
    found = find_signing_key(ceph, state)
    if found is not None:
        return found
    begun = state.signing_key.with_name(f".signing_key.{secrets.token_hex(8)}")
    handle = os.open(begun, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(handle, "w", encoding="ascii") as file:
        file.write(f"{secrets.token_urlsafe(32)}\n")
        file.flush()
        os.fsync(file.fileno())
    with suppress(FileExistsError):  # if two processes start at once, both use the key of the first
        os.link(begun, state.signing_key)
    begun.unlink()
    return read_signing_key(state.signing_key)


def read_signing_key(path: Path) -> str:
    """Return the key in `path`.

    Raises SigningKeyUnusable if users beside owner and group have access to the file, or if the group may write
    it.
    """
    try:
        mode = path.stat().st_mode
        key = path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not ASCII"
        raise SigningKeyUnusable(
            f"the signing key {path} cannot be read ({why}); copy the file of the service that leads to it"
        ) from error
    if mode & 0o027:
        raise SigningKeyUnusable(
            f"the signing key {path} can be read by other users, and each of them could forge drains; run "
            f"chmod 600 {path}"
        )
    if len(key) < KEY_MIN:
        raise SigningKeyUnusable(
            f"{path} holds no key of at least {KEY_MIN} letters; copy the file of the service that leads, or make one "
            "for all controllers: openssl rand -base64 32"
        )
    return key
