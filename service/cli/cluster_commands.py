"""`predrain cluster`: how the cluster is, and a recording of it to plan against."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from predrain.data.refusal import Refusal
from predrain.service.cli.acting_process_text import describe_here
from predrain.service.cli.cluster_connection import ClusterAddress, make_cluster_channel
from predrain.service.cli.shared_options import AsJson, format_whole_percent, make_console, print_json

if TYPE_CHECKING:
    from predrain.actions.cluster.channel import CommandChannel
    from predrain.actions.cluster.dumps import ReadCommand
    from predrain.actions.controller.cluster_summary import ClusterSummary
    from predrain.service.config.settings import Settings
    from predrain.service.drains.acting_process import ActingController

THERE = ClusterAddress()


class NoClusterAnswer(Refusal):
    """The cluster is there and does not answer."""


def show_cluster_command(*, reach: ClusterAddress = THERE, as_json: AsJson = False) -> int:
    """Health, OSDs, PGs, fullness, throttles, balancer, flags and drains of the cluster, as predrain sees them.

    Exits with 3 when the statistics are not known, which makes everything wait.

    Example: predrain cluster status --json
    """
    from predrain.actions.cluster.recorded_cluster import RecordedCluster, read_recording
    from predrain.actions.controller.cluster_summary import summarize_cluster

    policy = reach.settings().policy.to_policy()
    if reach.recorded is not None:
        seen, drains, acting = (
            summarize_cluster(RecordedCluster(read_recording(reach.recorded)).view(), policy),
            None,
            None,
        )
    else:
        from predrain.actions.cluster.dumps import ClusterReader, run_read_commands

        with _open_cluster_channel(reach) as (channel, at):
            reader = ClusterReader()
            seen = summarize_cluster(
                reader.view(run_read_commands(channel, reader.list_due_commands(at), at)), policy
            )
            drains, acting = (
                _read_cluster_drains(channel, reach.settings()),
                _find_acting_process(channel, reach),
            )
    if as_json:
        told = {"drains": drains, "acting": None if acting is None else _acting_json(acting)}
        print_json({**asdict(seen), "as_of": seen.as_of.isoformat(), **told})
    else:
        _print_cluster_status(seen, drains, None if acting is None else describe_here(acting, reach))
    return 0 if seen.statistics_known else 3


def record_cluster_command(
    *,
    out: Annotated[Path, Parameter(help="File to write.")],
    reach: ClusterAddress = THERE,
    as_json: AsJson = False,
) -> int:
    """Write all that predrain sees of the cluster, and its map, into one file for `--recorded`. No keys, no passwords.

    Example: predrain cluster record --out monday.zip
    """
    from predrain.actions.cluster.recorded_cluster import read_recording, write_recording
    from predrain.actions.cluster.recorded_cluster import record_cluster_answers as recorded

    if reach.recorded is not None:
        made = read_recording(reach.recorded)
    else:
        with _open_cluster_channel(reach) as (channel, at):
            made = recorded(channel, at, _report_read_command)
    write_recording(made, out)
    size = out.stat().st_size
    if as_json:
        print_json(
            {
                "file": str(out),
                "bytes": size,
                "at": made.answers.at.isoformat(),
                "osdmap": made.osdmap is not None,
            }
        )
    else:
        print(f"{out}: {size:,} bytes; plan against it: predrain drain plan osd.N --recorded {out}")
    return 0


@contextmanager
def _open_cluster_channel(reach: ClusterAddress) -> Iterator[tuple[CommandChannel, datetime]]:
    """Open a channel for a few queries, and yield it with the time. Raises NoClusterAnswer."""
    from predrain.actions.cluster.cluster_port import ClusterUnreachable
    from predrain.data.clock import SystemClock

    channel = make_cluster_channel(reach)
    try:
        yield channel, SystemClock().now()
    except ClusterUnreachable as silent:
        raise NoClusterAnswer(f"The cluster does not answer: {silent}") from silent
    finally:
        channel.close()


def _report_read_command(question: ReadCommand) -> None:
    print(f"asking `ceph {question.prefix}`", file=sys.stderr)


def _read_cluster_drains(channel: CommandChannel, settings: Settings) -> list[dict[str, Any]] | None:
    """Return the drains in the cluster's config_key store, or None if we may not read them or one is not signed."""
    from predrain.actions.cluster.cluster_port import ClusterUnreachable, DamagedConfigKey
    from predrain.actions.cluster.config_key_store import ConfigKeys
    from predrain.actions.cluster.signed_keys import SignedKeys
    from predrain.actions.controller.replication import decode_drain_copy, list_drain_names
    from predrain.actions.core.messages import describe_state
    from predrain.service.config.state_directory import StateDir
    from predrain.service.storage.signing_key import find_signing_key

    key = find_signing_key(settings.ceph, StateDir(settings.service.state))
    keep = SignedKeys(ConfigKeys(channel), key)
    try:
        found = [(name, keep.read(name)) for name in list_drain_names(keep)]
        drains = [decode_drain_copy(name, text) for name, text in found if text is not None]
    except (ClusterUnreachable, DamagedConfigKey):
        return None
    return [
        {
            "id": one.id,
            "state": one.state.value,
            "state_text": describe_state(one.state, one.intent),
            "osds": list(one.osds),
            "held_by": list(one.held_by),
        }
        for one in drains
    ]


def _find_acting_process(channel: CommandChannel, reach: ClusterAddress) -> ActingController:
    """Return the holder of the lease. If the mgr module acts on the cluster, there is no lease, so the holder is
    unknown.
    """
    from predrain.service.drains.acting_process import ActingController, ActingObserver, ActingPlace
    from predrain.service.drains.live_cluster import lease_on

    ceph = reach.settings().ceph
    if ceph.executor_key is not None:
        return ActingController(ActingPlace.UNKNOWN, why="the mgr module acts for the service that it asks")
    observer = ActingObserver(lease_on(channel, ceph, "status"), "")
    observer.poll_lease()
    return observer.find_acting_controller()


def _acting_json(acting: ActingController) -> dict[str, Any]:
    owner = acting.owner
    return {
        "place": acting.place.value,
        "host": owner.host if owner else None,
        "pid": owner.pid if owner else None,
        "until": acting.until.isoformat() if acting.until else None,
    }


def _print_cluster_status(
    seen: ClusterSummary, drains: list[dict[str, Any]] | None, acting: str | None
) -> None:
    from rich.table import Column, Table

    table = Table(Column(style="bold"), Column(), box=None, show_header=False)
    for name, told in _list_status_rows(seen, drains):
        table.add_row(name, told)
    if acting is not None:
        table.add_row("controller", acting)
    make_console().print(table)


def _list_status_rows(seen: ClusterSummary, drains: list[dict[str, Any]] | None) -> Iterator[tuple[str, str]]:
    yield "as of", f"{seen.as_of:%Y-%m-%d %H:%M:%S}Z, epoch {seen.epoch}"
    yield "health", seen.health
    mixed = ", daemons of several versions" if seen.mixed_versions else ""
    yield "release", f"{seen.release}{mixed}{', an upgrade is running' if seen.upgrade_running else ''}"
    yield "OSDs", f"{seen.osds}: {seen.up} up, {seen.inside} in"
    yield "PGs", "\n".join(f"{number:,} {state}" for state, number in seen.pgs.items())
    if not seen.statistics_known:
        yield "statistics", "[bold]not known[/]: the mgr has not heard from all OSDs; everything waits"
    if seen.fullness is not None:
        full = seen.fullness
        fullest = f"fullest osd.{full.highest_osd} {format_whole_percent(full.highest)}"
        yield (
            "fullness",
            f"median {format_whole_percent(full.median)}, {fullest}, limit of a drain's target "
            f"{format_whole_percent(full.limit)}",
        )
    yield "scheduler", f"{seen.scheduler or 'unknown'}; {seen.obeys}"
    rows = "\n".join(f"{key} {value}" for key, value in sorted(seen.throttles.items()))
    yield "throttles", rows or "the release's defaults"
    yield "balancer", "on" if seen.balancer_active else "off"
    yield "upmaps", str(seen.upmaps)
    yield "flags", ", ".join(seen.flags) or "none"
    for osd, flags in list(seen.osd_flags.items())[:_MOST_SHOWN]:
        yield f"osd.{osd}", ", ".join(flags)
    if len(seen.osd_flags) > _MOST_SHOWN:
        yield "", f"and {len(seen.osd_flags) - _MOST_SHOWN} more OSDs with flags"
    if drains is None:
        yield "drains", "not known here"
    else:
        yield "drains", "\n".join(f"{one['id']}: {one['state_text']}" for one in drains) or "none"


_MOST_SHOWN = 8
