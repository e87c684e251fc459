"""`[collector]` and the collector's part of `[kafka]`, read by msgspec, since pydantic alone costs a host 10 MB."""

from __future__ import annotations

import json
import math
import os
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_args, get_type_hints

import msgspec
from msgspec import Meta

from predrain.data.disk_request import DiskPermission
from predrain.data.refusal import Refusal
from predrain.service.config.renamed_settings import describe_unknown_key, suggest_nearest_key
from predrain.service.config.state_directory import default_state

CENTURY = timedelta(days=36_525)


def explain_unusable_number(key: str, value: object) -> str | None:
    """Return why the value of `key` cannot be used, with the cure, or None if it can. The unit is the end of
    `key`.
    """
    if not isinstance(value, int | float):
        return None
    unit = key.rpartition("_")[2]
    if unit in ("days", "hours", "minutes", "seconds"):
        longest = CENTURY / timedelta(**{unit: 1})
        return None if value <= longest else f"a century, {longest:.0f}, is the longest (given: {value})"
    return None if math.isfinite(value) else f"it must be a number that ends (given: {value})"


T = TypeVar("T", bound=msgspec.Struct)

SYSTEM_FILES = (Path("/etc/predrain/collector.toml"), Path("/etc/predrain/predrain.toml"))
"""The collector's own file, which its systemd unit names, else the service's, which may have the table too."""
PREFIX = "PREDRAIN_"
NOT_SETTINGS = frozenset(
    {
        *("PREDRAIN_DATA", "PREDRAIN_SIM_SEED", "PREDRAIN_SIM_SEEDS"),
        *("PREDRAIN_URL", "PREDRAIN_TOKEN_FILE", "PREDRAIN_CA_FILE", "PREDRAIN_PROFILE"),
    }
)
"""Variables that are no settings: those of tests and benchmarks, and those that name a remote service to commands."""
TABLES = (
    "collector", "kafka", "service", "forecast", "retention", "ceph", "store", "mail", "webhook", "slack",
    "teams", "pagerduty", "opsgenie", "alertmanager", "access", "oidc", "clusters", "self_tests",
    "policy",
)  # fmt: skip
"""All tables of a settings file, since a collector may read the service's file."""


class BadCollectorSettings(Refusal):
    """A settings file or variable that the collector cannot use; the sentence names the key and the cure."""


class CollectorTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[collector]`: what `predrain collect` reads on an OSD host, and where it sends it."""

    host: Annotated[
        str | None,
        Meta(
            description="Name of this host in readings; its own host name when it is not set.",
        ),
    ] = None
    url: Annotated[
        str, Meta(description="Service that readings go to, unless `bootstrap_servers` of `[kafka]` is set.")
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
    reading_interval_minutes: Annotated[
        float, Meta(ge=1, description="Minutes between two readings of a disk.")
    ] = 60.0
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
    smartctl_timeout_seconds: Annotated[
        float, Meta(gt=0, description="Seconds that one run of smartctl may take.")
    ] = 60.0
    parallel: Annotated[int, Meta(ge=1, le=64, description="Disks that are read at once.")] = 4
    allow: Annotated[
        tuple[DiskPermission, ...],
        Meta(
            description="The requests that this host carries out: `selftest` (start and stop self-tests of its disks), "
            "`locate` (switch the lights of their slots); nothing when it is empty."
        ),
    ] = ()
    ledctl: Annotated[str, Meta(description="Absolute path of ledctl, which switches lights.")] = (
        "/usr/sbin/ledctl"
    )
    metrics_file: Annotated[
        Path | None,
        Meta(
            description="File for node_exporter's textfile collector (`NAME.prom`); none is written when not set."
        ),
    ] = None


class CollectorKafkaTable(msgspec.Struct, frozen=True):
    """Keys of `[kafka]` for the brokers and our identity there; `service.config.kafka_table` has the other keys."""

    bootstrap_servers: tuple[str, ...] = ()
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
        "replication_factor", "min_insync_replicas", "readings_partitions", "readings_days", "latency_partitions",
        "latency_days", "history_days",
    ),
}  # fmt: skip
"""Keys that a collector ignores, by table."""


class _ServiceTable(msgspec.Struct, frozen=True):
    state: Path | None = None


@dataclass(frozen=True, slots=True)
class CollectorSettings:
    """All settings of a collector."""

    collector: CollectorTable
    kafka: CollectorKafkaTable
    state: Path


def load_collector_settings(
    file: Path | None = None, environment: Mapping[str, str] | None = None
) -> CollectorSettings:
    """Load the settings from `file` (must exist), else from the first of the system's files that exists, under
    the variables (`PREDRAIN_COLLECTOR__URL` sets `url`). The contents of the service's tables are not checked.

    Raises BadCollectorSettings for a file that cannot be read, an unknown table or key (naming the nearest one)
    or a bad value.
    """
    given = os.environ if environment is None else environment
    path = file or next((one for one in SYSTEM_FILES if one.exists()), None)
    written = _read_toml_file(path) if path else {}
    source = str(path) if path else "the environment"
    _check_tables(written, given, source)
    service = _parse_table(_ServiceTable, "service", written, given, source)
    return CollectorSettings(
        _parse_table(CollectorTable, "collector", written, given, source),
        _parse_table(CollectorKafkaTable, "kafka", written, given, source),
        service.state or default_state(given),
    )


def check_collector_table(values: Mapping[str, Any]) -> None:
    """Check `[collector]` as the service reads it, where values from variables are text.

    Raises BadCollectorSettings.
    """
    said = {
        f"PREDRAIN_COLLECTOR__{key}": json.dumps(value) if isinstance(value, list) else str(value)
        for key, value in values.items()
    }
    _parse_table(CollectorTable, "collector", {}, said, "the settings")


def list_collector_keys() -> Iterator[tuple[str, Any, str]]:
    """Yield (key, default, description) of every key of `[collector]`."""
    hints = get_type_hints(CollectorTable, include_extras=True)
    for field in msgspec.structs.fields(CollectorTable):
        (meta,) = (one for one in get_args(hints[field.name]) if isinstance(one, Meta))
        yield field.name, field.default, meta.description or ""


def _read_toml_file(path: Path) -> dict[str, Any]:
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
        raise BadCollectorSettings(f"{source}: {describe_unknown_key(name, TABLES, 'remove it')}")
    for name in environment.keys() - NOT_SETTINGS:
        table = name.upper().removeprefix(PREFIX).split("__")[0].lower()
        if name.upper().startswith(PREFIX) and table not in TABLES:
            near = [f"{PREFIX}COLLECTOR__{key.upper()}" for key in CollectorTable.__struct_fields__]
            raise BadCollectorSettings(
                f"the variable {name} is no setting; {suggest_nearest_key(name.upper(), near, 'remove it')}"
            )


def _parse_table(
    kind: type[T], name: str, written: Mapping[str, Any], environment: Mapping[str, str], source: str
) -> T:
    values = written.get(name, {})
    if not isinstance(values, dict):
        raise BadCollectorSettings(f"{source}: {name} is no table; write [{name}] above its keys")
    prefix = f"PREDRAIN_{name.upper()}__"
    said = {
        key.upper().removeprefix(prefix).lower(): _parse_variable(text)
        for key, text in environment.items()
        if key.upper().startswith(prefix)
    }
    known = kind.__struct_fields__
    if kind is not _ServiceTable:
        for key in (*values, *said):
            if key not in (*known, *OF_THE_SERVICE.get(name, ())):
                wrong = describe_unknown_key(f"{name}.{key}", [f"{name}.{one}" for one in known], "remove it")
                raise BadCollectorSettings(f"{source}: {wrong}")
    try:
        # A variable is text for any type of its value.
        lax = msgspec.convert(said, kind, strict=False, dec_hook=_decode_path)
        strict = msgspec.convert(values, kind, dec_hook=_decode_path)
    except msgspec.ValidationError as error:
        told = str(error).replace("`$.", f"`{name}.")
        raise BadCollectorSettings(f"{source}: {told[:1].lower()}{told[1:]}; correct it") from error
    found = msgspec.structs.replace(strict, **{key: getattr(lax, key) for key in said if key in known})
    for key in known:
        if why := explain_unusable_number(key, getattr(found, key)):
            raise BadCollectorSettings(f"{source}: {name}.{key}: {why}")
    return found


def _parse_variable(text: str) -> object:
    """Return the value of a variable: a list is written as JSON, any other value as it is."""
    if text.startswith("["):
        try:
            return msgspec.json.decode(text)
        except msgspec.DecodeError:
            return text
    return text


def _decode_path(kind: type, value: object) -> object:
    if kind is Path and isinstance(value, str):
        return Path(value)
    raise NotImplementedError
