"""`predrain data import`: months of history on day one, from what others kept."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import timedelta, tzinfo
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec
from cyclopts import Parameter
from rich.markup import escape

from predrain.actions.cluster.channel import DaemonReply
from predrain.data.ids import DeviceId, HostName
from predrain.data.importing import ImportPart, files_below
from predrain.data.refusal import Refusal
from predrain.service.cli.cluster_connection import ClusterAddress, make_cluster_channel
from predrain.service.cli.shared_options import THIS_MACHINE, AsJson, StateAddress, print_json

if TYPE_CHECKING:
    from predrain.service.streams.history_import import ImportProgress, ImportResult

UNKNOWN_HOST = "unknown"


class NoSuchZone(Refusal):
    """`--timezone` names none."""


class NoDeviceList(Refusal):
    """The cluster does not list its devices."""


class _Location(msgspec.Struct):
    host: str


class _Device(msgspec.Struct):
    """One device in the answer of `ceph device ls`."""

    devid: str
    location: list[_Location] = []


@Parameter(name="*")
@dataclass(frozen=True)
class ImportOptions:
    """The options that all imports have in common."""

    host: Annotated[str, Parameter(help="Host of the disks, where the source does not name it.")] = (
        UNKNOWN_HOST
    )
    dry_run: Annotated[bool, Parameter(negative="", help="Judge all, keep nothing.")] = False
    json: AsJson = False


PLAIN = ImportOptions()
Asking = Callable[[str, str, dict[str, "str | int | float | bool | list[str] | list[int]"]], DaemonReply]
TimeZone = Annotated[
    str | None, Parameter(name="--timezone", help="Zone of times that name none, such as Europe/Berlin.")
]


def import_backblaze_command(
    *paths: Path, where: StateAddress = THIS_MACHINE, how: ImportOptions = PLAIN
) -> int:
    """Take in daily tables such as Backblaze's (CSV or parquet): rows become readings, `failure` = 1 an outcome.

    Example: predrain data import backblaze data_Q1_2024/ --host dc1

    Parameters
    ----------
    paths
        Files, or folders with .csv and .parquet files.
    """
    from predrain.data.importing.backblaze_import import list_backblaze_import_parts

    if not paths:
        return _report_missing_paths()
    files = files_below(paths, (".csv", ".parquet", ".pq"))
    return _import_parts("backblaze", list_backblaze_import_parts(files, HostName(how.host)), how, where)


def smartctl_json(
    *paths: Path, timezone: TimeZone = None, where: StateAddress = THIS_MACHINE, how: ImportOptions = PLAIN
) -> int:
    """Take in outputs of `smartctl -x --json`: one a file, one a line, one after the other, or a list.

    Example: predrain data import smartctl-json /var/backups/smart/ --host osd7

    Parameters
    ----------
    paths
        Files, or folders with .json, .jsonl and .ndjson files.
    """
    from predrain.data.importing.smartctl_import import JSON_ENDINGS, list_smartctl_import_parts

    if not paths:
        return _report_missing_paths()
    files = files_below(paths, JSON_ENDINGS)
    return _import_parts(
        "smartctl",
        list_smartctl_import_parts(files, HostName(how.host), _parse_time_zone(timezone)),
        how,
        where,
    )


def smartctl_text(
    *paths: Path, timezone: TimeZone = None, where: StateAddress = THIS_MACHINE, how: ImportOptions = PLAIN
) -> int:
    """Take in what `smartctl -x` or `-a` printed as text, one output or several to a file.

    Example: predrain data import smartctl-text smart-2023*.txt --host osd7 --timezone Europe/Berlin

    Parameters
    ----------
    paths
        Files, or folders with .txt, .log, .out, .smart and .smartctl files.
    """
    from predrain.data.importing.smartctl_import import TEXT_ENDINGS, list_smartctl_import_parts

    if not paths:
        return _report_missing_paths()
    files = files_below(paths, TEXT_ENDINGS)
    return _import_parts(
        "smartctl",
        list_smartctl_import_parts(files, HostName(how.host), _parse_time_zone(timezone)),
        how,
        where,
    )


def ceph_health_metrics(
    *paths: Path,
    device: Annotated[str | None, Parameter(help="Ceph's id of the device, where the file lacks it.")] = None,
    reach: ClusterAddress | None = None,
    how: ImportOptions = PLAIN,
) -> int:
    """Take in the history that Ceph's devicehealth keeps: from the cluster, or from files where some are named.

    Files hold what `ceph device get-health-metrics DEVID` prints. Scrapes that failed are counted, not kept: they do
    not tell a dying disk from a host without smartctl.

    Example: predrain data import ceph-health-metrics  # from the cluster

    Parameters
    ----------
    paths
        Files, or folders with .json files; none: the cluster itself.
    """
    from predrain.data.importing.ceph_import import ENDINGS, list_ceph_import_parts

    there = reach or ClusterAddress()
    if paths:
        named = DeviceId(device) if device else None
        found: Iterable[ImportPart] = list_ceph_import_parts(
            files_below(paths, ENDINGS), HostName(how.host), named
        )
        return _import_parts("ceph", found, how, there)
    with ExitStack() as closing:
        channel = make_cluster_channel(there)
        closing.callback(channel.close)
        return _import_parts("ceph", _of_cluster(channel.ask, how.host, device), how, there)


def import_sql_command(
    *,
    url: Annotated[str, Parameter(help="SQLAlchemy address of the database.")],
    query: Annotated[str, Parameter(help="What to read; SELECT only.")],
    columns: Annotated[str, Parameter(help="name=column,.. of the query's columns.")],
    timezone: TimeZone = None,
    where: StateAddress = THIS_MACHINE,
    how: ImportOptions = PLAIN,
) -> int:
    """Take in the rows of a query over any database: read only, streamed, duplicates ignored.

    Example: predrain data import sql --url sqlite:///smart.db --query "SELECT * FROM daily"
    --columns "model=model,serial=sn,taken_at=ts,smart_5_raw=r5,smart_197_raw=r197" --timezone UTC
    """
    from predrain.data.importing.sql_import import build_query_import_part, parse_column_mapping

    one = build_query_import_part(
        url, query, parse_column_mapping(columns), HostName(how.host), _parse_time_zone(timezone)
    )
    return _import_parts("sql", [one], how, where)


def _of_cluster(ask: Asking, host: str, device: str | None) -> Iterator[ImportPart]:
    """Yield an import part for each device that the cluster knows. Raises NoDeviceList."""
    from predrain.data.importing.ceph_import import part_of

    reply = ask("mgr", "device ls", {"format": "json"})
    if not reply.ok:
        raise NoDeviceList(
            f"the cluster does not list its devices ({reply.err or reply.rc}); see `predrain ceph auth`"
        )
    for known in msgspec.json.decode(reply.out, type=list[_Device]):
        if device is None or known.devid == device:
            at = HostName(known.location[0].host if known.location else host)
            yield part_of(DeviceId(known.devid), at, partial(_read_health_metrics, ask, known.devid))


def _read_health_metrics(ask: Asking, devid: str) -> bytes:
    reply = ask("mgr", "device get-health-metrics", {"devid": devid, "format": "json"})
    if not reply.ok:
        raise NoDeviceList(
            f"the cluster does not tell the metrics of {devid} ({reply.err or reply.rc}); import again"
        )
    return reply.out


def _import_parts(kind: str, parts: Iterable[ImportPart], how: ImportOptions, where: StateAddress) -> int:
    from predrain.data.clock import SystemClock
    from predrain.service.streams.history_import import Importer

    settings, clock, scored = where.settings(), SystemClock(), 0
    kept = timedelta(days=settings.retention.history_days)
    with ExitStack() as closing:
        watch = closing.enter_context(_show_import_progress(quiet=how.json))
        if how.dry_run:
            done = Importer(kind, clock, None, kept).run(parts, watch)
        else:
            from predrain.service.config.state_directory import StateDir
            from predrain.service.processes.state_opening import open_storage
            from predrain.service.storage.record_sender import RecordSender

            state = closing.enter_context(StateDir(settings.service.state))
            log, store = closing.enter_context(open_storage(settings, state, clock, "import", marks=False))
            importer = Importer(kind, clock, store, kept)
            done = importer.run(parts, watch)
            scored = importer.hand_over(log, RecordSender("import", clock))
    _report_import(done, scored, how, settings.retention.history_days)
    return 3 if done.total.refused or done.broken else 0


def _report_import(done: ImportResult, scored: int, how: ImportOptions, kept_days: float) -> None:
    total = done.total
    if how.json:
        counts = {"readings": total.new, "known": total.known, "outcomes": total.outcomes}
        counts |= {
            "failed_scrapes": total.failed_scrapes,
            "refused": total.refused,
            "outdated": total.outdated,
        }
        counts |= {"parts": done.parts, "parts_before": done.before, "to_be_scored": scored}
        print_json({**counts, "reasons": total.reasons, "broken": list(done.broken), "dry_run": how.dry_run})
        return
    for sentence in (*total.told, *done.broken):
        print(sentence, file=sys.stderr)
    if total.refused > len(total.told):
        for why, count in sorted(total.reasons.items(), key=lambda pair: -pair[1])[:10]:
            print(f"{count:,} times: {why}", file=sys.stderr)
    would = "would be taken in" if how.dry_run else "taken in"
    said = [f"{total.new:,} readings {would}"]
    said += [f"{count:,} {what}" for count, what in (
        (total.known, "were there already"), (total.outcomes, "drives' ends"),
        (total.failed_scrapes, "scrapes of Ceph's had failed and hold nothing"), (total.refused, "refused"),
        (done.before, f"of {done.parts:,} parts were read to the end before"),
        (scored, "devices are scored by the service, or when it starts")) if count]  # fmt: skip
    print(", ".join(said))
    if total.outdated:
        print(
            f"{total.outdated:,} are older than the {kept_days:g} days that history is kept and are dropped within"
            " a day of service: raise history_days of [retention] first"
        )


@contextmanager
def _show_import_progress(*, quiet: bool) -> Iterator[Callable[[ImportProgress], None]]:
    """Show a line with progress and rate on a terminal; show nothing without a terminal."""
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield lambda _: None
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("reading", total=None)

        def watch(seen: ImportProgress) -> None:
            rate = seen.total.read / max(progress.tasks[task].elapsed or 0, 0.1)
            said = f"{seen.total.read:,} read, {seen.total.refused:,} refused, {rate:,.0f}/s, {Path(seen.part).name}"
            progress.update(task, description=escape(said))

        yield watch


def _parse_time_zone(name: str | None) -> tzinfo | None:
    try:
        return ZoneInfo(name) if name else None
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise NoSuchZone(f"there is no time zone {name}; name one such as Europe/Berlin or UTC") from None


def _report_missing_paths() -> int:
    print("predrain: name at least one file or folder (see --help)", file=sys.stderr)
    return 2
