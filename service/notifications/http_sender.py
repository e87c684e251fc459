"""POST to a receiver over HTTP, within a deadline, and never to an internal address unless that is allowed.

The name is resolved once, and the connection goes to that very address, so that no later answer of the resolver
can point elsewhere. Redirects are not followed. No sentence contains the path of an address, a key, or anything
else that is secret.
"""

from __future__ import annotations

import http.client
import ipaddress
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit

from predrain.service.notifications.channel import NotDelivered

DEADLINE_SECONDS = 10.0
READ_BYTES = 2048
"""The part of an answer that is read: enough for the reason of a refusal."""
SHOWN_CHARACTERS = 200
LONGEST_WAIT = timedelta(hours=1)
"""A receiver that asks for a longer pause is tried again after this time."""
BUSY = frozenset({429, 503})
"""Answers whose `Retry-After` is respected."""
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
class HttpSender:
    """Sends to one receiver. `allow_private_address`: addresses outside the public network are allowed too."""

    receiver: str
    """The receiver in sentences: `the webhook`."""
    table: str
    """The table of the settings that a sentence names: `[webhook]`."""
    url: str = field(repr=False)
    now: Callable[[], datetime]
    allow_private_address: bool = False
    authority: str | None = None
    """PEM file of the authority of the server's certificate; None: the system's authorities."""
    secrets: tuple[str, ...] = field(default=(), repr=False)
    """Texts that are blanked where a receiver repeats them in its answer."""

    def run_preflight_check(self) -> None:
        """Connect, with the TLS handshake for https, without any request. Raises NotDelivered."""
        self._connected().close()

    def post(self, body: bytes, headers: Mapping[str, str], path: str = "") -> None:
        """Send `body` as JSON to the address, with `path` behind it. Raises NotDelivered for any answer but 2xx."""
        parts = urlsplit(self.url)
        whole = f"{parts.path.rstrip('/') if path else parts.path or '/'}{path}"
        query = f"?{parts.query}" if parts.query else ""
        sent = {
            "Host": parts.netloc.rpartition("@")[2],
            "Content-Type": "application/json",
            "User-Agent": "predrain",
            **headers,
        }
        with closing(self._connected()) as connection, _enforce_deadline(connection.sock) as late:
            try:
                connection.request("POST", f"{whole}{query}", body, sent)
                answer = connection.getresponse()
                status, pause = answer.status, answer.getheader("Retry-After", "")
                said = b"" if 200 <= status < 300 else answer.read(READ_BYTES)
            except (OSError, http.client.HTTPException) as error:
                # The socket's own limit is the same time, and may end first.
                is_late = late.is_set() or isinstance(error, TimeoutError)
                why = f"it takes longer than {DEADLINE_SECONDS:g} s" if is_late else error
                raise NotDelivered(
                    f"{self.receiver} {self.shown} does not answer: {why or type(error).__name__}"
                ) from error
        if not 200 <= status < 300:
            wait = _parse_retry_after(pause, self.now()) if status in BUSY else None
            told = f"{self.receiver} {self.shown} answered {status}; it must answer 2xx{self._quote(said)}"
            raise NotDelivered(told, wait)

    @property
    def shown(self) -> str:
        """The address without its path, which is a secret of many receivers."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"

    def _quote(self, said: bytes) -> str:
        """Return the reason that the receiver gave, as the end of a sentence; empty if it gave none."""
        text = said.decode(errors="replace")
        parts = urlsplit(self.url)
        for secret in (*self.secrets, self.url, parts.path.rstrip("/"), parts.query):
            text = text.replace(secret, "***") if secret else text
        words = " ".join("".join(one if one.isprintable() else " " for one in text).split())
        return f" ({words[:SHOWN_CHARACTERS]})" if words else ""

    def _connected(self) -> http.client.HTTPConnection:
        """Return a connection to the receiver. Raises NotDelivered."""
        parts = urlsplit(self.url)
        try:
            return self._connection(parts.scheme, parts.hostname or "", parts.port)
        except OSError as error:
            raise NotDelivered(
                f"{self.receiver} {self.shown} cannot be reached: {error}; see {self.table} in the settings"
            ) from error

    def _connection(self, scheme: str, host: str, port: int | None) -> http.client.HTTPConnection:
        """Return a connection to a checked address. Raises NotDelivered and what sockets raise."""
        port = port or (443 if scheme == "https" else 80)
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        meant = [one for one in found if not _is_metadata_address(str(one[4][0]))]
        if not meant:
            raise NotDelivered(
                f"{self.receiver} {self.shown} leads to a machine's own metadata ({found[0][4][0]}), where no receiver "
                f"is; correct the address of {self.table}"
            )
        allowed = [one for one in meant if self.allow_private_address or _is_public_address(str(one[4][0]))]
        if not allowed:
            raise NotDelivered(
                f"{self.receiver} {self.shown} leads inside ({found[0][4][0]}): if that is meant, "
                f"set allow_private_address of {self.table}"
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


def _parse_retry_after(value: str, now: datetime) -> timedelta | None:
    """Return the pause that a `Retry-After` header asks for, at most LONGEST_WAIT; None if it asks for none.

    value: seconds or a date of HTTP.
    """
    if value.strip().isdecimal():
        return min(timedelta(seconds=min(int(value), 86_400)), LONGEST_WAIT)
    try:
        at = parsedate_to_datetime(value)
    except ValueError:
        return None
    asked = (at if at.tzinfo else at.replace(tzinfo=UTC)) - now
    return min(max(asked, timedelta(0)), LONGEST_WAIT)


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
