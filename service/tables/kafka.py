"""`[kafka]`: where the brokers are, who we are there, and how the topics are made."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from predrain.data.log.port import Topic
from predrain.service.tables.secret import secret

if TYPE_CHECKING:
    from predrain.data.log.kafka import Broker, TopicShape


class KafkaTable(BaseModel):
    """`[kafka]`. The log is kept in Kafka when `bootstrap` is set; the local file is not used then.

    Partitions bound how many processes of a group can share a topic. 6,000 disks read hourly are 1.7 readings a
    second, 100,000 are 28; a worker on one core takes some thousands a second. So it is catching up, after a night's
    outage or with a new bundle, that wants several: 12 are shared evenly by 1, 2, 3, 4, 6 or 12. Latency is a record a
    host and minute: 5 a second from 300 hosts, 83 from 5,000. Announcements, samples of drains and dead letters are a
    few a minute in either: one partition keeps them in one order. More partitions later move drives from one to
    another and break their order while both hold records, so that these are for a cluster's whole life.

    Retention, with 0.7 kB a reading and 1.05 kB a host's minute of 20 OSDs, as a broker keeps them (`python -m
    tests.bench.sized`): 7 days of readings are 0.7 GB for 6,000 disks and 12 GB for 100,000, a week in which workers
    may stand still; a day of latency is 0.45 GB for 300 hosts and 7.5 GB for 5,000, and older latencies decide nothing.
    Times the replicas. What is history (announcements, samples of drains, dead letters) is kept as long as the store's.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    bootstrap: tuple[str, ...] = Field(
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
        description="What names of topics and groups begin with.",
    )
    timeout_seconds: float = Field(
        default=10.0,
        ge=1,
        le=300,
        description="Seconds after which a broker that does not answer is called away.",
    )
    replicas: int = Field(
        default=3, ge=1, le=15, description="Brokers that hold each record; no more than there are."
    )
    in_sync: int = Field(
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
        if self.in_sync > self.replicas:
            raise ValueError("in_sync cannot be more than replicas")
        if (self.certificate is None) != (self.key is None):
            raise ValueError("set certificate and key together")
        if self.security == "scram" and (not self.user or self.password_file is None):
            raise ValueError("security scram needs user and password_file")
        return self

    def broker(self) -> Broker:
        """Who is spoken to. Raises NoSecret."""
        from predrain.data.log.kafka import Broker

        return Broker(
            self.bootstrap,
            self.security,
            ca=self.ca,
            certificate=self.certificate,
            key=self.key,
            user=self.user,
            password=secret(self.password_file, "password_file of [kafka]") if self.password_file else "",
            prefix=self.prefix,
            timeout_seconds=self.timeout_seconds,
        )

    def shapes(self) -> Mapping[Topic, TopicShape]:
        """How each topic is made."""
        from predrain.data.log.kafka import TopicShape

        history = TopicShape(1, timedelta(days=self.history_days))
        return {
            Topic.READINGS: TopicShape(self.readings_partitions, timedelta(days=self.readings_days)),
            Topic.LATENCY: TopicShape(self.latency_partitions, timedelta(days=self.latency_days)),
            Topic.OUTLOOKS: history,
            Topic.ACTIONS: history,
            Topic.DEAD_LETTERS: history,
        }
