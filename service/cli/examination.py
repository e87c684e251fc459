"""What `predrain doctor` looks at: each examination reads one thing and says what it found and the cure."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from data.refusal import Refusal
from service import tokens
from service.cli.client import Client
from service.settings import Settings
from service.state import StateDir

LEAST_FREE_BYTES = 1024**3


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report."""

    what: str
    state: Literal["ok", "note", "wrong"]
    told: str


def examine(settings: Settings, path: Path) -> Iterator[Finding]:
    """Every finding, in order. Nothing is changed and nothing is raised."""
    settings = settings.model_copy(update={"service": settings.service.model_copy(update={"state": path})})
    yield Finding("settings", "ok", "read without complaint")
    looks: tuple[tuple[str, Callable[[Settings], Finding]], ...] = (
        ("state", _state),
        ("room", _room),
        ("token", _token),
        ("log", _log),
        ("store", _store),
        ("bundle", _bundle),
        ("page", _page),
        ("service", _service),
    )
    for what, look in looks:
        try:
            yield look(settings)
        except (Refusal, OSError) as error:
            yield Finding(what, "wrong", str(error))


def _state(settings: Settings) -> Finding:
    path = settings.service.state
    if not path.exists():
        return Finding("state", "note", f"{path} does not exist; the first `predrain up` makes it")
    if path.stat().st_mode & 0o077:
        return Finding("state", "wrong", f"{path} can be entered by others; run chmod 700 {path}")
    if not os.access(path, os.W_OK | os.X_OK):
        return Finding("state", "wrong", f"{path} cannot be written; run as its owner")
    return Finding("state", "ok", str(path))


def _room(settings: Settings) -> Finding:
    path = settings.service.state
    while not path.exists():
        path = path.parent
    free = shutil.disk_usage(path).free
    told = f"{free / 2**30:.1f} GiB free on {path}"
    if free < LEAST_FREE_BYTES:
        return Finding("room", "wrong", f"{told}; make room, below 1 GiB readings may soon be refused")
    return Finding("room", "ok", told)


def _token(settings: Settings) -> Finding:
    path = StateDir(settings.service.state).token
    if not path.exists():
        return Finding("token", "note", f"{path} does not exist; the first `predrain up` makes it")
    tokens.read(path)
    return Finding("token", "ok", f"{path}, for its owner only")


def _log(settings: Settings) -> Finding:
    from data.log.sqlite import SqliteLog
    from service.scoring.deadletters import standing

    path = StateDir(settings.service.state).log
    if not path.exists():
        return Finding("log", "note", "no log yet")
    log = SqliteLog(path)
    try:
        letters = standing(log)
    finally:
        log.close()
    if letters:
        return Finding("log", "note", f"{len(letters)} dead letters; see predrain deadletter list")
    return Finding("log", "ok", "opens, no dead letters")


def _store(settings: Settings) -> Finding:
    from data.store.sqlite import SqliteStore

    path = StateDir(settings.service.state).store
    if not path.exists():
        return Finding("store", "note", "no store yet")
    store = SqliteStore(path)
    try:
        halted, devices = store.halt_reason(), len(store.latest_readings())
    finally:
        store.close()
    if halted is not None:
        return Finding("store", "note", f"{devices} devices; halted: {halted} (predrain unhalt lifts it)")
    return Finding("store", "ok", f"{devices} devices, not halted")


def _bundle(settings: Settings) -> Finding:
    from models.bundle import Bundle
    from models.shelf import Shelf

    shelf = Shelf(StateDir(settings.service.state).bundles)
    roles = shelf.roles()
    promoted = "" if roles.champion is None else ", promoted here"
    bundle = Bundle.load(settings.forecast.bundle if roles.champion is None else shelf.folder(roles.champion))
    if roles.challenger is not None:
        promoted += f"; {Bundle.load(shelf.folder(roles.challenger)).name} is on trial"
    return Finding("bundle", "ok", f"{bundle.name}, its checksums hold{promoted}")


def _page(_: Settings) -> Finding:
    from service.rest.page import DIST

    if (DIST / "index.html").is_file():
        return Finding("page", "ok", "built")
    return Finding("page", "note", "not built; run make setup in the checkout")


def _service(settings: Settings) -> Finding:
    from service.cli.client import NotRunning

    try:
        status = Client.of(settings).get("status")
    except NotRunning as none:
        return Finding("service", "note", str(none))
    readings = status["readings"]
    told = f"{status['controller']}; {readings['fresh']} of {readings['total']} disks were read in time"
    return Finding("service", "ok" if readings["fresh"] == readings["total"] else "note", told)
