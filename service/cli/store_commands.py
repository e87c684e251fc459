"""`predrain store migrate|status|export`: straight on the store, with the service up or down."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from predrain.data.refusal import Refusal
from predrain.service.cli.audited_commands import record_local_act
from predrain.service.cli.shared_options import HERE, AsJson, ServiceAddress, print_json
from predrain.service.config.state_directory import StateDir

Url = Annotated[
    str | None,
    Parameter(help="PostgreSQL database, `postgresql://USER@HOST:PORT/DATABASE`; else that of the settings."),
]


class NoStore(Refusal):
    """The state directory holds no store."""


def migrate_store_command(
    *,
    url: Url = None,
    to: Annotated[
        int | None, Parameter(help="Version to go to, also an older one, for an older predrain.")
    ] = None,
    where: ServiceAddress = HERE,
) -> int:
    """Bring the store to this predrain's format, or make a new one in an empty database.

    Example: predrain store migrate --url postgresql://predrain@db/predrain
    """
    from predrain.data.store import store_schema

    wanted = store_schema.VERSION if to is None else to
    if not 1 <= wanted <= store_schema.VERSION:
        raise NoStore(
            f"there is no version {wanted} of the store; give --to one from 1 to {store_schema.VERSION}"
        )
    place = _locate_store(where, url)
    if isinstance(place, Path):
        from predrain.data.store.sqlite_store import migrated_file

        # A running service would write today's rows into an older format.
        with StateDir(place.parent).for_its_owner().hold_lock():
            before, after = migrated_file(place, wanted)
    else:
        from predrain.data.store.postgres_store import migrate_postgres_store

        before, after = migrate_postgres_store(place, wanted)
    if before != after == store_schema.VERSION:
        from contextlib import closing

        from predrain.data.store.store_opening import open_store

        with closing(open_store(place)) as store:
            record_local_act(store, "store migrate", {"from": before, "to": after})
    held = f"was of version {before}" if before else "is new"
    print(
        f"the store {held} and is of version {after} now"
        if before != after
        else f"version {after}: nothing to do"
    )
    return 0


def show_store_command(*, url: Url = None, where: ServiceAddress = HERE, as_json: AsJson = False) -> int:
    """Print the content of the store, with the times of its oldest and newest rows.

    Example: predrain store status
    """
    from predrain.data.store import store_schema
    from predrain.data.store.sqlite_store import version_of_file
    from predrain.data.store.store_opening import open_store

    place = _locate_store(where, url)
    if isinstance(place, Path) and (version := version_of_file(place)) < store_schema.VERSION:
        if as_json:
            print_json({"version": version})
        else:
            print(
                f"version {version}, for an earlier predrain: `predrain store migrate`, or the next start of this one,"
                f" brings it to version {store_schema.VERSION}"
            )
        return 0
    store = open_store(place)
    try:
        days = store.compute_day_fingerprints()
        found = {
            "version": store_schema.VERSION,
            "devices": len(store.latest_readings()),
            "first_day": min(days).isoformat() if days else None,
            "last_day": max(days).isoformat() if days else None,
            "latencies": store.has_latency(),
            "drains": len(store.drains()),
            "outcomes": len(store.outcomes()),
        }
    finally:
        store.close()
    if as_json:
        print_json(found)
        return 0
    span = f"{found['first_day']} to {found['last_day']}" if days else "no readings yet"
    print(
        f"version {found['version']}: {found['devices']} devices, {span}, {found['drains']} drains,"
        f" {found['outcomes']} outcomes, {'some' if found['latencies'] else 'no'} latencies"
    )
    return 0


def export_history_command(
    *,
    out: Annotated[str, Parameter(help="Folder, as a path or as a URL that fsspec knows (`s3://..`).")],
    url: Url = None,
    where: ServiceAddress = HERE,
) -> int:
    """Write the history as parquet for training, up to yesterday; files that have everything are left alone.

    Example: predrain store export --out /srv/history && predrain train /srv/history/*/part.parquet --out bundle
    """
    from predrain.data.history.history_export import export_monthly_files as months
    from predrain.data.store.store_opening import open_store
    from predrain.features.drive_state import values_of

    yesterday = (datetime.now(UTC) - timedelta(days=1)).date()
    store = open_store(_locate_store(where, url))
    try:
        for month in months(store, out, values_of, through=yesterday):
            print(f"{month.path}: {'nothing new' if month.rows is None else f'{month.rows:,} rows'}")
    finally:
        store.close()
    return 0


def _locate_store(where: ServiceAddress, url: str | None) -> str | Path:
    """Return the database named by option or settings, else the state directory's file. Raises NoStore."""
    from predrain.service.storage.backends import place_of_store

    if url is not None:
        return url
    settings = where.settings()
    state = StateDir(settings.service.state)
    place = place_of_store(settings, state)
    if isinstance(place, Path) and not place.is_file():
        raise NoStore(f"{state.path} holds no store; say --state, --config or --url")
    return place
