"""`[collector]` and what a collector needs of `[kafka]`: read by msgspec, since pydantic alone costs a host 10 MB."""

from __future__ import annotations

import difflib
import os
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_args, get_type_hints

import msgspec
from msgspec import Meta

from predrain.data.refusal import Refusal
from predrain.service.state_directory import default_state
from predrain.service.tables.spans import endless

T = TypeVar("T", bound=msgspec.Struct)

SYSTEM_FILES = (Path("/etc/predrain/collector.toml"), Path("/etc/predrain/predrain.toml"))
"""The collector's own, which its unit names, else the service's, which may have its table too."""
PREFIX = "PREDRAIN_"
NOT_SETTINGS = frozenset({"PREDRAIN_DATA", "PREDRAIN_SIM_SEED", "PREDRAIN_SIM_SEEDS"})
"""Variables of tests and benchmarks, which are no settings."""
TABLES = (
    "collector", "kafka", "service", "forecast", "retention", "ceph", "store", "mail", "webhook", "access", "oidc",
    "policy",
)  # fmt: skip
"""Of a whole file: a collector may read the service's."""


class BadCollectorSettings(Refusal):
    """A settings file or variable that the collector cannot use; the sentence names the key and the cure."""


class CollectorTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[collector]`: what `predrain collect` reads on an OSD host, and where it sends it."""

    host: Annotated[
        str | None,
        Meta(
            description="What this host is called; its own name when it is not set.",
        ),
    ] = None
    url: Annotated[
        str, Meta(description="Service that readings go to, unless `bootstrap` of `[kafka]` is set.")
    ] = "http://127.0.0.1:8080"
    token_file: Annotated[
        Path | None,
        Meta(
            description="File (0600) with a token of scope `ingest`; `token` in the state directory when not set."
        ),
    ] = None
    ca: Annotated[
        Path | None,
        Meta(description="PEM file of who signed the service's certificate; the system's when not set."),
    ] = None
    spool: Annotated[
        Path | None,
        Meta(
            description="File that keeps what is not delivered; `collector.sqlite` in the state directory when not set."
        ),
    ] = None
    spool_megabytes: Annotated[float, Meta(ge=8, description="Most that the spool may keep, in MB.")] = 256.0
    spool_days: Annotated[
        float,
        Meta(gt=0, description="Most days of the collector's running time that the spool keeps anything."),
    ] = 14.0
    round_minutes: Annotated[float, Meta(ge=1, description="Minutes between two readings of a disk.")] = 60.0
    sample_seconds: Annotated[
        float, Meta(ge=1, le=30, description="Seconds between two samples of the OSDs' latencies.")
    ] = 15.0
    smartctl: Annotated[str, Meta(description="Absolute path of smartctl.")] = "/usr/sbin/smartctl"
    sudo: Annotated[
        str | None,
        Meta(
            description="Absolute path of sudo; `/usr/bin/sudo` when not set and the collector is not root."
        ),
    ] = None
    smartctl_seconds: Annotated[
        float, Meta(gt=0, description="Seconds that one run of smartctl may take.")
    ] = 60.0
    parallel: Annotated[int, Meta(ge=1, le=64, description="Disks that are read at once.")] = 4
    metrics_file: Annotated[
        Path | None,
        Meta(
            description="File for node_exporter's textfile collector (`NAME.prom`); none is written when not set."
        ),
    ] = None


class CollectorKafkaTable(msgspec.Struct, frozen=True):
    """Keys of `[kafka]` that say where brokers are and who we are there; `service.tables.kafka` has the others."""

    bootstrap: tuple[str, ...] = ()
    security: Literal["plaintext", "tls", "scram"] = "plaintext"
    ca: Path | None = None
    certificate: Path | None = None
    key: Path | None = None
    user: str = ""
    password_file: Path | None = None
    prefix: str = "predrain."
    timeout_seconds: float = 10.0


OF_THE_SERVICE = {
    "kafka": (
        "replicas", "in_sync", "readings_partitions", "readings_days", "latency_partitions", "latency_days",
        "history_days",
    ),
}  # fmt: skip
"""Keys that are no business of a collector, by table."""


class _ServiceTable(msgspec.Struct, frozen=True):
    state: Path | None = None


@dataclass(frozen=True, slots=True)
class CollectorSettings:
    """All that a collector is told."""

    collector: CollectorTable
    kafka: CollectorKafkaTable
    state: Path


def load(file: Path | None = None, environment: Mapping[str, str] | None = None) -> CollectorSettings:
    """Settings from `file` (must exist), else from the first of the system's files that is there, under the variables
    (`PREDRAIN_COLLECTOR__URL` sets `url`). What is in tables of the service is not judged here.

    Raises BadCollectorSettings for a file that cannot be read, an unknown table or key (naming the nearest one) or a
    bad value.
    """
    given = os.environ if environment is None else environment
    path = file or next((one for one in SYSTEM_FILES if one.exists()), None)
    written = _read(path) if path else {}
    source = str(path) if path else "the environment"
    _check_tables(written, given, source)
    service = _table(_ServiceTable, "service", written, given, source)
    return CollectorSettings(
        _table(CollectorTable, "collector", written, given, source),
        _table(CollectorKafkaTable, "kafka", written, given, source),
        service.state or default_state(given),
    )


def check(values: Mapping[str, Any]) -> None:
    """Judge `[collector]` as the service finds it, where variables have become text among the values.

    Raises BadCollectorSettings.
    """
    said = {f"PREDRAIN_COLLECTOR__{key}": str(value) for key, value in values.items()}
    _table(CollectorTable, "collector", {}, said, "the settings")


def described() -> Iterator[tuple[str, Any, str]]:
    """(key, default, description) of every key of `[collector]`."""
    hints = get_type_hints(CollectorTable, include_extras=True)
    for field in msgspec.structs.fields(CollectorTable):
        (meta,) = (one for one in get_args(hints[field.name]) if isinstance(one, Meta))
        yield field.name, field.default, meta.description or ""


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise BadCollectorSettings(f"{path} does not exist; give --config a file that does") from None
    except (OSError, UnicodeDecodeError) as error:
        raise BadCollectorSettings(
            f"{path} cannot be read: {error}; make it a readable UTF-8 file"
        ) from error
    except tomllib.TOMLDecodeError as error:
        raise BadCollectorSettings(f"{path} is not TOML: {error}; correct that line") from error


def _check_tables(written: Mapping[str, Any], environment: Mapping[str, str], source: str) -> None:
    for name in written.keys() - set(TABLES):
        raise BadCollectorSettings(f"{source}: unknown key {name}; {_nearest(name, TABLES)}")
    for name in environment.keys() - NOT_SETTINGS:
        table = name.upper().removeprefix(PREFIX).split("__")[0].lower()
        if name.upper().startswith(PREFIX) and table not in TABLES:
            near = [f"{PREFIX}COLLECTOR__{key.upper()}" for key in CollectorTable.__struct_fields__]
            raise BadCollectorSettings(f"the variable {name} is no setting; {_nearest(name.upper(), near)}")


def _nearest(name: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, list(known), n=1, cutoff=0.5)
    return f"did you mean {near[0]}?" if near else "remove it"


def _table(
    kind: type[T], name: str, written: Mapping[str, Any], environment: Mapping[str, str], source: str
) -> T:
    values = written.get(name, {})
    if not isinstance(values, dict):
        raise BadCollectorSettings(f"{source}: {name} is no table; write [{name}] above its keys")
    prefix = f"PREDRAIN_{name.upper()}__"
    said = {
        key.upper().removeprefix(prefix).lower(): _said(text)
        for key, text in environment.items()
        if key.upper().startswith(prefix)
    }
    known = kind.__struct_fields__
    if kind is not _ServiceTable:
        for key in (*values, *said):
            if key not in (*known, *OF_THE_SERVICE.get(name, ())):
                near = _nearest(f"{name}.{key}", [f"{name}.{one}" for one in known])
                raise BadCollectorSettings(f"{source}: unknown key {name}.{key}; {near}")
    try:
        # A variable is text, whatever it stands for.
        lax = msgspec.convert(said, kind, strict=False, dec_hook=_path)
        strict = msgspec.convert(values, kind, dec_hook=_path)
    except msgspec.ValidationError as error:
        told = str(error).replace("`$.", f"`{name}.")
        raise BadCollectorSettings(f"{source}: {told[:1].lower()}{told[1:]}; correct it") from error
    found = msgspec.structs.replace(strict, **{key: getattr(lax, key) for key in said if key in known})
    for key in known:
        if why := endless(key, getattr(found, key)):
            raise BadCollectorSettings(f"{source}: {name}.{key}: {why}")
    return found


def _said(text: str) -> object:
    """What a variable says: a list is written as JSON, all else as it is."""
    if text.startswith("["):
        try:
            return msgspec.json.decode(text)
        except msgspec.DecodeError:
            return text
    return text


def _path(kind: type, value: object) -> object:
    if kind is Path and isinstance(value, str):
        return Path(value)
    raise NotImplementedError
