"""What is on this machine: state directory, room, token, certificate, log, store, bundle, page."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from data.clock import Clock
from service import tokens
from service.examining.finding import Finding
from service.memory_limits import memory_limits
from service.settings import Settings
from service.state import StateDir

LEAST_FREE_BYTES = 1024**3
_JOURNAL_LINES = 10_000
UNIT = "predrain.service"
UNIT_FOLDERS = (Path("/etc/systemd/system"), Path("/usr/lib/systemd/system"), Path("/lib/systemd/system"))
DROP_INS = Path("/etc/systemd/system") / f"{UNIT}.d"


def _state(settings: Settings, _: Clock) -> Iterator[Finding]:
    path = settings.service.state
    if not path.exists():
        yield Finding("state", "note", f"{path} does not exist; the first `predrain up` makes it")
    elif not path.is_dir():
        yield Finding("state", "wrong", f"{path} is no directory; give --state or [service] one")
    elif path.stat().st_mode & 0o077:
        yield Finding("state", "wrong", f"{path} can be entered by others; run chmod 700 {path}")
    elif not os.access(path, os.W_OK | os.X_OK):
        yield Finding("state", "wrong", f"{path} cannot be written; run as its owner")
    else:
        yield Finding("state", "ok", str(path))


def _room(settings: Settings, _: Clock) -> Iterator[Finding]:
    path = settings.service.state
    while not path.exists():
        path = path.parent
    free = shutil.disk_usage(path).free
    told = f"{free / 2**30:.1f} GiB free on {path}"
    if free < LEAST_FREE_BYTES:
        yield Finding("room", "wrong", f"{told}; make room, below 1 GiB readings may soon be refused")
    else:
        yield Finding("room", "ok", told)


def _token(settings: Settings, _: Clock) -> Iterator[Finding]:
    path = StateDir(settings.service.state).token
    if not path.exists():
        yield Finding("token", "note", f"{path} does not exist; the first `predrain up` makes it")
        return
    tokens.read(path)
    yield Finding("token", "ok", f"{path}, for its owner only")


def _certificate(settings: Settings, clock: Clock) -> Iterator[Finding]:
    chain, key = settings.service.tls_certificate, settings.service.tls_key
    if chain is None or key is None:
        if StateDir(settings.service.state).answering() is None:  # who answers was told that this is meant
            from service.listening import nothing_in_the_clear

            nothing_in_the_clear(settings.service)
        return
    from service.access.certificate import Certificate

    certificate = Certificate(chain, key)
    complaint = certificate.complaint(clock.now())
    if complaint is None:
        yield Finding("certificate", "ok", f"{chain} is good until {certificate.ends_at:%Y-%m-%d}")
    else:
        yield Finding("certificate", "wrong" if certificate.ends_at <= clock.now() else "note", complaint)


def _log(settings: Settings, _: Clock) -> Iterator[Finding]:
    from service.adapters import standing_log
    from service.scoring.deadletters import standing

    with standing_log(settings) as log:
        if log is None:
            yield Finding("log", "note", "no log yet")
            return
        count = len(standing(log).letters)
    if count:
        yield Finding("log", "note", f"{count} dead letters; see predrain deadletter list")
    else:
        yield Finding("log", "ok", "opens, no dead letters")


def _store(settings: Settings, _: Clock) -> Iterator[Finding]:
    from service.adapters import place_of_store, untouched_store
    from service.storage.pages import check_pages

    place = place_of_store(settings, StateDir(settings.service.state))
    if isinstance(place, Path):
        check_pages(place)
    with untouched_store(settings) as store:
        if store is None:
            yield Finding("store", "note", "no store yet")
            return
        halted, devices = store.halt_reason(), len(store.news().readings)
        store.drains()
        store.journal(limit=_JOURNAL_LINES)
        damage = store.describe_damage()
    if damage is not None:
        yield Finding("store", "wrong", damage)
        return
    if halted is not None:
        yield Finding("store", "note", f"{devices} devices; halted: {halted} (predrain unhalt lifts it)")
    else:
        yield Finding("store", "ok", f"{devices} devices, not halted")


def _audit(settings: Settings, _: Clock) -> Iterator[Finding]:
    from data.store.port import ChainBreak
    from service.adapters import untouched_store

    with untouched_store(settings) as store:
        if store is None:
            return
        found = store.verify_audit()
    if found.broken is ChainBreak.CHANGED:
        why = f"line {found.broken_at} was changed, or lines before it were removed or put in"
    elif found.broken is ChainBreak.END:
        why = f"lines after line {found.broken_at} were removed"
    elif found.broken is ChainBreak.UNKNOWN:
        why = "what says where it begins and ends was removed"
    else:
        held = f", {found.adopted:,} of them from before it was a chain" if found.adopted else ""
        yield Finding(
            "audit",
            "ok",
            f"{found.lines:,} lines, whole{held}; the last has the hash {found.head.hex()[:16]}",
        )
        return
    yield Finding(
        "audit",
        "wrong",
        f"{why}: somebody wrote into the store; compare the audit with a backup's, and change tokens",
    )


def _memory(settings: Settings, _: Clock) -> Iterator[Finding]:
    """Whether the unit of this machine's service bounds its memory, by the number of disks."""
    from service.adapters import untouched_store

    unit = next((one for one in UNIT_FOLDERS if (one / UNIT).exists()), None)
    if unit is None:
        return
    with untouched_store(settings) as store:
        disks = len(store.latest_readings()) if store is not None else 0
    limits = memory_limits(disks)
    folder = DROP_INS
    written = "\n".join(one.read_text(errors="replace") for one in sorted(folder.glob("*.conf")))
    if "MemoryMax=" in written:
        yield Finding("memory", "ok", f"{folder} bounds the service's memory")
        return
    lines = limits.drop_in().replace("\n", "\\n")
    yield Finding(
        "memory",
        "note",
        f"nothing bounds the memory of {UNIT}; for {disks} disks: mkdir -p {folder} && printf '{lines}' > "
        f"{folder}/memory.conf && systemctl daemon-reload && systemctl restart {UNIT}",
    )


def _bundle(settings: Settings, _: Clock) -> Iterator[Finding]:
    from models.bundle import Bundle
    from models.shelf import TRIED, Shelf
    from models.trial import Trials

    shelf = Shelf(StateDir(settings.service.state).bundles)
    roles = shelf.roles()
    promoted = "" if roles.champion is None else ", promoted here"
    if roles.champion is None:
        Trials(shelf.path / TRIED).check(settings.forecast.bundle)
    bundle = Bundle.load(settings.forecast.bundle if roles.champion is None else shelf.folder(roles.champion))
    if roles.challenger is not None:
        promoted += f"; {Bundle.load(shelf.folder(roles.challenger)).name} is on trial"
    yield Finding("bundle", "ok", f"{bundle.name}, its checksums hold{promoted}")


def _page(_settings: Settings, _: Clock) -> Iterator[Finding]:
    from service.rest.page import DIST

    if (DIST / "index.html").is_file():
        yield Finding("page", "ok", "built")
    else:
        yield Finding("page", "note", "not built; run make setup in the checkout")


LOOKS = (
    ("state", _state),
    ("room", _room),
    ("token", _token),
    ("certificate", _certificate),
    ("log", _log),
    ("store", _store),
    ("audit", _audit),
    ("memory", _memory),
    ("bundle", _bundle),
    ("page", _page),
)
