"""`predrain store migrate|rollback|status|export`: straight on the store, with the service up or down."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from predrain.data.refusal import Refusal
from predrain.service.cli.audited_commands import record_local_act
from predrain.service.cli.shared_options import (
    THIS_MACHINE,
    AsJson,
    StateAddress,
    escape_to_one_line,
    print_json,
)
from predrain.service.config.state_directory import StateDir
from predrain.service.runtime import logging_setup
from predrain.service.terminal.person import name_account

if TYPE_CHECKING:
    from predrain.data.drain import JournalEntry
    from predrain.data.store.sqlite_rollback import CountedRows
    from predrain.service.backup.store_rollback import StoreRollback

MOST_SHOWN = 20
"""Acts and drains that are printed for people."""
_MINUTE = "%Y-%m-%d %H:%M"

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
    backed_up: Annotated[
        bool,
        Parameter(negative="", help="A dump of the PostgreSQL database as it is now was made (`pg_dump`)."),
    ] = False,
    where: StateAddress = THIS_MACHINE,
) -> int:
    """Bring the store to this predrain's format, or make a new one in an empty database.

    A file is copied beside itself first, and the log on stderr names the space that this takes. predrain does not copy
    a database: there --backed-up says that a dump was made, without which a store with tables is left as it is.

    Example: predrain store migrate --url postgresql://predrain@db/predrain
    """
    from predrain.data.store import store_schema

    wanted = store_schema.VERSION if to is None else to
    if not 1 <= wanted <= store_schema.VERSION:
        raise NoStore(
            f"there is no version {wanted} of the store; give --to one from 1 to {store_schema.VERSION}"
        )
    place = _locate_store(where, url)
    logging_setup.configure_logging()  # the change logs its space and its progress
    if isinstance(place, Path):
        from predrain.data.store.sqlite_store import migrated_file

        # A running service would write today's rows into an older format.
        with StateDir(place.parent).for_its_owner().hold_lock():
            before, after = migrated_file(place, wanted)
    else:
        from predrain.data.store.postgres_store import migrate_postgres_store

        before, after = migrate_postgres_store(place, wanted, backed_up=backed_up)
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


def rollback_store_command(
    *,
    list_id: Annotated[
        str,
        Parameter(help="The list meant, as this command prints it; refused where it is another one by now."),
    ] = "",
    to: Annotated[
        int | None, Parameter(help="Version of the copy; the newest one below the store's if not said.")
    ] = None,
    where: StateAddress = THIS_MACHINE,
    as_json: AsJson = False,
) -> int:
    """List what happened since the upgrade copied the store; with --list-id put that copy in the store's place.

    The service must be stopped for that, and no drain may be under way. The newer store stays beside it under the name
    of its version. `predrain store migrate --to VERSION` goes back and keeps what happened.

    Example: predrain store rollback
    """
    from predrain.data.clock import SystemClock
    from predrain.service.backup.store_rollback import CannotGoBack, carry_out_rollback, find_rollback

    place = _locate_store(where, None)
    if not isinstance(place, Path):
        raise CannotGoBack(
            "the store is in PostgreSQL, of which predrain makes no copy: bring back the dump of before the upgrade"
            " (`pg_restore --clean`), or keep what happened since (`predrain store migrate --to VERSION --backed-up`)"
        )
    state = StateDir(place.parent).for_its_owner()
    if not list_id:
        found = find_rollback(place, to)
        _print_rollback(found, None, as_json=as_json)
        found.require_rest()
        if not as_json:
            print(f"to go back: stop the service, and predrain store rollback --list-id {found.list_id}")
        return 0
    with state.hold_lock():
        found = find_rollback(place, to)
        aside = carry_out_rollback(found, list_id, by=f"cli:{name_account()}", clock=SystemClock())
    _print_rollback(found, aside, as_json=as_json)
    if not as_json:
        print(f"the store is of version {found.to} now, for the predrain of before; {aside} is the newer one")
    return 0


def show_store_command(
    *, url: Url = None, where: StateAddress = THIS_MACHINE, as_json: AsJson = False
) -> int:
    """Print the content of the store, with the times of its oldest and newest rows.

    Example: predrain store status
    """
    from predrain.data.store import store_schema
    from predrain.data.store.sqlite_store import version_of_file
    from predrain.data.store.store_opening import open_store

    place = _locate_store(where, url)
    if isinstance(place, Path) and (version := version_of_file(place)) < store_schema.VERSION:
        from predrain.data.store.sqlite_upgrade import compute_upgrade_space

        space = compute_upgrade_space(place, version, store_schema.VERSION)
        if as_json:
            print_json({"version": version, "upgrade_bytes": space.needed, "free_bytes": space.free})
        else:
            print(
                f"version {version}, for an earlier predrain: `predrain store migrate`, or the next start of this one,"
                f" brings it to version {store_schema.VERSION}, which takes {space.describe()}"
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
    where: StateAddress = THIS_MACHINE,
) -> int:
    """Write the history as parquet for training, up to yesterday; files that have everything are left alone.

    Example: predrain store export --out /srv/history && predrain train /srv/history/*/part.parquet --out bundle
    """
    from predrain.data.history.history_export import export_monthly_files as months
    from predrain.data.store.store_opening import open_store
    from predrain.features.drive_state import values_of
    from predrain.service.storage.backends import require_present_version

    yesterday = (datetime.now(UTC) - timedelta(days=1)).date()
    place = _locate_store(where, url)
    require_present_version(place)
    store = open_store(place)
    try:
        for month in months(store, out, values_of, through=yesterday):
            print(f"{month.path}: {'nothing new' if month.rows is None else f'{month.rows:,} rows'}")
    finally:
        store.close()
    return 0


def _locate_store(where: StateAddress, url: str | None) -> str | Path:
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


def _print_rollback(found: StoreRollback, aside: Path | None, *, as_json: bool) -> None:
    """Print what going back loses, or has lost. aside: the name of the newer file, once it is done."""
    since, acts = found.since, found.acts
    if as_json:
        drains = [
            {
                "drain": one.now.id,
                "osds": list(one.now.osds),
                "before": one.before.state.value if one.before is not None else None,
                "now": one.now.state.value,
                "updated_at": one.now.updated_at.isoformat(),
            }
            for one in since.drains
        ]
        told = [
            {
                "at": line.at.isoformat(),
                "caller": line.caller,
                "request": line.decided,
                "result": line.answered,
            }
            for line in acts
        ]
        print_json(
            {
                "version": found.held,
                "to": found.to,
                "copy": str(found.copy),
                "made_at": found.made_at.isoformat(),
                "list_id": found.list_id,
                "kept_as": str(aside) if aside is not None else None,
                "readings": _count_for_programs(since.readings),
                "outcomes": _count_for_programs(since.outcomes),
                "drains": drains,
                "audit": len(since.audit),
                "acts": told,
                "halt": since.halt,
                "under_way": [drain.id for drain in found.under_way],
                "begun_again": [drain.id for drain in found.begun_again],
            }
        )
        return
    print(
        f"from version {found.held} to {found.copy} of {found.made_at:{_MINUTE}} UTC; since then, and not in it:"
    )
    print(
        f"  readings: {_count_for_people(since.readings)}, with their outlooks and what else came from hosts"
    )
    print(f"  outcomes: {_count_for_people(since.outcomes)}")
    newest = max((one.now.updated_at for one in since.drains), default=None)
    print(f"  drains that are new or changed: {_count_with_time(len(since.drains), newest)}")
    for one in since.drains[-MOST_SHOWN:]:
        before = one.before.state.value if one.before is not None else "not there"
        osds = ", ".join(f"osd.{osd}" for osd in one.now.osds)
        print(escape_to_one_line(f"    {one.now.id} of {osds}: was {before}, is {one.now.state.value}"))
    print(f"  lines of the audit: {_count_with_time(len(since.audit), _find_newest(since.audit))}")
    print(f"  acts of people and programs: {_count_with_time(len(acts), _find_newest(acts))}")
    for line in acts[-MOST_SHOWN:]:
        print(
            escape_to_one_line(
                f"    {line.at:{_MINUTE}} UTC  {line.caller}  {line.decided}  -> {line.answered}"
            )
        )
    if since.halt is not None:
        print(escape_to_one_line(f"  the halt stays: {since.halt}"))


def _find_newest(lines: tuple[JournalEntry, ...]) -> datetime | None:
    return max((line.at for line in lines), default=None)


def _count_for_programs(rows: CountedRows) -> dict[str, Any]:
    return {"count": rows.count, "newest": rows.newest.isoformat() if rows.newest is not None else None}


def _count_for_people(rows: CountedRows) -> str:
    return _count_with_time(rows.count, rows.newest)


def _count_with_time(count: int, newest: datetime | None) -> str:
    return f"{count:,}" if newest is None else f"{count:,}, the newest of {newest:{_MINUTE}} UTC"
