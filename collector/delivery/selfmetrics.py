"""What a collector says of itself, in Prometheus' text format, for node_exporter's textfile folder."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from predrain.collector.delivery.contents import SpoolStatus


@dataclass(frozen=True, slots=True)
class CollectorTally:
    """One collector since it started; `spool` since its file was made."""

    readings: int
    """Accepted."""
    disks: int
    """That answered, or have a name and did not, in the last round."""
    unreadable: int
    """Of these, could not be read."""
    nameless: int
    """Seen, but never said who they are."""
    silent: int
    """OSDs that the last sample has nothing of; 1 where no admin socket may be looked for."""
    round_seconds: float | None
    """How long the last round took; None before its end."""
    delivering: bool | None
    """Whether the sink answers; None where nothing is delivered."""
    spool: SpoolStatus | None


class _Metric(NamedTuple):
    name: str
    kind: str
    help: str
    samples: tuple[tuple[str, float], ...]


def exposition(tally: CollectorTally, host: str) -> str:
    """Text format 0.0.4: what is not known has no sample. `host`: as its readings name it, for who joins the two."""
    lines: list[str] = []
    for metric in _metrics(tally, host):
        if metric.samples:
            name = f"predrain_collector_{metric.name}"
            lines += [f"# HELP {name} {metric.help}", f"# TYPE {name} {metric.kind}"]
            lines += [
                f"{name}{labels} {number:g}" if number < 1e6 else f"{name}{labels} {number:.0f}"
                for labels, number in metric.samples
            ]
    return "\n".join(lines) + "\n"


def write(path: Path, text: str) -> None:
    """Replace the file at once, readable by all: a reader never sees half of it. Raises OSError."""
    part = path.with_name(f".{path.name}.part")
    try:
        part.write_text(text, encoding="utf-8")
        part.chmod(0o644)
        part.replace(path)
    except OSError:
        part.unlink(missing_ok=True)
        raise


def _metrics(tally: CollectorTally, host: str) -> Iterator[_Metric]:
    def one(number: float | None) -> tuple[tuple[str, float], ...]:
        return () if number is None else (("", number),)

    yield _Metric("readings_total", "counter", "Readings accepted since the start.", one(tally.readings))
    yield _Metric("disks", "gauge", "Disks of the last round.", one(tally.disks))
    yield _Metric(
        "unreadable_disks", "gauge", "Disks that could not be read in the last round.", one(tally.unreadable)
    )
    yield _Metric("nameless_disks", "gauge", "Disks that never said who they are.", one(tally.nameless))
    yield _Metric("silent_osds", "gauge", "OSDs that the last sample has nothing of.", one(tally.silent))
    yield _Metric("round_seconds", "gauge", "Duration of the last round.", one(tally.round_seconds))
    named = host.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
    delivering = () if tally.delivering is None else ((f'{{host="{named}"}}', float(tally.delivering)),)
    yield _Metric("delivering", "gauge", "1 while the sink answers, 0 while the spool keeps all.", delivering)
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
    yield _Metric("lost_total", "counter", "What could be neither delivered nor kept.", lost)
    yield _Metric("refused_total", "counter", "Records that will never be taken.", one(spool.refused))
    yield _Metric(
        "last_delivery_timestamp_seconds",
        "gauge",
        "When the sink last acknowledged.",
        one(spool.delivered_at),
    )
