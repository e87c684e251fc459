"""`predrain backup` and `predrain restore`."""

from __future__ import annotations

from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from service.cli.options import HERE, Where, tebibytes
from service.settings import SYSTEM_FILE, Settings
from service.state import StateDir


def backup(
    *,
    out: Annotated[Path, Parameter(help="File to write; it must not be there yet.")],
    where: Where = HERE,
) -> int:
    """Write log, store, drains, bundles and settings into one file, while the service runs.

    Secrets are left out: the token file, and passwords in the settings. What lies in Kafka or PostgreSQL is not in it,
    and told.

    Example: predrain backup --out /srv/backup/predrain-$(date +%F).tar.gz
    """
    from service.backup.blanked import blanked
    from service.backup.taking import take

    settings = where.settings()
    elsewhere = _elsewhere(settings)
    written = where.config or (SYSTEM_FILE if SYSTEM_FILE.exists() else None)
    text = blanked(written.read_text(encoding="utf-8"), settings) if written else ""
    state = StateDir(settings.service.state)
    made = take(state, out, text, elsewhere, metadata.version("predrain"), datetime.now(UTC))
    print(f"{out}: {len(made.files)} files, {tebibytes(made.size)}, checksums in it")
    for one in elsewhere:
        print(f"not in it: {one}")
    return 0


def restore(
    file: Annotated[Path, Parameter(help="A backup.")],
    *,
    state: Annotated[Path, Parameter(help="State directory to make; missing or empty.")],
) -> int:
    """Make a state directory of a backup. Refuses one that holds anything, and a file that is not whole.

    Example: predrain restore predrain-2026-03-10.tar.gz --state /var/lib/predrain
    """
    from service.backup.restoring import restore as restored

    made = restored(file, StateDir(state))
    print(
        f"{state}: {len(made.files)} files, as of {made.made_at:%Y-%m-%d %H:%M} UTC, from predrain {made.predrain}"
    )
    print(f"the settings of then are in {state / 'settings.toml'}; the first start makes a new token file")
    for one in made.elsewhere:
        print(f"was not in it: {one}")
    return 0


def _elsewhere(settings: Settings) -> tuple[str, ...]:
    """What servers keep, and how it is kept safe there."""
    found = []
    if settings.kafka.bootstrap:
        found.append(
            f"the log, which is in Kafka ({', '.join(settings.kafka.bootstrap)}) and kept by its replicas"
        )
    if settings.store.url is not None:
        from service.backup.blanked import without_password

        name = without_password(settings.store.url.get_secret_value())
        found.append(
            f"the store, which is in PostgreSQL: pg_dump --format=custom --file=predrain.dump {name}"
        )
    return tuple(found)
