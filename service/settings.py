"""Settings: one TOML file and `PREDRAIN_*` variables; every key has a unit, a default and a sentence."""

from __future__ import annotations

import difflib
import os
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import fields
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from actions.policy import Mode, Policy
from data.refusal import Refusal

DURATIONS = frozenset(field.name for field in fields(Policy) if isinstance(field.default, timedelta))
SYSTEM_FILE = Path("/etc/predrain/predrain.toml")
PREFIX = "PREDRAIN_"
NOT_SETTINGS = frozenset({"PREDRAIN_DATA", "PREDRAIN_SIM_SEED", "PREDRAIN_SIM_SEEDS"})
"""Variables of tests and benchmarks, which are no settings."""


class BadSettings(Refusal):
    """A settings file or variable that cannot be used; the sentence names the key and the cure."""


def default_state() -> Path:
    """Where state lies unless it is said: systemd's directory, else the XDG state home of the user."""
    given = os.environ.get("STATE_DIRECTORY")
    if given:
        return Path(given.split(":")[0])
    home = os.environ.get("XDG_STATE_HOME")
    return (Path(home) if home else Path.home() / ".local" / "state") / "predrain"


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ServiceTable(_Table):
    """`[service]`: where it listens and what it keeps."""

    host: str = Field(default="127.0.0.1", description="Address to listen on.")
    port: int = Field(default=8080, ge=0, le=65535, description="TCP port to listen on; 0 takes a free one.")
    state: Path = Field(
        default_factory=default_state,
        description="Directory of log, store and token (default: systemd's `STATE_DIRECTORY`, else "
        "`~/.local/state/predrain`).",
    )
    cluster_name: str = Field(default="ceph", description="What the page calls the cluster.")
    tls_certificate: Path | None = Field(
        default=None, description="PEM file of the certificate chain; TLS when it is set."
    )
    tls_key: Path | None = Field(default=None, description="PEM file of its key.")
    allowed_hosts: tuple[str, ...] = Field(
        default=(), description="Names besides the loopback ones that the Host header may carry."
    )
    insecure_without_tls: bool = Field(
        default=False,
        description="Listen beyond loopback although tokens then cross the network in the clear.",
    )
    body_limit_bytes: int = Field(
        default=16 * 1024 * 1024, ge=1024, description="Largest request body taken, in bytes."
    )

    @model_validator(mode="after")
    def _certificate_with_key(self) -> ServiceTable:
        if (self.tls_certificate is None) != (self.tls_key is None):
            raise ValueError("set tls_certificate and tls_key together")
        return self


class ForecastTable(_Table):
    """`[forecast]`: what scores the disks, and how often they are read."""

    bundle: Path | None = Field(
        default=None,
        description="Bundle directory that scores until a bundle is promoted (`predrain models promote`); the "
        "bundle that ships when it is not set.",
    )
    tracking: str | None = Field(
        default=None,
        description="MLflow store of `predrain models`: `sqlite:///FILE` or a server's URI; `models.sqlite` in the "
        "state directory when it is not set.",
    )
    reading_interval_hours: float = Field(
        default=1.0,
        gt=0,
        description="Hours between two readings of a disk; a disk is stale after two that are missing.",
    )


class RetentionTable(_Table):
    """`[retention]`: how long what is past is kept; it is dropped once a day."""

    history_days: float = Field(
        default=400.0,
        ge=90,
        description="Days that readings, outlooks, the scorebook of bundles, announcements, drains' curves and dead "
        "letters are kept; "
        "a disk's newest reading and outlook, drains, their journals and outcomes stay for ever.",
    )
    latency_days: float = Field(default=7.0, ge=1, description="Days that OSDs' latencies are kept.")
    log_days: float = Field(
        default=7.0, ge=0, description="Days that the log keeps readings that the worker has taken."
    )


class PolicyTable(_Table):
    """`[policy]`: the limits every drain lives under; shares and ratios of fullness are in [0, 1]."""

    mode: Literal["observe", "propose", "act"] = Field(
        default="propose",
        description="`observe`: forecasts only; `propose`: a person approves each drain; `act`: bad disks "
        "are drained by themselves.",
    )
    tick_seconds: float = Field(
        default=10.0, gt=0, description="Seconds between two looks of the controller."
    )
    drains_per_host: int = Field(default=1, ge=0, description="Drains at once on one host.")
    drains_per_rack: int = Field(default=2, ge=0, description="Drains at once in one rack.")
    drains_per_cluster: int = Field(default=4, ge=0, description="Drains at once in the cluster.")
    out_share_max: float = Field(
        default=0.02, ge=0, le=1, description="Share of all OSDs that may be out or draining."
    )
    peering_max: int = Field(default=3, ge=1, description="PGs that may peer at once because of predrain.")
    in_flight_max: int = Field(default=8, ge=1, description="PGs in flight at once, over all drains.")
    per_target_max: int = Field(default=2, ge=1, description="PGs on their way to one OSD.")
    backfillfull_margin: float = Field(
        default=0.05, ge=0, le=1, description="A target's limit is min(nearfull, backfillfull - this)."
    )
    window: tuple[int, int] | None = Field(
        default=None,
        description="Hours of the day (UTC, from and to) in which PGs may move, such as `[22, 6]`.",
    )
    suspicion_min: int = Field(
        default=3, ge=1, description="Newly bad drives of one model that are still believed."
    )
    suspicion_share: float = Field(
        default=0.05, ge=0, le=1, description="Share of a model newly bad above which the model is suspected."
    )
    suspicion_window_days: float = Field(
        default=7.0, gt=0, description="Days over which newly bad drives are counted."
    )
    trust_readings: int = Field(
        default=3, ge=1, description="Readings in a row that must bear an outlook out."
    )
    trust_hours: float = Field(default=24.0, ge=0, description="Hours over which they must lie.")
    hard_readings: int = Field(default=2, ge=1, description="The same for hard evidence: readings.")
    hard_hours: float = Field(default=1.0, ge=0, description="The same for hard evidence: hours.")
    outlook_age_max_hours: float = Field(
        default=36.0, gt=0, description="Hours after which an outlook is too old to act on."
    )
    view_age_max_seconds: float = Field(
        default=60.0, gt=0, description="Seconds after which a view of the cluster is too old to act on."
    )
    statistics_seconds: float = Field(
        default=5.0,
        gt=0,
        description="Ceph's `mgr_stats_period` in seconds; twice this is waited for after a change.",
    )
    pin_attempts: int = Field(
        default=3, ge=1, description="How often a pin that the mon dropped is set again."
    )
    new_bundle_quiet_hours: float = Field(
        default=72.0, ge=0, description="Hours after a new bundle without automatic proposals."
    )
    new_bundle_bad_share: float = Field(
        default=0.005,
        ge=0,
        le=1,
        description="No automatic proposals while a new bundle calls more devices newly bad.",
    )
    withdraw_after_days: float = Field(
        default=3.0,
        ge=0,
        description="Days after which a proposal is withdrawn whose device is no longer bad.",
    )
    propose_again_after_days: float = Field(
        default=7.0,
        ge=0,
        description="Days without an automatic proposal after a person cancelled a device's drain.",
    )
    plan_again_after_minutes: float = Field(
        default=10.0,
        gt=0,
        description="Minutes after which a refused plan is tried anew on an unchanged map.",
    )
    latency_hold: float = Field(default=1.2, ge=1, description="Latency ratio above which a drain holds.")
    latency_halve: float = Field(
        default=1.5, ge=1, description="Latency ratio above which the next batch is halved."
    )
    latency_pull_back: float = Field(
        default=2.0, ge=1, description="Latency ratio above which waiting PGs are pulled back."
    )
    latency_grow: float = Field(
        default=1.1, ge=1, description="Latency ratio below which one more PG may move."
    )
    urgent_days: float = Field(
        default=7.0, ge=0, description="Median life in days below which a drive is urgent."
    )
    urgent_stretch: float = Field(
        default=1.5, ge=1, description="How many times the latency excess an urgent one may spend."
    )
    move_bytes_per_second: float = Field(
        default=40e6,
        gt=0,
        description="Assumed rate of one backfill in bytes/s, for the ETA and for replays.",
    )

    def policy(self) -> Policy:
        """The same limits as the actions room speaks of them; a duration's unit is the end of its key."""
        limits: dict[str, Any] = {}
        for key, value in self.model_dump().items():
            name, _, unit = key.rpartition("_")
            if name in DURATIONS:
                limits[name] = timedelta(**{unit: value})
            else:
                limits[key] = Mode(value) if key == "mode" else value
        return Policy(**limits)


class TokenTable(_Table):
    """`[[tokens]]`: a further token, kept as its hash (`predrain config token` makes one)."""

    name: str = Field(description="Who holds it; shown in journals.")
    scopes: tuple[Literal["read", "ingest", "act", "admin"], ...] = Field(
        description="What it may do: `read`, `ingest`, `act`, or `admin` for all of them."
    )
    sha256: str = Field(pattern="^[0-9a-f]{64}$", description="SHA-256 of the token, lower-case hex.")


class Settings(BaseSettings):
    """Everything that can be set. Variables: `PREDRAIN_SERVICE__PORT=9000` sets `port` of `[service]`."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX,
        env_nested_delimiter="__",
        extra="forbid",
        frozen=True,
        nested_model_default_partial_update=True,
    )

    service: ServiceTable = ServiceTable()
    forecast: ForecastTable = ForecastTable()
    retention: RetentionTable = RetentionTable()
    policy: PolicyTable = PolicyTable()
    tokens: tuple[TokenTable, ...] = ()

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Variables win over the file; there is no .env file and no secrets folder."""
        del settings_cls, dotenv_settings, file_secret_settings
        return (env_settings, init_settings)


def load(file: Path | None = None, environment: Mapping[str, str] | None = None) -> Settings:
    """Settings from `file` (must exist), else from the system's file if there is one, under the variables.

    Raises BadSettings for a file that cannot be read, an unknown key (naming the nearest one) or a bad value.
    """
    path = file or (SYSTEM_FILE if SYSTEM_FILE.exists() else None)
    _check_variables(os.environ if environment is None else environment)
    written = _read(path) if path else {}
    try:
        return Settings(**written)
    except ValidationError as error:
        known = [f"{table}.{key}" for table, key, _, _ in keys()]
        raise BadSettings(_sentence(error, path, known)) from error


def read_policy(file: Path) -> Policy:
    """The policy that a TOML file of its own holds: the keys of `[policy]`, under that heading or without it.

    Raises BadSettings for a file that cannot be read, an unknown key (naming the nearest one) or a bad value.
    """
    written = _read(file)
    table = written["policy"] if written.keys() == {"policy"} else written
    try:
        return PolicyTable.model_validate(table).policy()
    except ValidationError as error:
        raise BadSettings(_sentence(error, file, list(PolicyTable.model_fields))) from error


def keys() -> Iterator[tuple[str, str, Any, str]]:
    """(table, key, default, description) of every setting, in order; `[[tokens]]` has no defaults."""
    tables: tuple[tuple[str, type[BaseModel]], ...] = (
        ("service", ServiceTable),
        ("forecast", ForecastTable),
        ("retention", RetentionTable),
        ("policy", PolicyTable),
        ("tokens", TokenTable),
    )
    for table, model in tables:
        for name, field in model.model_fields.items():
            default = None if field.is_required() or field.default_factory else field.default
            yield table, name, default, field.description or ""


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise BadSettings(f"{path} does not exist; give --config a file that does") from None
    except (OSError, UnicodeDecodeError) as error:
        raise BadSettings(f"{path} cannot be read: {error}; make it a readable UTF-8 file") from error
    except tomllib.TOMLDecodeError as error:
        raise BadSettings(f"{path} is not TOML: {error}; correct that line") from error


def _check_variables(environment: Mapping[str, str]) -> None:
    tables = {name.upper() for name in Settings.model_fields}
    for name in environment:
        if not name.upper().startswith(PREFIX) or name in NOT_SETTINGS:
            continue
        if name.upper().removeprefix(PREFIX).split("__")[0] not in tables:
            near = _nearest(
                name.upper(), [f"{PREFIX}{table.upper()}__{key.upper()}" for table, key, _, _ in keys()]
            )
            raise BadSettings(f"the variable {name} is no setting; {near}")


def _sentence(error: ValidationError, path: Path | None, known: list[str]) -> str:
    """Every complaint in one sentence, each with its place and what would do."""
    source = str(path) if path else "the environment"
    told = []
    for item in error.errors():
        place = ".".join(str(part) for part in item["loc"])
        if item["type"] == "extra_forbidden":
            told.append(f"unknown key {place}; {_nearest(place, known)}")
        else:
            told.append(f"{place}: {item['msg'][:1].lower()}{item['msg'][1:]} (given: {item['input']!r})")
    return f"{source}: {'; '.join(told)}"


def _nearest(name: str, known: list[str]) -> str:
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    return f"did you mean {close[0]}?" if close else "remove it (`predrain config show` lists the settings)"
