"""`predrain collect`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

if TYPE_CHECKING:
    from predrain.data.reading import Reading
    from predrain.service.collector_process import Once


def collect(
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

    It needs smartctl, and sudo for it where it is not root; neither Ceph nor Kafka.

    Example: predrain collect --once
    """
    from predrain.service import collector_process as collecting
    from predrain.service import logging_setup as logs
    from predrain.service.tables.collector import load

    if as_json and not once:
        print("predrain collect: --json goes with --once; see predrain collect --help", file=sys.stderr)
        return 2
    settings = load(config)
    if enrol is not None:
        print(f"enrolled: the token of this host is in {collecting.enrol(settings, enrol)}")
        return 0
    if not once:
        logs.configure()
        collecting.collect(settings, lambda text: print(text, file=sys.stderr, flush=True))
        return 0
    looked = collecting.once(settings)
    if as_json:
        _print_json(looked)
    else:
        _print_table(looked)
        for sentence in looked.troubles:
            print(sentence, file=sys.stderr)
    return 3 if looked.troubles or looked.tally.unreadable else 0


def _print_json(looked: Once) -> None:
    import msgspec

    from predrain.data.wire.bodies import READING

    for reading in looked.readings:
        print(READING.write(reading).decode())
    own = {"host": looked.host, "troubles": looked.troubles, **msgspec.to_builtins(looked.tally)}
    print(msgspec.json.encode({"collector": own}).decode())


def _print_table(looked: Once) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    places: dict[str, list[str]] = {}
    for place, device in looked.places.items():
        places.setdefault(device, []).append(place.removeprefix("/dev/"))
    seated = any(reading.seats for reading in looked.readings)
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("at", overflow="fold", max_width=10)
    table.add_column("disk", overflow="fold", min_width=24)
    if seated:
        table.add_column("OSDs")
    table.add_column("says", no_wrap=True)
    table.add_column("hours", justify="right", no_wrap=True)
    table.add_column("°C", justify="right", no_wrap=True)
    table.add_column("signs")
    for reading in sorted(looked.readings, key=_sickness):
        at, disk, seats, *rest = _row(reading, places.get(reading.device, []))
        table.add_row(at, disk, *([seats] if seated else []), *rest)
    console = Console()
    if looked.readings:
        console.print(table)
    tally = looked.tally
    told = [f"{looked.host}: {tally.disks} disks in {tally.round_seconds or 0:.1f} s"]
    told += [f"{tally.unreadable} unreadable"] if tally.unreadable else []
    told += [f"{tally.nameless} without a name"] if tally.nameless else []
    told += [f"asleep and not woken: {', '.join(looked.asleep)}"] if looked.asleep else []
    console.print("; ".join(told), highlight=False)


def _row(reading: Reading, places: list[str]) -> tuple[str, ...]:
    from rich.markup import escape

    from predrain.data.reading import Smart

    seats = ", ".join(f"{seat.osd} {seat.role.value}" for seat in reading.seats)
    seen, at, disk = reading.seen, escape(", ".join(places)), escape(reading.device)
    if not isinstance(seen, Smart):
        why = f"since {seen.since:%Y-%m-%d %H:%M}Z: {escape(seen.why)}"
        return at, disk, seats, "[bold red]unreadable[/]", "", "", ", ".join((why, *_signs(reading)))
    verdict = {True: "passed", False: "[bold red]FAILED[/]", None: "no verdict"}[seen.passed]
    hours = "" if seen.power_on_hours is None else f"{seen.power_on_hours:,}"
    heat = "" if seen.temperature_c is None else str(seen.temperature_c)
    return at, disk, seats, verdict, hours, heat, ", ".join(_signs(reading))


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


def _signs(reading: Reading) -> Iterator[str]:
    """What is there and should not be."""
    from predrain.data.reading import Smart

    if isinstance(reading.seen, Smart):
        for field, name in _COUNTED.items():
            if count := getattr(reading.seen.counters, field):
                yield f"{count:,} {name}"
        if reading.seen.logs and (failed := reading.seen.logs.failed_self_tests):
            yield f"{failed:,} failed self-tests"
    if reading.kernel_errors:
        yield f"{reading.kernel_errors:,} I/O errors in the kernel's log"


def _sickness(reading: Reading) -> tuple[int, str]:
    """The sick ones first."""
    from predrain.data.reading import Smart

    if not isinstance(reading.seen, Smart):
        return 0, reading.device
    if reading.seen.passed is False:
        return 1, reading.device
    return 2 if any(_signs(reading)) else 3, reading.device
