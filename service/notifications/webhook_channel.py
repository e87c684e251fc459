"""Notifications by HTTP, signed, and never to an internal address unless that is allowed.

The signature follows Stripe's scheme: `X-Predrain-Signature: t=SECONDS,v1=HEX`, HEX the HMAC-SHA-256 of
`SECONDS.BODY` under the shared secret. A receiver checks it and that SECONDS is recent, and ignores a known `id`.
The name is resolved once, and the connection goes to that very address, so that no later answer of the resolver
can point elsewhere. Redirects are not followed.
"""

from __future__ import annotations

import hashlib
import hmac
import http.client
import ipaddress
import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

from predrain.service.notifications.cause import Severity
from predrain.service.notifications.channel import NotDelivered
from predrain.service.notifications.message_texts import format_message_text
from predrain.service.notifications.notification_log import Message

DEADLINE_SECONDS = 10.0
_Found = tuple[socket.AddressFamily, socket.SocketKind, int, str, Any]
METADATA = frozenset(
    map(ipaddress.ip_address, ("fd00:ec2::254", "100.100.100.200", "192.0.0.192", "168.63.129.16"))
)
"""The metadata addresses of Amazon (IPv6), Alibaba, Oracle and Azure."""
MEANING_IPV4 = tuple(map(ipaddress.IPv6Network, ("::/96", "64:ff9b::/96")))
"""IPv4-compatible addresses, and those of NAT64."""
INSIDE = tuple(map(ipaddress.IPv6Network, ("fec0::/10", "64:ff9b:1::/48")))
"""Site-local addresses, and those of a network's own NAT64; Python takes them for public ones."""


@dataclass(frozen=True, slots=True)
class WebhookChannel:
    """One POST per message. `allow_private_address`: addresses outside the public network are allowed too."""

    url: str
    secret: bytes
    cluster: str
    address: str
    now: Callable[[], datetime]
    min_severity: Severity = Severity.NOTICE
    allow_private_address: bool = False
    authority: str | None = None
    """PEM file of the authority of the server's certificate; None: the system's authorities."""
    name: str = "webhook"

    @property
    def reached(self) -> str:
        """A text without the address, since a receiver's address may be a secret."""
        return "can be reached"

    def run_preflight_check(self) -> None:
        """Connect, with the TLS handshake for https, without any request. Raises NotDelivered."""
        self._connected().close()

    def deliver(self, message: Message) -> None:
        """Post one message. Raises NotDelivered."""
        body = json.dumps(self._document(message), separators=(",", ":")).encode()
        parts = urlsplit(self.url)
        path = f"{parts.path or '/'}{'?' + parts.query if parts.query else ''}"
        headers = self._headers(message, body, parts.netloc.rpartition("@")[2])
        with closing(self._connected()) as connection, _enforce_deadline(connection.sock) as late:
            try:
                connection.request("POST", path, body, headers)
                status = connection.getresponse().status
            except (OSError, http.client.HTTPException) as error:
                why = f"it takes longer than {DEADLINE_SECONDS:g} s" if late.is_set() else error
                raise NotDelivered(
                    f"the webhook {self._shown} does not answer: {why or type(error).__name__}"
                ) from error
        if not 200 <= status < 300:
            raise NotDelivered(f"the webhook {self._shown} answered {status}; it must answer 2xx")

    @property
    def _shown(self) -> str:
        """The address without its path, which is a secret of many receivers."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"

    def _document(self, message: Message) -> dict[str, object]:
        cause = message.cause
        return {
            "id": message.id,
            "at": message.at.isoformat(),
            "cluster": self.cluster,
            "state": "over" if message.over else "standing",
            "severity": cause.severity.value,
            "cause": cause.key,
            "title": cause.title,
            "points": [
                {
                    "name": one.name, "sentence": one.line, "severity": one.severity.value,
                    "new": one.name in message.news,
                }
                for one in cause.points
            ],
            "action": cause.todo,
            "host": cause.host,
            "model": cause.model,
            "url": f"{self.address.rstrip('/')}{cause.path}" if self.address else None,
            "text": format_message_text(message, self.address),
        }  # fmt: skip

    def _headers(self, message: Message, body: bytes, host: str) -> dict[str, str]:
        seconds = str(int(self.now().timestamp()))
        mark = hmac.new(self.secret, seconds.encode() + b"." + body, hashlib.sha256).hexdigest()
        return {
            "Host": host,
            "Content-Type": "application/json",
            "User-Agent": "predrain",
            "X-Predrain-Id": message.id,
            "X-Predrain-Signature": f"t={seconds},v1={mark}",
        }

    def _connected(self) -> http.client.HTTPConnection:
        """Return a connection to the receiver. Raises NotDelivered."""
        parts = urlsplit(self.url)
        try:
            return self._connection(parts.scheme, parts.hostname or "", parts.port)
        except OSError as error:
            raise NotDelivered(
                f"the webhook {self._shown} cannot be reached: {error}; see [webhook] in the settings"
            ) from error

    def _connection(self, scheme: str, host: str, port: int | None) -> http.client.HTTPConnection:
        """Return a connection to a checked address. Raises NotDelivered and what sockets raise."""
        port = port or (443 if scheme == "https" else 80)
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        meant = [one for one in found if not _is_metadata_address(str(one[4][0]))]
        if not meant:
            raise NotDelivered(
                f"the webhook {self._shown} leads to a machine's own metadata ({found[0][4][0]}), where no receiver "
                "is; correct url of [webhook]"
            )
        allowed = [one for one in meant if self.allow_private_address or _is_public_address(str(one[4][0]))]
        if not allowed:
            raise NotDelivered(
                f"the webhook {self._shown} leads inside ({found[0][4][0]}): if that is meant, "
                "set allow_private_address of [webhook]"
            )
        raw = _connect_first_address(allowed)
        if scheme == "https":
            try:
                with _enforce_deadline(raw):
                    raw = ssl.create_default_context(cafile=self.authority).wrap_socket(
                        raw, server_hostname=host
                    )
            except BaseException:
                raw.close()
                raise
        connection = http.client.HTTPConnection(host, port, timeout=DEADLINE_SECONDS)
        connection.sock = raw
        return connection


def _connect_first_address(addresses: Sequence[_Found]) -> socket.socket:
    """Connect to the first address that accepts. Raises OSError, that of the last address."""
    for place, (family, kind, protocol, _, address) in enumerate(addresses, 1):
        raw = socket.socket(family, kind, protocol)
        raw.settimeout(DEADLINE_SECONDS)
        try:
            raw.connect(address)
        except OSError:
            raw.close()
            if place == len(addresses):
                raise
        except BaseException:
            raw.close()
            raise
        else:
            return raw
    raise OSError("it has no address")


@contextmanager
def _enforce_deadline(connection: socket.socket) -> Iterator[threading.Event]:
    """Cut `connection` at the deadline, since a socket's own timeout starts again with every byte.

    The event is set before the connection is cut, so that the caller sees that the deadline was the reason.
    """
    late = threading.Event()

    def cut() -> None:
        late.set()
        with suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)

    timer = threading.Timer(DEADLINE_SECONDS, cut)
    timer.daemon = True
    timer.start()
    try:
        yield late
    finally:
        timer.cancel()


def _is_metadata_address(address: str) -> bool:
    """Return whether clouds hand credentials to machines at this address: a link-local one, or one of METADATA."""
    found = _parse_effective_ip(address)
    return found.is_link_local or found in METADATA


def _is_public_address(address: str) -> bool:
    """Return whether an address belongs to the public network."""
    found = _parse_effective_ip(address)
    return found.is_global and not found.is_multicast and not any(found in inside for inside in INSIDE)


def _parse_effective_ip(address: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """Return an address; for an IPv6 address that stands for an IPv4 address, return the latter."""
    found = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(found, ipaddress.IPv6Address):
        if any(found in one for one in MEANING_IPV4):
            return ipaddress.IPv4Address(int(found) & 0xFFFFFFFF)
        return found.ipv4_mapped or found.sixtofour or found
    return found
