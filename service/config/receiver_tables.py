"""`[slack.NAME]`, `[teams.NAME]`, `[pagerduty.NAME]`, `[opsgenie.NAME]`, `[alertmanager.NAME]`: receivers of messages.

Of each kind there may be several, under names of the team's choice, each with a route of its own.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar
from urllib.parse import urlsplit

from pydantic import BeforeValidator, Field, StringConstraints

from predrain.data.refusal import Refusal
from predrain.service.config.secret_file import NoSecret, load_ca_tls_context, read_secret_file
from predrain.service.notifications.channel_table import MinSeverity, RouteTable

if TYPE_CHECKING:
    from predrain.service.notifications.receiver_channel import MessageRenderer, ReceiverChannel

URL_PATTERN = r"^https?://[^\s/?#]+(/[^\s?#]*)?$"


class AddressInTheClear(Refusal):
    """A receiver outside of the own network is named without TLS."""


class ReceiverTable(RouteTable):
    """Settings of one receiver."""

    allow_private_address: bool = Field(
        default=False, description="The address may be one that is not of the public network."
    )
    ca: Path | None = Field(
        default=None,
        description="PEM file of who signed the receiver's certificate; the system's when not set.",
    )

    def open_receiver(
        self, name: str, cluster: str, address: str, now: Callable[[], datetime]
    ) -> ReceiverChannel:
        """Open the channel. name: `slack.storage`; cluster: its name; address: of the page, for links.

        Raises NoSecret, NoAuthority, AddressInTheClear.
        """
        from predrain.service.notifications.cause import Severity
        from predrain.service.notifications.http_sender import HttpSender
        from predrain.service.notifications.message_texts import PageLinks
        from predrain.service.notifications.receiver_channel import MessagePlace, ReceiverChannel

        table = f"[{name}]"
        if self.ca:
            load_ca_tls_context(self.ca, f"ca of {table}")
        url, renderer, headers, secrets = self._open(table)
        if urlsplit(url).scheme == "http" and not self.allow_private_address:
            raise AddressInTheClear(
                f"the address of {table} is http, which sends messages in the clear: use https, or set "
                "allow_private_address for a receiver in your own network"
            )
        sender = HttpSender(
            f"the receiver {name} at", table, url, now, self.allow_private_address,
            str(self.ca) if self.ca else None, secrets,
        )  # fmt: skip
        place = MessagePlace(cluster, PageLinks(address))
        return ReceiverChannel(name, sender, renderer, place, Severity(self.min_severity), headers)

    @abstractmethod
    def _open(self, table: str) -> tuple[str, MessageRenderer, Mapping[str, str], tuple[str, ...]]:
        """Return the address, the renderer, the headers, and the secrets in them. Raises NoSecret."""


class SlackTable(ReceiverTable):
    """A channel of Slack, which an incoming webhook posts to."""

    url_file: Path = Field(
        description="File (0600) with the address of the incoming webhook, which is a secret."
    )

    def _open(self, table: str) -> tuple[str, MessageRenderer, Mapping[str, str], tuple[str, ...]]:
        from predrain.service.notifications.slack_message import SlackRenderer

        return _read_address_file(self.url_file, f"url_file of {table}"), SlackRenderer(), {}, ()


class TeamsTable(ReceiverTable):
    """A channel or chat of Microsoft Teams, which a webhook of Workflows posts to."""

    url_file: Path = Field(description="File (0600) with the address of the workflow, which is a secret.")

    def _open(self, table: str) -> tuple[str, MessageRenderer, Mapping[str, str], tuple[str, ...]]:
        from predrain.service.notifications.teams_card import TeamsRenderer

        return _read_address_file(self.url_file, f"url_file of {table}"), TeamsRenderer(), {}, ()


class PagerDutyTable(ReceiverTable):
    """A service of PagerDuty, by the Events API v2."""

    key_file: Path = Field(description="File (0600) with the integration key of the service.")
    url: str = Field(
        default="https://events.pagerduty.com/v2/enqueue",
        pattern=URL_PATTERN,
        description="Address of the Events API; `https://events.eu.pagerduty.com/v2/enqueue` in the EU.",
    )
    min_severity: MinSeverity = Field(
        default="urgent",
        description="`urgent`: what needs attention now; `notice`: also what can wait.",
    )

    def _open(self, table: str) -> tuple[str, MessageRenderer, Mapping[str, str], tuple[str, ...]]:
        from predrain.service.notifications.pagerduty_event import PagerDutyRenderer

        key = _read_header_secret(self.key_file, f"key_file of {table}")
        return self.url, PagerDutyRenderer(key), {}, (key,)


class OpsgenieTable(ReceiverTable):
    """An integration of Opsgenie, by the Alert API."""

    key_file: Path = Field(description="File (0600) with the API key of the integration.")
    url: str = Field(
        default="https://api.opsgenie.com",
        pattern=URL_PATTERN,
        description="Address of the API; `https://api.eu.opsgenie.com` in the EU.",
    )
    team: str = Field(
        default="", max_length=100, description="Team that alerts are for; the integration's own when empty."
    )
    min_severity: MinSeverity = Field(
        default="urgent",
        description="`urgent`: what needs attention now; `notice`: also what can wait.",
    )

    def _open(self, table: str) -> tuple[str, MessageRenderer, Mapping[str, str], tuple[str, ...]]:
        from predrain.service.notifications.opsgenie_alert import OpsgenieRenderer

        key = _read_header_secret(self.key_file, f"key_file of {table}")
        return self.url, OpsgenieRenderer(self.team), {"Authorization": f"GenieKey {key}"}, (key,)


class AlertmanagerTable(ReceiverTable):
    """An Alertmanager, which gets an alert for each cause; of several that share their state each needs a table."""

    url: str = Field(
        pattern=URL_PATTERN, description="Address without `/api/v2/alerts`: `http://alertmanager:9093`."
    )
    authorization_file: Path | None = Field(
        default=None,
        description="File (0600) with the value of the Authorization header, `Bearer TOKEN`; none when not set.",
    )
    allow_private_address: bool = Field(
        default=True, description="The address may be one that is not of the public network."
    )

    def _open(self, table: str) -> tuple[str, MessageRenderer, Mapping[str, str], tuple[str, ...]]:
        from predrain.service.notifications.alertmanager_alert import AlertmanagerRenderer

        if self.authorization_file is None:
            return self.url, AlertmanagerRenderer(), {}, ()
        value = _read_header_secret(self.authorization_file, f"authorization_file of {table}")
        secrets = (value, value.rpartition(" ")[2])
        return self.url, AlertmanagerRenderer(), {"Authorization": value}, secrets


def _require_names(given: object) -> object:
    """Refuse a table of a receiver without a name, and say how it is written."""
    if isinstance(given, Mapping) and any(
        not isinstance(one, Mapping | ReceiverTable) for one in given.values()
    ):
        raise ValueError("a receiver has a name: write [KIND.NAME], such as [slack.storage]")
    return given


ReceiverName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9_-]{0,39}$")]
Table = TypeVar("Table", bound=ReceiverTable)
NamedReceivers = Annotated[dict[ReceiverName, Table], BeforeValidator(_require_names)]
"""The receivers of one kind by name."""


def _read_address_file(file: Path, key: str) -> str:
    """Return the address in `file`. Raises NoSecret, without the address."""
    address = read_secret_file(file, key).strip()
    try:
        parts = urlsplit(address)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable or not address.isascii() or not address.isprintable() or " " in address:
        raise NoSecret(f"{file} holds no address; give {key} a file with one line, https://HOST/PATH")
    return address


def _read_header_secret(file: Path, key: str) -> str:
    """Return the key in `file`. Raises NoSecret if it is no single line of ASCII."""
    value = read_secret_file(file, key).strip()
    if not value or not value.isascii() or not value.isprintable():
        raise NoSecret(f"{file} holds no key; give {key} a file with one line of ASCII")
    return value
