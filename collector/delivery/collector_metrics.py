"""The collector's metrics about itself, in Prometheus' text format, for node_exporter's textfile folder."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from predrain.collector.delivery.spool_contents import SpoolStatus


@dataclass(frozen=True, slots=True)
class CollectorTally:
    """Counts of one collector since it started; `spool` counts since its file was made."""

    readings: int
    """Readings accepted."""
    disks: int
    """Disks of the last round that answered, or that have a name and did not answer."""
    unreadable: int
    """Disks among them that could not be read."""
    nameless: int
    """Disks that were seen and never reported an identity."""
    silent: int
    """OSDs of which the last sample holds nothing; 1 if looking for admin sockets is not permitted."""
    round_seconds: float | None
    """Duration of the last round in seconds; None before the first round has ended."""
    delivering: bool | None
    """True while the sink answers; None if nothing is to be delivered."""
    spool: SpoolStatus | None


class _Metric(NamedTuple):
    name: str
    kind: str
    help: str
    samples: tuple[tuple[str, float], ...]


def format_metrics(tally: CollectorTally, host: str) -> str:
    """Return the metrics in text format 0.0.4; an unknown value has no sample.

    `host` is the host name of the readings, so that a query can join the two.
    """
    lines: list[str] = []
    for metric in _build_metrics(tally, host):
        if metric.samples:
            name = f"predrain_collector_{metric.name}"
            lines += [f"# HELP {name} {metric.help}", f"# TYPE {name} {metric.kind}"]
            lines += [
                f"{name}{labels} {number:g}" if number < 1e6 else f"{name}{labels} {number:.0f}"
                for labels, number in metric.samples
            ]
    return "\n".join(lines) + "\n"


def write_metrics_file(path: Path, text: str) -> None:
    """Replace the file atomically and make it readable by all: a reader never sees half of it. Raises OSError."""
    part = path.with_name(f".{path.name}.part")
    try:
        part.write_text(text, encoding="utf-8")
        part.chmod(0o644)
        part.replace(path)
    except OSError:
        part.unlink(missing_ok=True)
        raise


def _build_metrics(tally: CollectorTally, host: str) -> Iterator[_Metric]:
    def one(number: float | None) -> tuple[tuple[str, float], ...]:
        return () if number is None else (("", number),)

    yield _Metric("readings_total", "counter", "Readings accepted since the start.", one(tally.readings))
    yield _Metric("disks", "gauge", "Disks of the last round.", one(tally.disks))
    yield _Metric(
        "unreadable_disks", "gauge", "Disks that could not be read in the last round.", one(tally.unreadable)
    )
    yield _Metric("unidentified_disks", "gauge", "Disks that never said who they are.", one(tally.nameless))
    yield _Metric("silent_osds", "gauge", "OSDs that the last sample has nothing of.", one(tally.silent))
    yield _Metric("round_seconds", "gauge", "Duration of the last round.", one(tally.round_seconds))
    named = host.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
    delivering = () if tally.delivering is None else ((f'{{host="{named}"}}', float(tally.delivering)),)
    yield _Metric("sink_up", "gauge", "1 while the sink answers, 0 while the spool keeps all.", delivering)
    spool = tally.spool
    if spool is None:
        return
    kept = (('{kind="readings"}', float(spool.readings)), ('{kind="latency_batches"}', float(spool.batches)))
    lost = (
        ('{kind="readings"}', float(spool.lost_readings)),
        ('{kind="summaries"}', float(spool.lost_summaries)),
    )
    yield _Metric("spool_bytes", "gauge", "Bytes accepted and not delivered yet.", one(spool.bytes))
    yield _Metric("spool_records", "gauge", "Records accepted and not delivered yet.", kept)
    yield _Metric("lost_total", "counter", "Records that could be neither delivered nor kept.", lost)
    yield _Metric("refused_total", "counter", "Records that will never be taken.", one(spool.refused))
    yield _Metric(
        "last_delivery_timestamp_seconds",
        "gauge",
        "When the sink last acknowledged.",
        one(spool.delivered_at),
    )
