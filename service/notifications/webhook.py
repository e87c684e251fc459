"""Messages by HTTP, signed, and never to an address inside unless that is allowed.

The signature is that of Stripe's scheme: `X-Predrain-Signature: t=SECONDS,v1=HEX`, HEX the HMAC-SHA-256 of
`SECONDS.BODY` under the shared secret. Who receives checks it and that SECONDS is young, and ignores an `id` that it
knows. The name is resolved once and that very address is connected to, so that no later answer of the resolver can
point elsewhere; redirects are not followed.
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
from predrain.service.notifications.channel import NotTold
from predrain.service.notifications.notification_log import Message
from predrain.service.notifications.words import text

DEADLINE_SECONDS = 10.0
_Found = tuple[socket.AddressFamily, socket.SocketKind, int, str, Any]
METADATA = frozenset(
    map(ipaddress.ip_address, ("fd00:ec2::254", "100.100.100.200", "192.0.0.192", "168.63.129.16"))
)
"""Amazon's for IPv6, Alibaba's, Oracle's and Azure's."""
MEANING_IPV4 = tuple(map(ipaddress.IPv6Network, ("::/96", "64:ff9b::/96")))
"""Compatible addresses, and NAT64's."""
INSIDE = tuple(map(ipaddress.IPv6Network, ("fec0::/10", "64:ff9b:1::/48")))
"""Site-local addresses, and NAT64's of a network's own; Python takes them for public ones."""


@dataclass(frozen=True, slots=True)
class Webhook:
    """One POST a message. `inside`: addresses that are not of the public network may be called, too."""

    url: str
    secret: bytes
    cluster: str
    address: str
    now: Callable[[], datetime]
    least: Severity = Severity.NOTICE
    inside: bool = False
    authority: str | None = None
    """PEM file of the authority of the server's certificate; the system's ones when it is None."""
    name: str = "webhook"

    def greet(self) -> None:
        """Connect, and shake hands where it is TLS; nothing is asked. Raises NotTold."""
        self._connected().close()

    def deliver(self, message: Message) -> None:
        """Raises NotTold."""
        body = json.dumps(self._document(message), separators=(",", ":")).encode()
        parts = urlsplit(self.url)
        path = f"{parts.path or '/'}{'?' + parts.query if parts.query else ''}"
        headers = self._headers(message, body, parts.netloc.rpartition("@")[2])
        with closing(self._connected()) as connection, _cutting(connection.sock) as late:
            try:
                connection.request("POST", path, body, headers)
                status = connection.getresponse().status
            except (OSError, http.client.HTTPException) as error:
                why = f"it takes longer than {DEADLINE_SECONDS:g} s" if late.is_set() else error
                raise NotTold(
                    f"the webhook {self._shown} does not answer: {why or type(error).__name__}"
                ) from error
        if not 200 <= status < 300:
            raise NotTold(f"the webhook {self._shown} answered {status}; it must answer 2xx")

    @property
    def _shown(self) -> str:
        """The address without what may be a secret in it: many a receiver's is its path."""
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
                {"name": one.name, "line": one.line, "severity": one.severity.value, "new": one.name in message.news}
                for one in cause.points
            ],
            "todo": cause.todo,
            "host": cause.host,
            "model": cause.model,
            "url": f"{self.address.rstrip('/')}{cause.path}" if self.address else None,
            "text": text(message, self.address),
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
        """Raises NotTold."""
        parts = urlsplit(self.url)
        try:
            return self._connection(parts.scheme, parts.hostname or "", parts.port)
        except OSError as error:
            raise NotTold(
                f"the webhook {self._shown} cannot be reached: {error}; see [webhook] in the settings"
            ) from error

    def _connection(self, scheme: str, host: str, port: int | None) -> http.client.HTTPConnection:
        """A connection to an address that was looked at. Raises NotTold and what sockets raise."""
        port = port or (443 if scheme == "https" else 80)
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        meant = [one for one in found if not _metadata(str(one[4][0]))]
        if not meant:
            raise NotTold(
                f"the webhook {self._shown} leads to a machine's own metadata ({found[0][4][0]}), where no receiver "
                "is; correct url of [webhook]"
            )
        allowed = [one for one in meant if self.inside or _public(str(one[4][0]))]
        if not allowed:
            raise NotTold(
                f"the webhook {self._shown} leads inside ({found[0][4][0]}): if that is meant, set inside of [webhook]"
            )
        raw = _reached(allowed)
        if scheme == "https":
            try:
                with _cutting(raw):
                    raw = ssl.create_default_context(cafile=self.authority).wrap_socket(
                        raw, server_hostname=host
                    )
            except BaseException:
                raw.close()
                raise
        connection = http.client.HTTPConnection(host, port, timeout=DEADLINE_SECONDS)
        connection.sock = raw
        return connection


def _reached(addresses: Sequence[_Found]) -> socket.socket:
    """A connection to the first address that takes one. Raises OSError, that of the last one."""
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
def _cutting(connection: socket.socket) -> Iterator[threading.Event]:
    """Ends what goes on over `connection` at the deadline: a socket's own one begins anew with every byte.

    The event says that it was the deadline, before anybody can see the end that it makes.
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


def _metadata(address: str) -> bool:
    """Whether an address is one where clouds hand credentials to their machines: link-local ones, and METADATA."""
    found = _plain(address)
    return found.is_link_local or found in METADATA


def _public(address: str) -> bool:
    """Whether an address is of the public network."""
    found = _plain(address)
    return found.is_global and not found.is_multicast and not any(found in inside for inside in INSIDE)


def _plain(address: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """An address; one of IPv6 that means one of IPv4 is that."""
    found = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(found, ipaddress.IPv6Address):
        if any(found in one for one in MEANING_IPV4):
            return ipaddress.IPv4Address(int(found) & 0xFFFFFFFF)
        return found.ipv4_mapped or found.sixtofour or found
    return found
