"""`[mail]` and `[webhook]`: the notification channels."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import Field, model_validator

from predrain.service.config.secret_file import load_ca_tls_context, read_secret_file
from predrain.service.notifications.channel_table import ChannelTable, MinSeverity

if TYPE_CHECKING:
    from predrain.service.notifications.daily_digest import DailyDigest
    from predrain.service.notifications.mail_channel import MailChannel
    from predrain.service.notifications.notification_memory import NoteStore
    from predrain.service.notifications.webhook_channel import WebhookChannel


class MailTable(ChannelTable):
    """`[mail]`: messages go out by e-mail when `host` is set."""

    host: str = Field(default="", description="Mail server; no mail while it is empty.")
    port: int = Field(default=587, ge=1, le=65535, description="Its TCP port.")
    security: Literal["starttls", "tls", "none"] = Field(
        default="starttls",
        description="How the way to it is guarded; `none` only on this machine or in a closed network.",
    )
    sender: str = Field(default="", description="Sender of the mails, `predrain@example.org`.")
    to: tuple[str, ...] = Field(default=(), description="Receivers of the mails.")
    user: str = Field(default="", description="User at the server; no login while it is empty.")
    password_file: Path | None = Field(default=None, description="File (0600) with the user's password.")
    ca: Path | None = Field(
        default=None,
        description="PEM file of who signed the server's certificate; the system's when not set.",
    )
    min_severity: MinSeverity = Field(
        default="urgent",
        description="`urgent`: what needs attention now; `notice`: also what can wait.",
    )

    digest_hour: int | None = Field(
        default=None,
        ge=0,
        le=23,
        description="Hour of the day at which one mail says what is new, open and over; none when it is not set.",
    )
    time_zone: str = Field(default="UTC", description="Whose hour that is, such as `Europe/Berlin`.")

    @model_validator(mode="after")
    def _whole(self) -> MailTable:
        _load_time_zone(self.time_zone)
        if self.host and not (self.sender and self.to):
            raise ValueError("host needs sender and to")
        if bool(self.user) != (self.password_file is not None):
            raise ValueError("set user and password_file together")
        if self.user and self.security == "none":
            raise ValueError("a password is not sent in the clear: set security to starttls or tls")
        return self

    def make_digest_factory(self, cluster: str, address: str) -> Callable[[NoteStore], DailyDigest] | None:
        """Return a function that makes the daily digest over the notes of a store; None if no digest is set.

        Raises NoSecret, NoAuthority.
        """
        mail, hour = self.make_channel(cluster, address), self.digest_hour
        if mail is None or hour is None:
            return None
        from predrain.service.notifications.daily_digest import DailyDigest
        from predrain.service.notifications.digest_text import DigestHour

        return lambda notes: DailyDigest(notes, mail, DigestHour(hour, _load_time_zone(self.time_zone)))

    def open_channel(self, cluster: str, address: str, now: Callable[[], datetime]) -> MailChannel | None:
        """Open the channel like `make_channel`; a mail has the time of its message."""
        del now
        return self.make_channel(cluster, address)

    def make_channel(self, cluster: str, address: str) -> MailChannel | None:
        """Make the mail channel; None if it is not set. Raises NoSecret, NoAuthority."""
        if not self.host:
            return None
        if self.ca:
            load_ca_tls_context(self.ca, "ca of [mail]")
        from predrain.service.notifications.cause import Severity
        from predrain.service.notifications.mail_channel import MailChannel

        return MailChannel(
            self.host,
            self.port,
            self.security,
            self.sender,
            self.to,
            cluster,
            address,
            self.user,
            read_secret_file(self.password_file, "password_file of [mail]") if self.password_file else "",
            Severity(self.min_severity),
            str(self.ca) if self.ca else None,
        )


def _load_time_zone(name: str) -> tzinfo:
    """Return the time zone. Raises ValueError for a name that this machine does not know."""
    if name == "UTC":
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ValueError(
            f"time_zone {name} is not known on this machine: take a name such as Europe/Berlin, or install tzdata"
        ) from error


class WebhookTable(ChannelTable):
    """`[webhook]`: messages are posted, signed, when `url` is set."""

    url: str = Field(
        default="",
        pattern=r"^$|^https?://[^\s/]+",
        description="Address that is posted to; none while it is empty.",
    )
    secret_file: Path | None = Field(
        default=None, description="File (0600) with the secret that signs; the receiver has the same."
    )
    allow_private_address: bool = Field(
        default=False, description="The address may be one that is not of the public network."
    )
    ca: Path | None = Field(
        default=None,
        description="PEM file of who signed the receiver's certificate; the system's when not set.",
    )

    @model_validator(mode="after")
    def _whole(self) -> WebhookTable:
        try:
            parts = urlsplit(self.url)
            (parts.hostname or "").encode("idna")
            usable = self.url.isascii() and parts.port != 0
        except ValueError:
            usable = False
        if not usable:
            raise ValueError("url is no address: write https://HOST[:PORT]/PATH, in ASCII")
        if self.url and self.secret_file is None:
            raise ValueError("url needs secret_file, so that the receiver can tell our messages from others'")
        return self

    def open_channel(self, cluster: str, address: str, now: Callable[[], datetime]) -> WebhookChannel | None:
        """Open the webhook channel; None if it is not set. Raises NoSecret, NoAuthority."""
        if not self.url or self.secret_file is None:
            return None
        if self.ca:
            load_ca_tls_context(self.ca, "ca of [webhook]")
        from predrain.service.notifications.cause import Severity
        from predrain.service.notifications.webhook_channel import WebhookChannel

        return WebhookChannel(
            self.url,
            read_secret_file(self.secret_file, "secret_file of [webhook]").encode(),
            cluster,
            address,
            now,
            Severity(self.min_severity),
            allow_private_address=self.allow_private_address,
            authority=str(self.ca) if self.ca else None,
        )
