"""The brokers' addresses, this client's credentials, and the errors of both."""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from predrain.data.log.log_port import LONGEST, LogFull, Topic
from predrain.data.refusal import Refusal

Security = Literal["plaintext", "tls", "scram"]

SCRAM = "SCRAM-SHA-512"
LONGEST_RECORD = 2 * LONGEST + (1 << 16)
"""Bytes of a key and a value: the envelope of a dead letter, which is the longest there is, and its key."""
LONGEST_BATCH = LONGEST_RECORD + (1 << 16)
"""Most bytes that are sent for one partition at once: the topics' `max.message.bytes`."""


class BrokerAway(LogFull, Refusal):
    """No broker answers. Accepted records are safe; records that are refused now must be sent again."""

    @classmethod
    def from_unanswered(cls, error: Exception) -> BrokerAway:
        """Build the error for a broker that accepts a connection and then leaves a request unanswered."""
        return cls(
            f"the broker did not answer in time ({describe_kafka_error(error)}); see its log, it is asked again"
        )


class BrokerRefuses(LogFull, Refusal):
    """A broker answers but refuses this client: password, certificate, rights, or another protocol."""


class TopicMissing(LogFull, Refusal):
    """The broker has no such topic. It is not created on the fly, since the broker would choose its partitions."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"the broker has no topic {name}, or does not show it to us: make it with `predrain topics create`, or let"
            " our user describe, read and write it"
        )


class RecordTooLong(LogFull, Refusal):
    """A record is too long for every topic; no record of its batch was sent."""


@dataclass(frozen=True, slots=True)
class Broker:
    """A cluster of brokers as one client sees it.

    `security` is `plaintext`; or `tls`, with `certificate` and `key` if brokers demand them (mutual TLS); or `scram`,
    which is SCRAM-SHA-512 with `user` and `password`, always over TLS. `ca` is the PEM file of the authority that
    signed the brokers' certificates; None means the system's authorities. An append that is not acknowledged within
    `timeout_seconds` is refused; a read also waits no longer than that for a broker.
    """

    bootstrap: tuple[str, ...]
    security: Security = "plaintext"
    ca: Path | None = None
    certificate: Path | None = None
    key: Path | None = None
    user: str = ""
    password: str = field(default="", repr=False)
    prefix: str = "predrain."
    timeout_seconds: float = 10.0

    def broker_topic_name(self, topic: Topic) -> str:
        """Return the name of `topic` on the broker."""
        return self.prefix + topic.value

    def parse_addresses(self) -> tuple[tuple[str, int], ...]:
        """Return host and port of each address in `bootstrap`. Raises BrokerRefuses if one is no `host:port`."""
        found = []
        for address in self.bootstrap:
            host, _, port = address.rpartition(":")
            if not host or not port.isascii() or not port.isdigit() or not 0 < int(port) < 1 << 16:
                raise BrokerRefuses(
                    f"{address!r} is no address of a broker: write it as host:port in bootstrap_servers"
                )
            found.append((host.strip("[]"), int(port)))
        if not found:
            raise BrokerRefuses("no broker is named: set bootstrap_servers to host:port of at least one")
        return tuple(found)

    def build_ssl_context(self) -> ssl.SSLContext | None:
        """Return the TLS context, or None without TLS. Raises BrokerRefuses for files that cannot be used."""
        if self.security == "plaintext":
            return None
        try:
            context = ssl.create_default_context(cafile=self.ca)
        except (OSError, ssl.SSLError) as error:
            raise BrokerRefuses(
                f"the authority's certificate {self.ca} cannot be used ({_describe_os_error(error)}): set "
                "ca to the PEM file of who"
                " signed the brokers' certificates"
            ) from error
        if self.certificate is not None:
            try:
                context.load_cert_chain(self.certificate, self.key, password=lambda: b"")
            except (OSError, ssl.SSLError) as error:
                raise BrokerRefuses(
                    f"the client's certificate {self.certificate} with its key {self.key or 'in it'} "
                    "cannot be used"
                    f" ({_describe_os_error(error)}): set certificate and key to PEM files that belong "
                    "together, without a password"
                ) from error
        return context

    def build_client_options(self) -> dict[str, Any]:
        """Return the options for every client of kafka-python."""
        protocol = {"plaintext": "PLAINTEXT", "tls": "SSL", "scram": "SASL_SSL"}[self.security]
        secret = {
            "sasl_mechanism": SCRAM,
            "sasl_plain_username": self.user,
            "sasl_plain_password": self.password,
        }
        return {
            "bootstrap_servers": list(self.bootstrap),
            "client_id": "predrain",
            "security_protocol": protocol,
            "ssl_context": self.build_ssl_context(),
            "bootstrap_timeout_ms": self.timeout_milliseconds,
            "reconnect_backoff_max_ms": 1_000,
            **(secret if self.security == "scram" else {}),
        }

    @property
    def timeout_milliseconds(self) -> int:
        """`timeout_seconds` in the client's unit, ms."""
        return round(self.timeout_seconds * 1_000)


def making_none(cluster: Any) -> None:
    """Keep the client's metadata requests from creating topics: kafka-python does not pass its own
    option for that on.
    """
    cluster.config["allow_auto_create_topics"] = False


def describe_kafka_error(error: Exception) -> str:
    """Return the client's error text, worded to stand in a sentence."""
    return str(error).rstrip(".") or type(error).__name__


def _describe_os_error(error: OSError) -> str:
    return (error.reason if isinstance(error, ssl.SSLError) else error.strerror) or str(error)
