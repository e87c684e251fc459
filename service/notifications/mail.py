"""Messages by e-mail."""

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
from predrain.service.notifications.channel import NotTold, ToldInPart
from predrain.service.notifications.digest import Digest
from predrain.service.notifications.notification_log import Message
from predrain.service.notifications.words import subject, text

DEADLINE_SECONDS = 20.0
NEVER = 500
"""SMTP's answers from here on mean that trying again is of no use."""
MOST = 100
"""Mails of which it is remembered who took them."""


@dataclass(frozen=True, slots=True)
class Mail:
    """One mail a message, to all of `to`. `security`: `starttls`, `tls` or `none`."""

    host: str
    port: int
    security: str
    sender: str
    to: tuple[str, ...]
    cluster: str
    address: str
    user: str = ""
    password: str = ""
    least: Severity = Severity.URGENT
    authority: str | None = None
    """PEM file of the authority of the server's certificate; the system's ones when it is None."""
    name: str = "mail"
    _taken: dict[str, frozenset[str]] = field(default_factory=dict, compare=False)
    """Who took the mail that not everybody took, by its id: that one goes to the others alone."""

    def greet(self) -> None:
        """Everything that comes before a mail, without one: connection, TLS, login. Raises NotTold."""
        with self._ready():
            pass

    def deliver(self, message: Message) -> None:
        """Raises NotTold, ToldInPart."""
        # The same message tried twice has one id, by which mail programs show it once; those of a cause are a thread.
        mail = self._mail(subject(message, self.cluster), message.id, _dotted(message.cause.key), message.at)
        mail.set_content(text(message, self.address))
        self._post(mail)

    def send(self, digest: Digest, day: date, at: datetime) -> None:
        """Raises NotTold, ToldInPart."""
        mail = self._mail(digest.subject(self.cluster), f"digest.{day}.{_dotted(self.cluster)}", "digest", at)
        mail.set_content(digest.text(self.address))
        self._post(mail)

    def _post(self, mail: EmailMessage) -> None:
        id_, everybody = mail["Message-ID"], [address for _, address in getaddresses(self.to)]
        taken = self._taken.get(id_, frozenset())
        with self._ready() as server:
            refused = _refused(server, mail, [one for one in everybody if one not in taken])
        self._taken.pop(id_, None)
        if not refused:
            return
        told = f"{self._where} refused {_and_why(refused)}; correct `to` of [mail]"
        taken = frozenset(everybody) - refused.keys()
        if taken and all(code >= NEVER for code, _ in refused.values()):
            raise ToldInPart(f"{told}, the others have it")
        if len(self._taken) >= MOST:
            self._taken.clear()
        self._taken[id_] = taken
        raise NotTold(told)

    @contextmanager
    def _ready(self) -> Iterator[smtplib.SMTP]:
        """The server, ready to take a mail. Raises NotTold, also for what is done with it."""
        try:
            with self._server() as server:
                if self.security == "starttls":
                    server.starttls(context=self._tls())
                if self.user:
                    server.login(self.user, self.password)
                yield server
        except (smtplib.SMTPException, OSError, ValueError) as error:
            raise NotTold(
                f"{self._where} did not take a mail: {_reason(error)}; see [mail] in the settings"
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
        """Without its words."""
        mail, domain = EmailMessage(), self.sender.rpartition("@")[2].strip("> ") or "predrain"
        mail["From"], mail["To"] = self.sender, ", ".join(self.to)
        mail["Subject"] = title
        mail["Date"] = format_datetime(at)
        mail["Message-ID"] = f"<{id_}@{domain}>"
        mail["References"] = f"<{thread}@{domain}>"
        mail["Auto-Submitted"] = "auto-generated"
        return mail


def _refused(server: smtplib.SMTP, mail: EmailMessage, to: Sequence[str]) -> dict[str, tuple[int, bytes]]:
    """Who of `to` was refused, and how; the others have it."""
    try:
        return server.send_message(mail, to_addrs=to)
    except smtplib.SMTPRecipientsRefused as all_:
        return all_.recipients


def _and_why(refused: Mapping[str, tuple[int, bytes]]) -> str:
    return ", ".join(
        f"{one} ({code} {said.decode(errors='replace')})" for one, (code, said) in sorted(refused.items())
    )


def _dotted(key: str) -> str:
    return "".join(letter if letter.isalnum() else "." for letter in key)


def _reason(error: Exception) -> str:
    if isinstance(error, smtplib.SMTPResponseException):
        said = error.smtp_error
        return f"{error.smtp_code} {said.decode(errors='replace') if isinstance(said, bytes) else said}"
    return str(error) or type(error).__name__
