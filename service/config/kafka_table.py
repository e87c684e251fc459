"""`[kafka]`: the brokers, our identity there, and the settings of the topics."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from predrain.data.log.log_port import Topic
from predrain.service.config.secret_file import read_secret_file

if TYPE_CHECKING:
    from predrain.data.log.kafka import Broker, TopicShape


class KafkaTable(BaseModel):
    """`[kafka]`. The log is kept in Kafka if `bootstrap_servers` is set; the local file is not used then.

    Partitions bound the number of processes of a group that can share a topic. 6,000 disks read hourly are 1.7
    readings/s, 100,000 are 28; a worker on one core processes some thousands a second. So several workers are
    needed only to catch up, after a night's outage or with a new bundle: 12 partitions are shared evenly by 1, 2,
    3, 4, 6 or 12 workers. Latency is one record per host and minute: 5/s from 300 hosts, 83/s from 5,000.
    Announcements, samples of drains and dead letters are a few a minute in either case: one partition keeps them
    in one order. Adding partitions later moves drives from one partition to another and breaks their order while
    both hold records, so the numbers are for a cluster's whole life.

    Retention, with 0.7 kB a reading and 1.05 kB for one minute of a host with 20 OSDs, as a broker keeps them
    (`python -m tests.bench.stored_bytes`): 7 days of readings are 0.7 GB for 6,000 disks and 12 GB for 100,000, and
    workers may be down for that week. A day of latency is 0.45 GB for 300 hosts and 7.5 GB for 5,000, and older
    latencies decide nothing. All this is multiplied by the replicas. History (announcements, samples of drains,
    dead letters) is kept as long as in the store.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    bootstrap_servers: tuple[str, ...] = Field(
        default=(), description="Brokers as `host:port`; the log is a local file while there is none."
    )
    security: Literal["plaintext", "tls", "scram"] = Field(
        default="plaintext",
        description="`plaintext`; `tls`, with `certificate` and `key` where brokers demand them; or `scram`: "
        "SCRAM-SHA-512 with `user` and `password_file`, over TLS.",
    )
    ca: Path | None = Field(
        default=None,
        description="PEM file of who signed the brokers' certificates; the system's when not set.",
    )
    certificate: Path | None = Field(default=None, description="PEM file of our certificate, for mutual TLS.")
    key: Path | None = Field(default=None, description="PEM file of its key, without a password.")
    user: str = Field(default="", description="User of SCRAM.")
    password_file: Path | None = Field(
        default=None, description="File (0600) with the user's password; its last line break does not count."
    )
    prefix: str = Field(
        default="predrain.",
        pattern=r"^[a-zA-Z0-9._-]{0,100}$",
        description="Prefix of the names of topics and groups.",
    )
    timeout_seconds: float = Field(
        default=10.0,
        ge=1,
        le=300,
        description="Seconds after which a broker that does not answer is called away.",
    )
    replication_factor: int = Field(
        default=3, ge=1, le=15, description="Brokers that hold each record; no more than there are."
    )
    min_insync_replicas: int = Field(
        default=2,
        ge=1,
        le=15,
        description="Of them, those that must have a record before it is acknowledged.",
    )
    readings_partitions: int = Field(
        default=12, ge=1, le=1000, description="Partitions of the readings: processes that can share them."
    )
    readings_days: float = Field(
        default=7.0, ge=1, description="Days that readings are kept: how long workers may stand still."
    )
    latency_partitions: int = Field(
        default=12, ge=1, le=1000, description="Partitions of the OSDs' latencies."
    )
    latency_days: float = Field(
        default=1.0, gt=0, description="Days that OSDs' latencies are kept in the log."
    )
    history_days: float = Field(
        default=400.0,
        ge=1,
        description="Days that announcements, samples of drains and dead letters are kept.",
    )

    @model_validator(mode="after")
    def _as_many_in_sync_as_there_are(self) -> KafkaTable:
        if self.min_insync_replicas > self.replication_factor:
            raise ValueError("min_insync_replicas cannot be more than replication_factor")
        if (self.certificate is None) != (self.key is None):
            raise ValueError("set certificate and key together")
        if self.security == "scram" and (not self.user or self.password_file is None):
            raise ValueError("security scram needs user and password_file")
        return self

    def make_broker(self) -> Broker:
        """Return the brokers of the settings, with our credentials. Raises NoSecret."""
        from predrain.data.log.kafka import Broker

        return Broker(
            self.bootstrap_servers,
            self.security,
            ca=self.ca,
            certificate=self.certificate,
            key=self.key,
            user=self.user,
            password=read_secret_file(self.password_file, "password_file of [kafka]")
            if self.password_file
            else "",
            prefix=self.prefix,
            timeout_seconds=self.timeout_seconds,
        )

    def make_topic_shapes(self) -> Mapping[Topic, TopicShape]:
        """Return the partitions and the retention of each topic."""
        from predrain.data.log.kafka import TopicShape

        history = TopicShape(1, timedelta(days=self.history_days))
        return {
            Topic.READINGS: TopicShape(self.readings_partitions, timedelta(days=self.readings_days)),
            Topic.LATENCY: TopicShape(self.latency_partitions, timedelta(days=self.latency_days)),
            Topic.OUTLOOKS: history,
            Topic.ACTIONS: history,
            Topic.DEAD_LETTERS: history,
        }
