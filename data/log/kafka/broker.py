"""Where the brokers are, who we are there, and what can be wrong with that."""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from predrain.data.log.port import LogFull, Topic
from predrain.data.refusal import Refusal
from predrain.data.wire import LONGEST

Security = Literal["plaintext", "tls", "scram"]

SCRAM = "SCRAM-SHA-512"
LONGEST_RECORD = 2 * LONGEST + (1 << 16)
"""Bytes of a key and a value: a dead letter's envelope, the longest there is, and its key."""
LONGEST_BATCH = LONGEST_RECORD + (1 << 16)
"""Bytes of what is sent for one partition in one go: the topics' `max.message.bytes`."""


class BrokerAway(LogFull, Refusal):
    """No broker answers; what was accepted before is safe, what is refused now must be sent again."""

    @classmethod
    def silent(cls, error: Exception) -> BrokerAway:
        """For a broker that greets and then leaves a question unanswered."""
        return cls(f"the broker did not answer in time ({said(error)}); see its log, it is asked again")


class BrokerRefuses(LogFull, Refusal):
    """A broker answers but will not have us: password, certificate, rights, or another protocol."""


class TopicMissing(LogFull, Refusal):
    """The broker has no such topic; it is not made in passing, since its partitions would be the broker's choice."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"the broker has no topic {name}, or does not show it to us: make it with `predrain topics create`, or let"
            " our user describe, read and write it"
        )


class RecordTooLong(LogFull, Refusal):
    """A record that no topic of ours takes; nothing of its batch was sent."""


@dataclass(frozen=True, slots=True)
class Broker:
    """A cluster of brokers as one client sees it.

    `security`: `plaintext`; `tls`, with `certificate` and `key` where brokers demand them (mutual TLS); or `scram`,
    which is SCRAM-SHA-512 with `user` and `password`, always over TLS. `ca` is the PEM file of who signed the
    brokers' certificates, the system's authorities where it is None. An append that is not acknowledged within
    `timeout_seconds` is refused; a read waits no longer than that for a broker either.
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

    def topic(self, topic: Topic) -> str:
        """What `topic` is called on the broker."""
        return self.prefix + topic.value

    def addresses(self) -> tuple[tuple[str, int], ...]:
        """Host and port of each of `bootstrap`. Raises BrokerRefuses for what is no `host:port`."""
        found = []
        for address in self.bootstrap:
            host, _, port = address.rpartition(":")
            if not host or not port.isascii() or not port.isdigit() or not 0 < int(port) < 1 << 16:
                raise BrokerRefuses(
                    f"{address!r} is no address of a broker: write it as host:port in bootstrap"
                )
            found.append((host.strip("[]"), int(port)))
        if not found:
            raise BrokerRefuses("no broker is named: set bootstrap to host:port of at least one")
        return tuple(found)

    def context(self) -> ssl.SSLContext | None:
        """How TLS is spoken; None where it is not. Raises BrokerRefuses for files that cannot be used."""
        if self.security == "plaintext":
            return None
        try:
            context = ssl.create_default_context(cafile=self.ca)
        except (OSError, ssl.SSLError) as error:
            raise BrokerRefuses(
                f"the authority's certificate {self.ca} cannot be used ({_why(error)}): set ca to the PEM file of who"
                " signed the brokers' certificates"
            ) from error
        if self.certificate is not None:
            try:
                context.load_cert_chain(self.certificate, self.key, password=lambda: b"")
            except (OSError, ssl.SSLError) as error:
                raise BrokerRefuses(
                    f"the client's certificate {self.certificate} with its key {self.key or 'in it'} cannot be used"
                    f" ({_why(error)}): set certificate and key to PEM files that belong together, without a password"
                ) from error
        return context

    def options(self) -> dict[str, Any]:
        """What every client of kafka-python is given."""
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
            "ssl_context": self.context(),
            "bootstrap_timeout_ms": self.milliseconds,
            "reconnect_backoff_max_ms": 1_000,
            **(secret if self.security == "scram" else {}),
        }

    @property
    def milliseconds(self) -> int:
        """`timeout_seconds` as the client takes it."""
        return round(self.timeout_seconds * 1_000)


def making_none(cluster: Any) -> None:
    """What a client asks about topics makes none: kafka-python does not hand its own word for that through."""
    cluster.config["allow_auto_create_topics"] = False


def said(error: Exception) -> str:
    """What the client says is wrong, to stand in a sentence."""
    return str(error).rstrip(".") or type(error).__name__


def _why(error: OSError) -> str:
    return (error.reason if isinstance(error, ssl.SSLError) else error.strerror) or str(error)
