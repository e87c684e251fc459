"""Settings: one TOML file and `PREDRAIN_*` variables; every key has a unit, a default and a sentence."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    IPvAnyNetwork,
    SecretStr,
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

from predrain.actions.core.drain_policy import Policy
from predrain.data.refusal import Refusal
from predrain.data.residence import ResidenceLimits
from predrain.service.config import collector_table as collector
from predrain.service.config.access_table import AccessTable, OidcTable
from predrain.service.config.clusters_table import ClustersTable
from predrain.service.config.collector_table import NOT_SETTINGS, PREFIX, explain_unusable_number
from predrain.service.config.kafka_table import KafkaTable
from predrain.service.config.notification_tables import MailTable, WebhookTable
from predrain.service.config.policy_table import PolicyTable
from predrain.service.config.receiver_tables import (
    AlertmanagerTable,
    NamedReceivers,
    OpsgenieTable,
    PagerDutyTable,
    SlackTable,
    TeamsTable,
)
from predrain.service.config.renamed_settings import describe_unknown_key, suggest_nearest_key
from predrain.service.config.self_tests_table import SelfTestsTable
from predrain.service.config.state_directory import default_state


class StoreTable(BaseModel):
    """`[store]`: the database; without one a SQLite file in the state directory."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    url: SecretStr | None = Field(
        default=None,
        description="PostgreSQL database of the store, `postgresql://USER@HOST:PORT/DATABASE`, made ready by `predrain "
        "store migrate`; its password belongs in `~/.pgpass` or PGPASSFILE. A file in the state directory when it is "
        "not set.",
    )


SYSTEM_FILE = Path("/etc/predrain/predrain.toml")
DAYS_A_YEAR = 365.25
REMOVE = "remove it (`predrain config show` lists the settings)"
"""The cure for a key that resembles no setting."""


class BadSettings(Refusal):
    """A settings file or variable that cannot be used; the sentence names the key and the cure."""


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


NAME = "NAME"
"""The name of a table that a person names, where no name is known."""


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
    cluster_name: str = Field(default="ceph", description="Name of the cluster on the page and in messages.")
    external_url: str = Field(
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
    trusted_proxies: tuple[IPvAnyNetwork, ...] = Field(
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
        if value == "":  # as a path, "" is the current directory, whichever that is
            raise ValueError("name a directory, or leave it out")
        return value

    @field_validator("trusted_proxies")
    @classmethod
    def _not_everybody(cls, value: tuple[IPvAnyNetwork, ...]) -> tuple[IPvAnyNetwork, ...]:
        if any(one.prefixlen == 0 for one in value):
            raise ValueError("name each proxy: a proxy may claim any address")
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
    tracking_uri: str | None = Field(
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
    confirm_host_after_hours: float = Field(
        default=24.0,
        gt=0,
        description="Hours for which two hosts name one disk at the same time until a person is asked which of them "
        "has it (`predrain disk host`).",
    )

    @property
    def residence_limits(self) -> ResidenceLimits:
        """The time limits of the rule that decides in which host a disk lives."""
        return ResidenceLimits(
            timedelta(hours=self.moved_after_hours), timedelta(hours=self.confirm_host_after_hours)
        )


class RetentionTable(_Table):
    """`[retention]`: how long what is past is kept; it is dropped once a day."""

    history_days: float = Field(
        default=400.0,
        ge=90,
        description="Days that readings, outlooks, events, changes in the lives of disks, outcomes, the scorebook of "
        "bundles, announcements, drains' curves and dead letters are kept. A disk's newest reading, outlook and "
        "change, its last announcement, its newest outcome by kind and source, a slot's newest change, drains and "
        "journals stay for ever.",
    )
    audit_days: float = Field(
        default=400.0, ge=30, description="Days that the audit of what was asked, and by whom, is kept."
    )
    latency_days: float = Field(default=7.0, ge=1, description="Days that OSDs' latencies are kept.")
    log_days: float = Field(
        default=7.0, ge=0, description="Days that the log keeps readings that the worker has taken."
    )
    archive: Path | None = Field(
        default=None,
        description="Folder to which the readings of each day are written before they are thinned to one a day, "
        "90 days later; nothing is archived when it is not set.",
    )
    archive_years: float = Field(
        default=5.0,
        gt=0,
        le=100,
        description="Years that a day stays in the archive, counted from its newest day; not below `history_days`.",
    )

    @field_validator("archive", mode="before")
    @classmethod
    def _in_a_folder(cls, value: object) -> object:
        if value == "":  # as a path, "" is the current directory, whichever that is
            raise ValueError("name a folder, or leave it out")
        return value

    @model_validator(mode="after")
    def _archived_until_dropped(self) -> RetentionTable:
        if self.archive is not None and self.archive_years * DAYS_A_YEAR < self.history_days:
            raise ValueError("archive_years must be as long as history_days, or longer")
        return self


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
    executor_key: Path | None = Field(
        default=None,
        description="File with the key that the mgr module has as `executor_key`: commands then go through the module, "
        "and the cephx user needs to read only.",
    )
    signing_key: Path | None = Field(
        default=None,
        description="File with the key that signs what controllers keep in the cluster, the same for all controllers "
        "and pages; `executor_key`, else one that the first start makes in the state directory, when it is not set.",
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
        collector.check_collector_table(values)
    except collector.BadCollectorSettings as refused:
        raise ValueError(str(refused).removeprefix("the settings: ")) from refused
    return values


class _Variables(EnvSettingsSource):
    """The variables. A value that should be JSON and is not is taken as a plain word, and its key judges it."""

    def decode_complex_value(self, field_name: str, field: Any, value: Any) -> Any:
        """Decode `value` as JSON, or return it as it is."""
        try:
            return super().decode_complex_value(field_name, field, value)
        except ValueError:
            return value


class Settings(BaseSettings):
    """All settings. Variables: `PREDRAIN_SERVICE__PORT=9000` sets `port` of `[service]`."""

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
    slack: NamedReceivers[SlackTable] = Field(default_factory=dict)
    teams: NamedReceivers[TeamsTable] = Field(default_factory=dict)
    pagerduty: NamedReceivers[PagerDutyTable] = Field(default_factory=dict)
    opsgenie: NamedReceivers[OpsgenieTable] = Field(default_factory=dict)
    alertmanager: NamedReceivers[AlertmanagerTable] = Field(default_factory=dict)
    access: AccessTable = AccessTable()
    oidc: OidcTable = OidcTable()
    clusters: ClustersTable = ClustersTable()
    self_tests: SelfTestsTable = SelfTestsTable()
    policy: PolicyTable = PolicyTable()

    @model_validator(mode="after")
    def _people_come_back(self) -> Settings:
        if self.oidc.issuer and not self.service.external_url:
            raise ValueError(
                "issuer of [oidc] needs external_url of [service], where the provider sends people back to"
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
        """Use variables before the file; there is no .env file and no secrets directory."""
        del env_settings, dotenv_settings, file_secret_settings
        return (_Variables(settings_cls), init_settings)


def load_settings(file: Path | None = None, environment: Mapping[str, str] | None = None) -> Settings:
    """Load the settings from `file` (must exist), else from the system's file if there is one, under the
    variables.

    Raises BadSettings for a file that cannot be read, an unknown key (naming the nearest one) or a bad value.
    """
    path = file or (SYSTEM_FILE if SYSTEM_FILE.exists() else None)
    variables = os.environ if environment is None else environment
    _check_variables(variables)
    written = _read_toml_file(path) if path else {}
    try:
        settings = Settings(**written)
    except ValidationError as error:
        known = [f"{table}.{key}" for table, key, _, _ in list_setting_keys()]
        raise BadSettings(_describe_validation_error(error, path, known, variables)) from error
    for table in Settings.model_fields:
        for key, value in dict(getattr(settings, table)).items():
            if why := explain_unusable_number(key, value):
                raise BadSettings(f"{path or 'the environment'}: {table}.{key}: {why}")
    return settings


def read_policy(file: Path) -> Policy:
    """Read a policy from a TOML file of its own: the keys of `[policy]`, under that heading or without it.

    Raises BadSettings for a file that cannot be read, an unknown key (naming the nearest one) or a bad value.
    """
    written = _read_toml_file(file)
    table = written["policy"] if written.keys() == {"policy"} else written
    try:
        return PolicyTable.model_validate(table).to_policy()
    except ValidationError as error:
        known = [f"policy.{key}" for key in PolicyTable.model_fields]
        raise BadSettings(_describe_validation_error(error, file, known, within=("policy",))) from error


def find_table_model(table: str) -> type[BaseModel] | None:
    """Return the model of one table of the settings, or of each table below it if a person names them; None for
    `[collector]`, whose settings msgspec reads.
    """
    annotation = Settings.model_fields[table].annotation
    model = get_args(annotation)[-1] if get_args(annotation) else annotation
    return model if isinstance(model, type) and issubclass(model, BaseModel) else None


def is_table_named(table: str) -> bool:
    """Return whether a person names the tables of this kind, as `[slack.NAME]`."""
    model = find_table_model(table)
    return model is not None and model is not Settings.model_fields[table].annotation


def list_setting_keys() -> Iterator[tuple[str, str, Any, str]]:
    """Yield (table, key, default, description) of every setting, in order."""
    for table in Settings.model_fields:
        if (model := find_table_model(table)) is None:
            continue
        written = f"{table}.{NAME}" if is_table_named(table) else table
        for name, field in model.model_fields.items():
            default = None if field.is_required() or field.default_factory else field.default
            yield written, name, default, field.description or ""
    for name, default, told in collector.list_collector_keys():
        yield "collector", name, default, told


def _read_toml_file(path: Path) -> dict[str, Any]:
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
            near = suggest_nearest_key(
                name.upper(),
                [f"{PREFIX}{table.upper()}__{key.upper()}" for table, key, _, _ in list_setting_keys()],
                REMOVE,
            )
            raise BadSettings(f"the variable {name} is no setting; {near}")


def _describe_validation_error(
    error: ValidationError,
    path: Path | None,
    known: list[str],
    variables: Iterable[str] = (),
    within: tuple[str, ...] = (),
) -> str:
    """Describe every complaint in one sentence, each with its place and its cure. within: the table that was read."""
    source = str(path) if path else "the environment"
    said_by = {name.upper(): name for name in variables}
    told = []
    for item in error.errors():
        place = ".".join(str(part) for part in (*within, *item["loc"]))
        variable = said_by.get(PREFIX + "__".join(str(part) for part in item["loc"][:2]).upper())
        where = f"the variable {variable}" if variable else source
        if item["type"] == "extra_forbidden":
            told.append(f"{where}: {describe_unknown_key(place, known, REMOVE)}")
        else:
            message = item["msg"].removeprefix("Value error, ")
            # The input of a table says nothing about the fault in it, and may hold a secret.
            given = "" if isinstance(item["input"], Mapping) else f" (given: {item['input']!r})"
            wrong = f"{message[:1].lower()}{message[1:]}{given}"
            told.append(f"{where}: {place}: {wrong}{_AS_JSON.get(item['type'], '') if variable else ''}")
    return "; ".join(told)


_AS_JSON = {
    "tuple_type": """; a variable says it as JSON, '["one", "two"]' or '[22, 6]'""",
    "model_type": "; each key has a variable of its own, with two underscores before its name",
}
"""The form of a value in a variable that is not a single word, by the kind of complaint."""
