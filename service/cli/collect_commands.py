"""`predrain collect`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

if TYPE_CHECKING:
    from predrain.data.reading import Reading
    from predrain.service.processes.collector_process import ReadOnceResult


def run_collector_command(
    *,
    once: Annotated[bool, Parameter(negative="", help="read every disk, print what they said, exit")] = False,
    config: Annotated[
        Path | None,
        Parameter(help="settings file; /etc/predrain/collector.toml, else predrain.toml, where it is there"),
    ] = None,
    as_json: Annotated[
        bool,
        Parameter(name="--json", negative="", help="with --once: an object a line, the collector's own last"),
    ] = False,
    enrol: Annotated[
        str | None, Parameter(help="exchange this one-time token for one of this host's own, exit")
    ] = None,
) -> int:
    """Read this host's disks and OSDs, and deliver what they say to the service or to Kafka.

    The command needs smartctl, and sudo for it where it is not root; it needs neither Ceph nor Kafka.

    Example: predrain collect --once
    """
    from predrain.service.config.collector_table import load_collector_settings
    from predrain.service.processes import collector_process
    from predrain.service.runtime import logging_setup

    if as_json and not once:
        print("predrain collect: --json goes with --once; see predrain collect --help", file=sys.stderr)
        return 2
    settings = load_collector_settings(config)
    if enrol is not None:
        print(f"enrolled: the token of this host is in {collector_process.enrol_this_host(settings, enrol)}")
        return 0
    if not once:
        logging_setup.configure_logging()
        collector_process.run_collector(settings, lambda text: print(text, file=sys.stderr, flush=True))
        return 0
    looked = collector_process.read_disks_once(settings)
    if as_json:
        _print_json(looked)
    else:
        _print_table(looked)
        for sentence in looked.troubles:
            print(sentence, file=sys.stderr)
    return 3 if looked.troubles or looked.tally.unreadable else 0


def _print_json(looked: ReadOnceResult) -> None:
    import msgspec

    from predrain.data.wire.wire_bodies import READING

    for reading in looked.readings:
        print(READING.write(reading).decode())
    own = {"host": looked.host, "troubles": looked.troubles, **msgspec.to_builtins(looked.tally)}
    print(msgspec.json.encode({"collector": own}).decode())


def _print_table(looked: ReadOnceResult) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    places: dict[str, list[str]] = {}
    for place, device in looked.places.items():
        places.setdefault(device, []).append(place.removeprefix("/dev/"))
    has_osds = any(reading.osd_devices for reading in looked.readings)
    several = len({one.cluster for reading in looked.readings for one in reading.osd_devices}) > 1
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("at", overflow="fold", max_width=10)
    table.add_column("disk", overflow="fold", min_width=24)
    if has_osds:
        table.add_column("OSDs")
    table.add_column("says", no_wrap=True)
    table.add_column("hours", justify="right", no_wrap=True)
    table.add_column("°C", justify="right", no_wrap=True)
    table.add_column("signs")
    for reading in sorted(looked.readings, key=_rank_reading_health):
        at, disk, osds, *rest = _build_reading_row(reading, places.get(reading.device, []), several)
        table.add_row(at, disk, *([osds] if has_osds else []), *rest)
    console = Console()
    if looked.readings:
        console.print(table)
    tally = looked.tally
    told = [f"{looked.host}: {tally.disks} disks in {tally.round_seconds or 0:.1f} s"]
    told += [f"{tally.unreadable} unreadable"] if tally.unreadable else []
    told += [f"{tally.nameless} without a name"] if tally.nameless else []
    told += [f"asleep and not woken: {', '.join(looked.asleep)}"] if looked.asleep else []
    console.print("; ".join(told), highlight=False)


def _build_reading_row(reading: Reading, places: list[str], several: bool) -> tuple[str, ...]:
    """Build a row of the table. `several`: the host has OSDs of several clusters, so an OSD is named with its own."""
    from rich.markup import escape

    from predrain.data.reading import Smart

    osds = ", ".join(
        f"{one.osd} {one.role.value}" + (f" of {one.cluster or 'unknown'}" if several else "")
        for one in reading.osd_devices
    )
    seen, at, disk = reading.seen, escape(", ".join(places)), escape(reading.device)
    if not isinstance(seen, Smart):
        why = f"since {seen.since:%Y-%m-%d %H:%M}Z: {escape(seen.why)}"
        return (
            at,
            disk,
            osds,
            "[bold red]unreadable[/]",
            "",
            "",
            ", ".join((why, *_list_defect_signs(reading))),
        )
    verdict = {True: "passed", False: "[bold red]FAILED[/]", None: "no verdict"}[seen.passed]
    hours = "" if seen.power_on_hours is None else f"{seen.power_on_hours:,}"
    heat = "" if seen.temperature_c is None else str(seen.temperature_c)
    return at, disk, osds, verdict, hours, heat, ", ".join(_list_defect_signs(reading))


_COUNTED = {
    "reallocated": "reallocated",
    "pending": "pending",
    "offline_uncorrectable": "uncorrectable offline",
    "reported_uncorrectable": "uncorrectable",
    "uncorrected_errors": "uncorrected",
    "media_errors": "media errors",
    "grown_defects": "grown defects",
    "critical_warning": "critical warning",
}


def _list_defect_signs(reading: Reading) -> Iterator[str]:
    """Yield the signs of a defect in a reading, each with its count."""
    from predrain.data.reading import Smart

    if isinstance(reading.seen, Smart):
        for field, name in _COUNTED.items():
            if count := getattr(reading.seen.counters, field):
                yield f"{count:,} {name}"
        if reading.seen.logs and (failed := reading.seen.logs.failed_self_tests):
            yield f"{failed:,} failed self-tests"
    if reading.kernel_errors:
        yield f"{reading.kernel_errors:,} I/O errors in the kernel's log"


def _rank_reading_health(reading: Reading) -> tuple[int, str]:
    """Return the sort key that puts readings of defective disks first."""
    from predrain.data.reading import Smart

    if not isinstance(reading.seen, Smart):
        return 0, reading.device
    if reading.seen.passed is False:
        return 1, reading.device
    return 2 if any(_list_defect_signs(reading)) else 3, reading.device
