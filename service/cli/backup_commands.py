"""`predrain backup` and `predrain restore`."""

from __future__ import annotations

from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from predrain.service.backup.manifest import PUBLIC_KEY
from predrain.service.cli.shared_options import THIS_MACHINE, StateAddress, format_binary_size
from predrain.service.config.state_directory import StateDir
from predrain.service.terminal.person import name_account

if TYPE_CHECKING:
    from predrain.service.config.settings import Settings


def backup_state_command(
    *,
    out: Annotated[Path, Parameter(help="File to write; it must not be there yet.")],
    key: Annotated[
        Path | None,
        Parameter(
            help="File of the private key that signs it; `backup.key` of the state directory if not said."
        ),
    ] = None,
    where: StateAddress = THIS_MACHINE,
) -> int:
    """Write log, store, drains, bundles and settings into one file, while the service runs.

    Secrets are left out: the token file, the key that signs, and passwords in the settings. Data in Kafka or
    PostgreSQL are not in it, and the command says so.

    Example: predrain backup --out /srv/backup/predrain-$(date +%F).tar.gz
    """
    from predrain.service.backup.backup import take_backup
    from predrain.service.backup.newest_backup import remember_backup
    from predrain.service.backup.secret_blanking import blank_secrets
    from predrain.service.config.settings import SYSTEM_FILE

    settings = where.settings()
    elsewhere = _list_external_storage(settings)
    written = where.config or (SYSTEM_FILE if SYSTEM_FILE.exists() else None)
    text = blank_secrets(written.read_text(encoding="utf-8"), settings) if written else ""
    state = StateDir(settings.service.state)
    made = take_backup(state, out, text, elsewhere, metadata.version("predrain"), datetime.now(UTC), key)
    remember_backup(state, out)
    print(f"{out}: {len(made.files)} files, {format_binary_size(made.size)}, checksums in it, signed")
    if key is None:
        print(
            f"a restore asks for {state.path / PUBLIC_KEY}: keep a copy of it elsewhere than with the backup"
        )
    for one in elsewhere:
        print(f"not in it: {one}")
    return 0


def restore_state_command(
    file: Annotated[Path, Parameter(help="A backup.")],
    *,
    state: Annotated[Path, Parameter(help="State directory to make; missing or empty.")],
    key: Annotated[
        Path | None, Parameter(help="Public key (`backup.pub`) of the service that made the backup.")
    ] = None,
    trust: Annotated[
        tuple[Literal["tokens", "drains", "history", "bundles", "settings"], ...],
        Parameter(negative="", help="Without a key: what of the backup is believed without proof."),
    ] = (),
) -> int:
    """Make a state directory of a backup. Refuses a directory that holds anything, a file that is not whole, and a
    backup that is not signed by the key.

    Example: predrain restore predrain-2026-03-10.tar.gz --state /var/lib/predrain --key backup.pub
    """
    from predrain.data.clock import SystemClock
    from predrain.service.backup.backup_signature import BackupAuthority, BackupTrust
    from predrain.service.backup.restore import restore_backup as restored

    authority = BackupAuthority(key, frozenset(BackupTrust(one) for one in trust))
    made = restored(file, StateDir(state), authority, by=f"cli:{name_account()}", clock=SystemClock())
    print(
        f"{state}: {len(made.files)} files, as of {made.made_at:%Y-%m-%d %H:%M} UTC, from predrain {made.predrain}"
    )
    print(f"the settings of then are in {state / 'settings.toml'}; the first start makes a new token file")
    for one in made.elsewhere:
        print(f"was not in it: {one}")
    return 0


def _list_external_storage(settings: Settings) -> tuple[str, ...]:
    """Return sentences about the data on servers, and how each is kept safe there."""
    found = []
    if settings.kafka.bootstrap_servers:
        found.append(
            f"the log, which is in Kafka ({', '.join(settings.kafka.bootstrap_servers)}) and kept by its replicas"
        )
    if settings.store.url is not None:
        from predrain.service.backup.secret_blanking import without_password

        name = without_password(settings.store.url.get_secret_value())
        found.append(
            f"the store, which is in PostgreSQL: pg_dump --format=custom --file=predrain.dump {name}"
        )
    return tuple(found)
