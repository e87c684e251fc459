"""`[mail]` and `[webhook]`: where messages go."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import BaseModel, ConfigDict, Field, model_validator

from predrain.service.tables.secret import secret, trusting

if TYPE_CHECKING:
    from predrain.service.notifications.daily import Daily
    from predrain.service.notifications.mail import Mail
    from predrain.service.notifications.notes import Notes
    from predrain.service.notifications.webhook import Webhook

Least = Literal["notice", "urgent"]


class MailTable(BaseModel):
    """`[mail]`: messages go out by e-mail when `host` is set."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    host: str = Field(default="", description="Mail server; no mail while it is empty.")
    port: int = Field(default=587, ge=1, le=65535, description="Its TCP port.")
    security: Literal["starttls", "tls", "none"] = Field(
        default="starttls",
        description="How the way to it is guarded; `none` only on this machine or in a closed network.",
    )
    sender: str = Field(default="", description="Whom mails come from, `predrain@example.org`.")
    to: tuple[str, ...] = Field(default=(), description="Whom they go to.")
    user: str = Field(default="", description="User at the server; no login while it is empty.")
    password_file: Path | None = Field(default=None, description="File (0600) with the user's password.")
    ca: Path | None = Field(
        default=None,
        description="PEM file of who signed the server's certificate; the system's when not set.",
    )
    least: Least = Field(
        default="urgent",
        description="`urgent`: what somebody should look at now; `notice`: also what can wait.",
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
        _zone(self.time_zone)
        if self.host and not (self.sender and self.to):
            raise ValueError("host needs sender and to")
        if bool(self.user) != (self.password_file is not None):
            raise ValueError("set user and password_file together")
        if self.user and self.security == "none":
            raise ValueError("a password is not sent in the clear: set security to starttls or tls")
        return self

    def digest(self, cluster: str, address: str) -> Callable[[Notes], Daily] | None:
        """What sends a digest, once it is given where to remember; None where none is set. Raises NoSecret,
        NoAuthority."""
        mail, hour = self.channel(cluster, address), self.digest_hour
        if mail is None or hour is None:
            return None
        from predrain.service.notifications.daily import Daily
        from predrain.service.notifications.digest import Hour

        return lambda notes: Daily(notes, mail, Hour(hour, _zone(self.time_zone)))

    def channel(self, cluster: str, address: str) -> Mail | None:
        """The way out; None where none is set. Raises NoSecret, NoAuthority."""
        if not self.host:
            return None
        if self.ca:
            trusting(self.ca, "ca of [mail]")
        from predrain.service.notifications.cause import Severity
        from predrain.service.notifications.mail import Mail

        return Mail(
            self.host,
            self.port,
            self.security,
            self.sender,
            self.to,
            cluster,
            address,
            self.user,
            secret(self.password_file, "password_file of [mail]") if self.password_file else "",
            Severity(self.least),
            str(self.ca) if self.ca else None,
        )


def _zone(name: str) -> tzinfo:
    """Raises ValueError for a name that this machine does not know."""
    if name == "UTC":
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ValueError(
            f"time_zone {name} is not known on this machine: take a name such as Europe/Berlin, or install tzdata"
        ) from error


class WebhookTable(BaseModel):
    """`[webhook]`: messages are posted, signed, when `url` is set."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    url: str = Field(
        default="",
        pattern=r"^$|^https?://[^\s/]+",
        description="Address that is posted to; none while it is empty.",
    )
    secret_file: Path | None = Field(
        default=None, description="File (0600) with the secret that signs; the receiver has the same."
    )
    inside: bool = Field(
        default=False, description="The address may be one that is not of the public network."
    )
    ca: Path | None = Field(
        default=None,
        description="PEM file of who signed the receiver's certificate; the system's when not set.",
    )
    least: Least = Field(
        default="notice",
        description="`urgent`: what somebody should look at now; `notice`: also what can wait.",
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
            raise ValueError(
                "url needs secret_file: who receives must be able to tell our messages from others'"
            )
        return self

    def channel(self, cluster: str, address: str, now: Callable[[], datetime]) -> Webhook | None:
        """The way out; None where none is set. Raises NoSecret, NoAuthority."""
        if not self.url or self.secret_file is None:
            return None
        if self.ca:
            trusting(self.ca, "ca of [webhook]")
        from predrain.service.notifications.cause import Severity
        from predrain.service.notifications.webhook import Webhook

        return Webhook(
            self.url,
            secret(self.secret_file, "secret_file of [webhook]").encode(),
            cluster,
            address,
            now,
            Severity(self.least),
            inside=self.inside,
            authority=str(self.ca) if self.ca else None,
        )
