"""Attacks on a backup: a person who has the file plants a token in it, with forged checksums and signatures."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import sqlite3
import tarfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from predrain.data.clock import SystemClock
from predrain.data.refusal import Refusal
from predrain.data.store.sqlite_store import SqliteStore
from predrain.service.access.credentials import CredentialBook, CredentialKind
from predrain.service.access.tokens import Scope
from predrain.service.backup.backup_signature import signature_of, signing_key
from predrain.service.config.state_directory import StateDir
from tests.attack.outcome import FINISHED, AttackOutcome

STORE = "state/store.sqlite"


def plant_a_token(backup: Path, folder: Path, restore: Callable[[Path], None]) -> AttackOutcome:
    """Put a token that may do everything into `backup`, in each way of forging its signature, and restore it.

    folder: an empty one, for the forged files. restore: takes a file back as a person with the right key does.
    """
    outcome = AttackOutcome("a token that is planted in a backup")
    for number, forged in enumerate(_forged(_members(backup), folder)):
        file = folder / f"forged-{number}.tar.gz"
        file.write_bytes(forged)
        try:
            restore(file)
        except Refusal:
            outcome.count(refused=True)
        else:
            outcome.count(refused=False)
    FINISHED.append(outcome)
    return outcome


def _forged(members: dict[str, bytes], folder: Path) -> Iterator[bytes]:
    signature = members["manifest.sig"]
    planted = _with_token(members, folder)
    theirs = signing_key(StateDir(folder))
    yield _packed(planted)  # the manifest is another one, the signature is the old one
    yield _packed({**members, STORE: planted[STORE]})  # the manifest is the old one
    yield _packed({name: content for name, content in planted.items() if name != "manifest.sig"})
    older = json.loads(planted["manifest.json"]) | {"format": 1}
    yield _packed(
        {"manifest.json": json.dumps(older).encode()}
        | {name: content for name, content in planted.items() if name.startswith("state/")}
    )
    yield _packed({**planted, "manifest.sig": signature_of(planted["manifest.json"], theirs)})
    yield _packed({**planted, "manifest.sig": b""})
    head, payload, _ = signature.split(b".")
    yield _packed({**planted, "manifest.sig": b".".join((head, payload, b""))})
    none = b"eyJhbGciOiJub25lIn0"
    yield _packed({**planted, "manifest.sig": b".".join((none, payload, b""))})


def _with_token(members: dict[str, bytes], folder: Path) -> dict[str, bytes]:
    path = folder / "planted.sqlite"
    path.write_bytes(members[STORE])
    store = SqliteStore(path)
    CredentialBook(store, SystemClock()).issue_credential(
        CredentialKind.TOKEN, "mallory", [Scope.ADMIN], "mallory"
    )
    store.close()
    with closing(sqlite3.connect(path)) as file:
        file.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    content = path.read_bytes()
    manifest: dict[str, Any] = json.loads(members["manifest.json"])
    for one in manifest["files"]:
        if f"state/{one['name']}" == STORE:
            one |= {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    return {**members, "manifest.json": json.dumps(manifest).encode(), STORE: content}


def _members(backup: Path) -> dict[str, bytes]:
    with tarfile.open(backup) as archive:
        return {
            one.name: content.read()
            for one in archive.getmembers()
            if (content := archive.extractfile(one)) is not None
        }


def _packed(members: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return gzip.compress(out.getvalue(), 1)
