"""The sender of a request: the peer of the connection, or the address that a proxy named in the settings reports."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Sequence

from starlette.types import ASGIApp, Receive, Send
from starlette.types import Scope as AsgiScope

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

_ADDED_BY_PROXIES = frozenset({b"forwarded", b"x-real-ip", b"via"})
_SCHEMES = frozenset({"http", "https"})


class ProxyForwarding:
    """ASGI middleware: gives a request from one of `proxies` the address and scheme that the proxy reports.

    Only `X-Forwarded-For` and `X-Forwarded-Proto` are read. In `X-Forwarded-For` the last address that is no proxy of
    ours counts, because the sender may have made up all addresses before it.
    """

    def __init__(self, app: ASGIApp, proxies: Sequence[Network]) -> None:
        self.app, self.proxies = app, tuple(proxies)

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        """Pass one request on, with the address of its sender."""
        if scope["type"] == "http" and scope.get("client"):
            host, port = scope["client"]
            peer = _parse_ip_address(host)
            if peer is not None and self._is_proxy(peer):
                hops = _parse_header_list(scope["headers"], b"x-forwarded-for")
                schemes = [
                    one
                    for one in _parse_header_list(scope["headers"], b"x-forwarded-proto")
                    if one in _SCHEMES
                ]
                scope = {
                    **scope,
                    "client": (str(self._sender(peer, hops)), port),
                    "scheme": schemes[-1] if schemes else scope["scheme"],
                }
        await self.app(scope, receive, send)

    def _sender(self, peer: Address, hops: Iterable[str]) -> Address:
        sender = peer
        for hop in reversed(list(hops)):
            named = _parse_ip_address(hop)
            if named is None:
                break
            sender = named
            if not self._is_proxy(sender):
                break
        return sender

    def _is_proxy(self, address: Address) -> bool:
        return any(address.version == one.version and address in one for one in self.proxies)


def is_forwarded(names: Iterable[bytes]) -> bool:
    """Return whether one of these header names (in lower case) shows a proxy between the sender and us."""
    return any(name in _ADDED_BY_PROXIES or name.startswith(b"x-forwarded") for name in names)


def _parse_header_list(headers: Iterable[tuple[bytes, bytes]], name: bytes) -> list[str]:
    """Return the entries of all headers of that name, in order and in lower case."""
    listed = b",".join(value for key, value in headers if key == name).decode("latin-1")
    return [one.strip().lower() for one in listed.split(",") if one.strip()]


def _parse_ip_address(text: str) -> Address | None:
    """Return the address in `10.0.0.7`, `10.0.0.7:4711`, `fd00::7` or `[fd00::7]:4711`, or None for any other text."""
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        found = ipaddress.ip_address(text)
    except ValueError:
        return None
    mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    return mapped or found
