"""Notifications by e-mail."""

from __future__ import annotations

import smtplib
import ssl
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date, datetime
from email.message import EmailMessage
from email.utils import format_datetime, getaddresses

from predrain.service.notifications.cause import Severity
from predrain.service.notifications.channel import NotDelivered, PartlyDelivered
from predrain.service.notifications.digest_text import Digest
from predrain.service.notifications.message_texts import format_message_subject, format_message_text
from predrain.service.notifications.notification_log import Message

DEADLINE_SECONDS = 20.0
NEVER = 500
"""SMTP reply codes from here on are permanent failures, which are not tried again."""
MOST = 100
"""The number of mails whose recipients are remembered."""


@dataclass(frozen=True, slots=True)
class MailChannel:
    """One mail per message, to all of `to`. `security`: `starttls`, `tls` or `none`."""

    host: str
    port: int
    security: str
    sender: str
    to: tuple[str, ...]
    cluster: str
    address: str
    user: str = ""
    password: str = ""
    min_severity: Severity = Severity.URGENT
    authority: str | None = None
    """PEM file of the authority of the server's certificate; None: the system's authorities."""
    name: str = "mail"
    _taken: dict[str, frozenset[str]] = field(default_factory=dict, compare=False)
    """The recipients that accepted a partly refused mail, by its id: the mail is tried again for the others
    alone.
    """

    @property
    def reached(self) -> str:
        """The server that was reached, and the security of the connection."""
        return f"{self.host}:{self.port} takes mails by {self.security}"

    def run_preflight_check(self) -> None:
        """Do all that precedes a mail, without sending one: connection, TLS, login. Raises NotDelivered."""
        with self._ready():
            pass

    def deliver(self, message: Message) -> None:
        """Send one mail. Raises NotDelivered, PartlyDelivered."""
        # A repeated message has the same id, so mail programs show it once; the mails of a cause form a
        # thread.
        mail = self._mail(
            format_message_subject(message, self.cluster),
            message.id,
            _to_dotted_key(message.cause.key),
            message.at,
        )
        mail.set_content(format_message_text(message, self.address))
        self._post(mail)

    def send(self, digest: Digest, day: date, at: datetime) -> None:
        """Send the digest. Raises NotDelivered, PartlyDelivered."""
        mail = self._mail(
            digest.format_subject(self.cluster), f"digest.{day}.{_to_dotted_key(self.cluster)}", "digest", at
        )
        mail.set_content(digest.format_text(self.address))
        self._post(mail)

    def _post(self, mail: EmailMessage) -> None:
        id_, everybody = mail["Message-ID"], [address for _, address in getaddresses(self.to)]
        taken = self._taken.get(id_, frozenset())
        with self._ready() as server:
            refused = _send_to_recipients(server, mail, [one for one in everybody if one not in taken])
        self._taken.pop(id_, None)
        if not refused:
            return
        told = f"{self._where} refused {_and_why(refused)}; correct `to` of [mail]"
        taken = frozenset(everybody) - refused.keys()
        if taken and all(code >= NEVER for code, _ in refused.values()):
            raise PartlyDelivered(f"{told}, the others have it")
        if len(self._taken) >= MOST:
            self._taken.clear()
        self._taken[id_] = taken
        raise NotDelivered(told)

    @contextmanager
    def _ready(self) -> Iterator[smtplib.SMTP]:
        """Connect to the server and yield it, ready for a mail. Raises NotDelivered, also for errors in the body
        of the context.
        """
        try:
            with self._server() as server:
                if self.security == "starttls":
                    server.starttls(context=self._tls())
                if self.user:
                    server.login(self.user, self.password)
                yield server
        except (smtplib.SMTPException, OSError, ValueError) as error:
            raise NotDelivered(
                f"{self._where} did not take a mail: {_describe_smtp_error(error)}; see [mail] in the settings"
            ) from error

    @property
    def _where(self) -> str:
        return f"the mail server {self.host}:{self.port}"

    def _server(self) -> smtplib.SMTP:
        if self.security == "tls":
            return smtplib.SMTP_SSL(self.host, self.port, timeout=DEADLINE_SECONDS, context=self._tls())
        return smtplib.SMTP(self.host, self.port, timeout=DEADLINE_SECONDS)

    def _tls(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=self.authority)

    def _mail(self, title: str, id_: str, thread: str, at: datetime) -> EmailMessage:
        """Make a mail without its text."""
        mail, domain = EmailMessage(), self.sender.rpartition("@")[2].strip("> ") or "predrain"
        mail["From"], mail["To"] = self.sender, ", ".join(self.to)
        mail["Subject"] = title
        mail["Date"] = format_datetime(at)
        mail["Message-ID"] = f"<{id_}@{domain}>"
        mail["References"] = f"<{thread}@{domain}>"
        mail["Auto-Submitted"] = "auto-generated"
        return mail


def _send_to_recipients(
    server: smtplib.SMTP, mail: EmailMessage, to: Sequence[str]
) -> dict[str, tuple[int, bytes]]:
    """Send the mail; return the refused recipients of `to` with the replies. The others have the mail."""
    try:
        return server.send_message(mail, to_addrs=to)
    except smtplib.SMTPRecipientsRefused as all_:
        return all_.recipients


def _and_why(refused: Mapping[str, tuple[int, bytes]]) -> str:
    return ", ".join(
        f"{one} ({code} {said.decode(errors='replace')})" for one, (code, said) in sorted(refused.items())
    )


def _to_dotted_key(key: str) -> str:
    return "".join(letter if letter.isalnum() else "." for letter in key)


def _describe_smtp_error(error: Exception) -> str:
    if isinstance(error, smtplib.SMTPResponseException):
        said = error.smtp_error
        return f"{error.smtp_code} {said.decode(errors='replace') if isinstance(said, bytes) else said}"
    return str(error) or type(error).__name__
