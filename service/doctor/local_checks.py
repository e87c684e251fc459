"""Checks of this machine: state directory, free space, token, certificate, log, store, audit, memory, bundle, page."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from predrain.data.clock import Clock
from predrain.data.store.store_port import AuditChain, ChainBreak
from predrain.service.access import tokens
from predrain.service.config.settings import Settings
from predrain.service.config.state_directory import StateDir
from predrain.service.doctor.finding import Finding
from predrain.service.storage.audit_ends import Contradiction, NotedRestore

MIB = 1 << 20
BASE_BYTES = 640 * MIB
"""Page, controller and worker in one process, 6,000 disks, 200 readers and a flood of requests: 577 MB were
measured.
"""
BYTES_OF_A_DISK = 64 * 1024
"""13 kB that a worker remembers of a disk, and the disk's share of views, plans and answers; rounded up."""
STEP_BYTES = 128 * MIB
HEADROOM_BYTES = 512 * MIB
"""The distance from the limit at which the kernel slows the process down to the limit at which it kills it. The
distance covers request bodies in transit (32 MiB) times the memory factor of their readings, and a bundle that is
loaded beside the one that scores.
"""


@dataclass(frozen=True, slots=True)
class MemoryLimits:
    """`high_bytes`: the kernel reclaims pages above this limit. `max_bytes`: the kernel kills the process at this
    limit.
    """

    high_bytes: int
    max_bytes: int

    def drop_in(self) -> str:
        """Return the lines of a drop-in file for a systemd unit."""
        return f"[Service]\nMemoryHigh={self.high_bytes // MIB}M\nMemoryMax={self.max_bytes // MIB}M\n"


def memory_limits(disks: int) -> MemoryLimits:
    """Return the limits of one process that is responsible for `disks` disks."""
    wanted = BASE_BYTES + disks * BYTES_OF_A_DISK
    high = -(-wanted // STEP_BYTES) * STEP_BYTES
    return MemoryLimits(high, high + HEADROOM_BYTES)


LEAST_FREE_BYTES = 1024**3
_JOURNAL_LINES = 10_000
_MODELS_NAMED = 3
_MINUTE = "%Y-%m-%d %H:%M"
UNIT = "predrain.service"
UNIT_FOLDERS = (Path("/etc/systemd/system"), Path("/usr/lib/systemd/system"), Path("/lib/systemd/system"))
DROP_INS = Path("/etc/systemd/system") / f"{UNIT}.d"


def _check_state_directory(settings: Settings, _: Clock) -> Iterator[Finding]:
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


def _check_free_space(settings: Settings, _: Clock) -> Iterator[Finding]:
    path = settings.service.state
    while not path.exists():
        path = path.parent
    free = shutil.disk_usage(path).free
    told = f"{free / 2**30:.1f} GiB free on {path}"
    if free < LEAST_FREE_BYTES:
        yield Finding("room", "wrong", f"{told}; make room, below 1 GiB readings may soon be refused")
    else:
        yield Finding("room", "ok", told)


def _check_token_file(settings: Settings, _: Clock) -> Iterator[Finding]:
    path = StateDir(settings.service.state).token
    if not path.exists():
        yield Finding("token", "note", f"{path} does not exist; the first `predrain up` makes it")
        return
    tokens.read_token_file(path)
    yield Finding("token", "ok", f"{path}, for its owner only")


def _check_certificate(settings: Settings, clock: Clock) -> Iterator[Finding]:
    chain, key = settings.service.tls_certificate, settings.service.tls_key
    if chain is None or key is None:
        if (
            StateDir(settings.service.state).find_service_url() is None
        ):  # a running service was started with that intent
            from predrain.service.http.server import nothing_in_the_clear

            nothing_in_the_clear(settings.service)
        return
    from predrain.service.access.certificate import Certificate

    certificate = Certificate(chain, key)
    complaint = certificate.describe_expiry(clock.now())
    if complaint is None:
        yield Finding("certificate", "ok", f"{chain} is good until {certificate.ends_at:%Y-%m-%d}")
    else:
        yield Finding("certificate", "wrong" if certificate.ends_at <= clock.now() else "note", complaint)


def _check_log(settings: Settings, _: Clock) -> Iterator[Finding]:
    from predrain.service.storage.backends import standing_log
    from predrain.service.streams.dead_letters import list_dead_letters

    with standing_log(settings) as log:
        if log is None:
            yield Finding("log", "note", "no log yet")
            return
        count = len(list_dead_letters(log).letters)
    if count:
        yield Finding("log", "note", f"{count} dead letters; see predrain deadletter list")
    else:
        yield Finding("log", "ok", "opens, no dead letters")


def _check_store(settings: Settings, _: Clock) -> Iterator[Finding]:
    from predrain.service.storage.backends import place_of_store, standing_store
    from predrain.service.storage.page_check import check_pages

    place = place_of_store(settings, StateDir(settings.service.state))
    if isinstance(place, Path):
        check_pages(place)
    with standing_store(settings) as store:
        if store is None:
            yield Finding("store", "note", "no store yet")
            return
        halted, devices = store.halt_reason(), len(store.read_changes().readings)
        store.drains()
        store.journal(limit=_JOURNAL_LINES)
        damage = store.describe_damage()
    if damage is not None:
        yield Finding("store", "wrong", damage)
        return
    if (loss := _find_store_loss(settings)) is not None:
        yield Finding("store, log", "wrong", loss)
    if halted is not None:
        yield Finding("store", "note", f"{devices} devices; halted: {halted} (predrain unhalt lifts it)")
    else:
        yield Finding("store", "ok", f"{devices} devices, not halted")


def _find_store_loss(settings: Settings) -> str | None:
    """Return the reason why a start would refuse the store beside the present log, or None."""
    from predrain.service.storage.backends import standing_log, standing_store
    from predrain.service.storage.store_identity import find_loss, find_topics_of_services

    with standing_store(settings) as store, standing_log(settings) as log:
        if store is None or log is None:
            return None
        loss = find_loss(log, store, find_topics_of_services(settings.kafka.bootstrap_servers))
    if loss is None:
        return None
    return (
        f"the store {loss.why}, and the log beside it shows that a service has worked with another store, so that none"
        f" starts: put the right store in its place, or begin with an empty one by --accept-store {loss.id}"
    )


def _check_audit(settings: Settings, clock: Clock) -> Iterator[Finding]:
    from predrain.data.store.store_port import AUDIT
    from predrain.service.storage.audit_ends import find_contradiction, find_restores, read_noted_ends
    from predrain.service.storage.backends import standing_log, standing_store
    from predrain.service.storage.store_identity import read_identity

    with standing_store(settings) as store:
        if store is None:
            return
        found = store.verify_audit()
        yield _describe_chain(found)
        with standing_log(settings) as log:
            identity = read_identity(store)
            if log is None or identity is None:
                return
            noted = read_noted_ends(log, identity)
        hashes = store.find_audit_hashes({end.number for end in noted})
        restores = find_restores(store.journal(AUDIT))
    lost = [end for end in noted if end.number > found.ended or hashes.get(end.number, b"").hex() != end.hash]
    for one in restores:
        yield _describe_restore(one, sum(one.explains(end) for end in lost))
    if not noted:
        if found.lines:
            yield Finding("audit, noted", "note", "the log has noted no end of it yet")
        return
    dropped_before = clock.now() - timedelta(days=settings.retention.audit_days)
    wrong = find_contradiction(noted, found, hashes, dropped_before, restores)
    if wrong is None:
        last = noted[-1]
        explained = sum(any(one.explains(end) for one in restores) for end in noted)
        told = (
            f"agrees with the ends that the log has noted ({len(noted) - explained:,} ends, the last one of all on"
            f" {last.noted_at:{_MINUTE}} UTC, line {last.number})"
        )
        if explained:
            told += f", but for {explained:,} of before the restore"
        yield Finding("audit, noted", "ok", told)
        return
    end = wrong.end
    why = {
        Contradiction.CUT: f"ended with line {end.number} and has no such line any more",
        Contradiction.REWRITTEN: f"had line {end.number} with the hash {end.hash[:16]} and has it no more",
        Contradiction.DROPPED: f"had line {end.number}, which is gone though it is too young to be dropped",
    }[wrong.how]
    yield Finding(
        "audit, noted",
        "wrong",
        f"on {end.noted_at:{_MINUTE}} UTC the log noted that the audit {why}: the store was changed by hand, or an"
        " older copy of the store was put in its place; compare the audit with a backup's, and change tokens",
    )


def _describe_restore(restore: NotedRestore, lost: int) -> Finding:
    """Return a finding that the store was restored, with the time, the person and the backup."""
    vouched = f"signed by key {restore.signed_by}" if restore.signed_by else "trusted without a key"
    told = (
        f"restored on {restore.at:{_MINUTE}} UTC by {restore.by} from the backup of {restore.made_at:{_MINUTE}} UTC"
        f" ({vouched})"
    )
    if lost:
        told += (
            f"; lines of the audit that were written between the two are not in it ({lost:,} ends of it were noted by"
            " the log); if no restore was made, the store was changed by hand"
        )
    return Finding("store, restored", "note", told)


def _describe_chain(found: AuditChain) -> Finding:
    """Return a finding whether the audit's hash chain is intact."""
    if found.broken is ChainBreak.CHANGED:
        why = f"line {found.broken_at} was changed, or lines before it were removed or put in"
    elif found.broken is ChainBreak.END:
        why = f"lines after line {found.broken_at} were removed"
    elif found.broken is ChainBreak.UNKNOWN:
        why = "the note of its first and last line was removed"
    else:
        held = f", {found.adopted:,} of them from before it was a chain" if found.adopted else ""
        told = f"{found.lines:,} lines, whole{held}; the last has the hash {found.head.hex()[:16]}"
        return Finding("audit", "ok", told)
    told = f"{why}: the store was changed by hand; compare the audit with a backup's, and change tokens"
    return Finding("audit", "wrong", told)


def _check_memory_limits(settings: Settings, _: Clock) -> Iterator[Finding]:
    """Check whether this machine's systemd unit bounds the service's memory, by the number of disks."""
    from predrain.service.storage.backends import standing_store

    unit = next((one for one in UNIT_FOLDERS if (one / UNIT).exists()), None)
    if unit is None:
        return
    with standing_store(settings) as store:
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


def _check_bundle(settings: Settings, _: Clock) -> Iterator[Finding]:
    from predrain.models.deploy.bundle_store import TRIED, BundleStore
    from predrain.models.deploy.bundle_trial import BundleTrials
    from predrain.models.forecast.bundle import Bundle

    bundle_store = BundleStore(StateDir(settings.service.state).bundles)
    roles = bundle_store.roles()
    promoted = "" if roles.champion is None else ", promoted here"
    if roles.champion is None:
        BundleTrials(bundle_store.path / TRIED).check(settings.forecast.bundle)
    bundle = Bundle.load(
        settings.forecast.bundle if roles.champion is None else bundle_store.verify_folder(roles.champion)
    )
    if roles.challenger is not None:
        promoted += f"; {Bundle.load(bundle_store.verify_folder(roles.challenger)).name} is on trial"
    yield Finding("bundle", "ok", f"{bundle.name}, its checksums hold{promoted}")


def _check_page_build(_settings: Settings, _: Clock) -> Iterator[Finding]:
    from predrain.service.rest.page_files import DIST

    if (DIST / "index.html").is_file():
        yield Finding("page", "ok", "built")
    else:
        yield Finding("page", "note", "not built; run make setup in the checkout")


def _base_rates(settings: Settings, _: Clock) -> Iterator[Finding]:
    """Check whether the shipped counts of failures contain the models of the hard disks here."""
    from predrain.data.reading import Smart
    from predrain.models.forecast.drive_family import load_public_counts, normalize_model
    from predrain.service.storage.backends import standing_store

    with standing_store(settings) as store:
        seen = [one.seen for one in store.latest_readings().values()] if store is not None else []
    identities = [one.identity for one in seen if isinstance(one, Smart)]
    models = Counter(normalize_model(one.model or "") for one in identities if one.rotation_rpm)
    if not models:
        return
    public = load_public_counts()
    known_until = f"the public counts of failures, which end on {public.until},"
    foreign = Counter({name: count for name, count in models.items() if name not in public.models})
    if not foreign:
        yield Finding("base rates", "ok", f"{known_until} hold every model of the hard disks here")
        return
    most = ", ".join(f"{name or 'no name'}: {count:,}" for name, count in foreign.most_common(_MODELS_NAMED))
    yield Finding(
        "base rates",
        "note",
        f"{known_until} lack the models of {foreign.total():,} of {models.total():,} hard disks ({most}): the chances"
        " of their quiet disks are typical of the maker, and may be several times too high or too low until this fleet"
        " has counted its own",
    )


LOOKS = (
    ("state", _check_state_directory),
    ("room", _check_free_space),
    ("token", _check_token_file),
    ("certificate", _check_certificate),
    ("log", _check_log),
    ("store", _check_store),
    ("audit", _check_audit),
    ("memory", _check_memory_limits),
    ("bundle", _check_bundle),
    ("base rates", _base_rates),
    ("page", _check_page_build),
)
