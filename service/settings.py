"""Settings: one TOML file and `PREDRAIN_*` variables; every key has a unit, a default and a sentence."""

from __future__ import annotations

import difflib
import os
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    IPvAnyNetwork,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic_settings import (
    BaseSettings,
    EnvSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

from predrain.actions.core.policy import Policy
from predrain.data.refusal import Refusal
from predrain.data.residence import ResidenceLimits
from predrain.service.limits import PolicyTable
from predrain.service.state_directory import default_state
from predrain.service.tables import collector
from predrain.service.tables.access import AccessTable, OidcTable
from predrain.service.tables.collector import NOT_SETTINGS, PREFIX
from predrain.service.tables.kafka import KafkaTable
from predrain.service.tables.spans import endless
from predrain.service.tables.store import StoreTable
from predrain.service.tables.telling import MailTable, WebhookTable

SYSTEM_FILE = Path("/etc/predrain/predrain.toml")


class BadSettings(Refusal):
    """A settings file or variable that cannot be used; the sentence names the key and the cure."""


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ServiceTable(_Table):
    """`[service]`: where it listens and what it keeps."""

    host: str = Field(default="127.0.0.1", description="Address to listen on.")
    port: int = Field(default=8080, ge=0, le=65535, description="TCP port to listen on; 0 takes a free one.")
    metrics_port: int | None = Field(
        default=None,
        ge=0,
        le=65535,
        description="TCP port of `host` on which `predrain work` and `predrain control` answer `GET /metrics`, and "
        "nothing else; 0 takes a free one; they listen nowhere when it is not set.",
    )
    state: Path = Field(
        default_factory=default_state,
        description="Directory of log, store and token (default: systemd's `STATE_DIRECTORY`, else "
        "`~/.local/state/predrain`).",
    )
    cluster_name: str = Field(default="ceph", description="What the page and messages call the cluster.")
    address: str = Field(
        default="",
        pattern=r"^$|^https?://[^\s/]+",
        description="Where people find the page, `https://predrain.example.org`: the links of messages.",
    )
    tls_certificate: Path | None = Field(
        default=None, description="PEM file of the certificate chain; TLS when it is set."
    )
    tls_key: Path | None = Field(default=None, description="PEM file of its key.")
    allowed_hosts: tuple[str, ...] = Field(
        default=(), description="Names besides the loopback ones that the Host header may carry."
    )
    proxies: tuple[IPvAnyNetwork, ...] = Field(
        default=(),
        description="Addresses or networks of the proxies before the service; only their `X-Forwarded-For` and "
        "`X-Forwarded-Proto` are believed.",
    )
    insecure_without_tls: bool = Field(
        default=False,
        description="Listen beyond loopback although tokens then cross the network in the clear.",
    )
    body_limit_bytes: int = Field(
        default=16 * 1024 * 1024,
        ge=1024,
        description="Largest body of a collector's delivery, in bytes; other bodies are at most 64 KiB.",
    )

    @field_validator("state", mode="before")
    @classmethod
    def _somewhere(cls, value: object) -> object:
        if value == "":  # as a path it is the folder that somebody happens to be in
            raise ValueError("name a directory, or leave it out")
        return value

    @field_validator("proxies")
    @classmethod
    def _not_everybody(cls, value: tuple[IPvAnyNetwork, ...]) -> tuple[IPvAnyNetwork, ...]:
        if any(one.prefixlen == 0 for one in value):
            raise ValueError("name the proxies: whoever is one may claim any address")
        return value

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
    moved_after_hours: float = Field(
        default=6.0,
        gt=0,
        description="Hours of silence of a disk's host after which another host that reads the disk is its home, where "
        "the cluster does not tell; more than `reading_interval_hours`.",
    )
    ask_home_after_hours: float = Field(
        default=24.0,
        gt=0,
        description="Hours for which two hosts name one disk at the same time until a person is asked which of them "
        "has it (`predrain disk home`).",
    )

    @property
    def residence_limits(self) -> ResidenceLimits:
        """The named times of the rule which host a disk lives in."""
        return ResidenceLimits(
            timedelta(hours=self.moved_after_hours), timedelta(hours=self.ask_home_after_hours)
        )


class RetentionTable(_Table):
    """`[retention]`: how long what is past is kept; it is dropped once a day."""

    history_days: float = Field(
        default=400.0,
        ge=90,
        description="Days that readings, outlooks, events, changes in the lives of disks, outcomes, the scorebook of "
        "bundles, announcements, drains' curves and dead letters are kept. A disk's newest reading, outlook and "
        "change, its newest outcome by fate and source, a slot's newest change, drains and journals stay for ever.",
    )
    audit_days: float = Field(
        default=400.0, ge=30, description="Days that the audit of what was asked, and by whom, is kept."
    )
    latency_days: float = Field(default=7.0, ge=1, description="Days that OSDs' latencies are kept.")
    log_days: float = Field(
        default=7.0, ge=0, description="Days that the log keeps readings that the worker has taken."
    )


class CephTable(_Table):
    """`[ceph]`: the cluster, found as Ceph's own tools find it; without one there are forecasts only."""

    conf: Path | None = Field(
        default=None,
        description="Ceph's configuration file; `CEPH_CONF`, else `/etc/ceph/NAME.conf`, when it is not set.",
    )
    cluster_name: str = Field(default="ceph", description="Name of the cluster, as in its file names.")
    name: str = Field(
        default="client.predrain", description="Cephx user (`predrain ceph auth` prints how to make it)."
    )
    keyring: Path | None = Field(
        default=None, description="File with its key; where `conf` says when it is not set."
    )
    python: tuple[str, ...] = Field(
        default=(),
        description="Interpreter, with arguments, that has the cluster's release of python3-rados, such as "
        '`["/usr/bin/python3"]`; this one, else `/usr/bin/python3`, when it is empty.',
    )
    pool: str = Field(
        default="predrain",
        description="Pool of the lease and of the latency probe; it holds a few kilobytes.",
    )
    hand_key: Path | None = Field(
        default=None,
        description="File with the key that the mgr module has as `hand_key`: commands then go through the module, "
        "and the cephx user needs to read only.",
    )
    signing_key: Path | None = Field(
        default=None,
        description="File with the key that signs what controllers keep in the cluster, the same for all controllers "
        "and pages; `hand_key`, else one that the first start makes in the state directory, when it is not set.",
    )
    timeout_seconds: float = Field(
        default=20.0, gt=0, description="Seconds that one question to the cluster may take."
    )
    lease_seconds: float = Field(
        default=60.0,
        ge=15,
        description="Seconds after which another controller may take over from a silent one.",
    )


def _as_collectors_read_it(values: dict[str, Any]) -> dict[str, Any]:
    try:
        collector.check(values)
    except collector.BadCollectorSettings as refused:
        raise ValueError(str(refused).removeprefix("the settings: ")) from refused
    return values


class _Variables(EnvSettingsSource):
    """The variables; what should be JSON and is none is judged as the word that it is, by the key that it is for."""

    def decode_complex_value(self, field_name: str, field: Any, value: Any) -> Any:
        """What `value` means."""
        try:
            return super().decode_complex_value(field_name, field, value)
        except ValueError:
            return value


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
    ceph: CephTable = CephTable()
    kafka: KafkaTable = KafkaTable()
    store: StoreTable = StoreTable()
    collector: Annotated[dict[str, Any], AfterValidator(_as_collectors_read_it)] = Field(default_factory=dict)
    mail: MailTable = MailTable()
    webhook: WebhookTable = WebhookTable()
    access: AccessTable = AccessTable()
    oidc: OidcTable = OidcTable()
    policy: PolicyTable = PolicyTable()

    @model_validator(mode="after")
    def _people_come_back(self) -> Settings:
        if self.oidc.issuer and not self.service.address:
            raise ValueError(
                "issuer of [oidc] needs address of [service], where the provider sends people back to"
            )
        return self

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
        del env_settings, dotenv_settings, file_secret_settings
        return (_Variables(settings_cls), init_settings)


def load(file: Path | None = None, environment: Mapping[str, str] | None = None) -> Settings:
    """Settings from `file` (must exist), else from the system's file if there is one, under the variables.

    Raises BadSettings for a file that cannot be read, an unknown key (naming the nearest one) or a bad value.
    """
    path = file or (SYSTEM_FILE if SYSTEM_FILE.exists() else None)
    variables = os.environ if environment is None else environment
    _check_variables(variables)
    written = _read(path) if path else {}
    try:
        settings = Settings(**written)
    except ValidationError as error:
        known = [f"{table}.{key}" for table, key, _, _ in keys()]
        raise BadSettings(_sentence(error, path, known, variables)) from error
    for table in Settings.model_fields:
        for key, value in dict(getattr(settings, table)).items():
            if why := endless(key, value):
                raise BadSettings(f"{path or 'the environment'}: {table}.{key}: {why}")
    return settings


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
    """(table, key, default, description) of every setting, in order."""
    tables: tuple[tuple[str, type[BaseModel]], ...] = (
        ("service", ServiceTable),
        ("forecast", ForecastTable),
        ("retention", RetentionTable),
        ("ceph", CephTable),
        ("kafka", KafkaTable),
        ("store", StoreTable),
        ("mail", MailTable),
        ("webhook", WebhookTable),
        ("access", AccessTable),
        ("oidc", OidcTable),
        ("policy", PolicyTable),
    )
    for table, model in tables:
        for name, field in model.model_fields.items():
            default = None if field.is_required() or field.default_factory else field.default
            yield table, name, default, field.description or ""
    for name, default, told in collector.described():
        yield "collector", name, default, told


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


def _sentence(
    error: ValidationError, path: Path | None, known: list[str], variables: Iterable[str] = ()
) -> str:
    """Every complaint in one sentence, each with its place and what would do."""
    source = str(path) if path else "the environment"
    said_by = {name.upper(): name for name in variables}
    told = []
    for item in error.errors():
        place = ".".join(str(part) for part in item["loc"])
        variable = said_by.get(PREFIX + "__".join(str(part) for part in item["loc"][:2]).upper())
        where = f"the variable {variable}" if variable else source
        if item["type"] == "extra_forbidden":
            told.append(f"{where}: unknown key {place}; {_nearest(place, known)}")
        else:
            message = item["msg"].removeprefix("Value error, ")
            # All that a table holds says nothing of what is wrong in it, and may hold a secret.
            given = "" if isinstance(item["input"], Mapping) else f" (given: {item['input']!r})"
            wrong = f"{message[:1].lower()}{message[1:]}{given}"
            told.append(f"{where}: {place}: {wrong}{_AS_JSON.get(item['type'], '') if variable else ''}")
    return "; ".join(told)


_AS_JSON = {
    "tuple_type": """; a variable says it as JSON, '["one", "two"]' or '[22, 6]'""",
    "model_type": "; each key has a variable of its own, with two underscores before its name",
}
"""How a variable says what is no single word, by the kind of complaint."""


def _nearest(name: str, known: list[str]) -> str:
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    return f"did you mean {close[0]}?" if close else "remove it (`predrain config show` lists the settings)"
