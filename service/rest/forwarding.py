"""Where a request comes from: the peer of the connection, or whom a proxy that the settings name says it speaks for."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Sequence

from starlette.types import ASGIApp, Receive, Send
from starlette.types import Scope as AsgiScope

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

_ADDED_BY_PROXIES = frozenset({b"forwarded", b"x-real-ip", b"via"})
_SCHEMES = frozenset({"http", "https"})


class Forwarding:
    """ASGI middleware: gives a request that comes from one of `proxies` the address and scheme that the proxy names.

    Only `X-Forwarded-For` and `X-Forwarded-Proto` are read. Of `X-Forwarded-For` the last address counts that is no
    proxy of ours, since everything before that address may have been made up by the sender.
    """

    def __init__(self, app: ASGIApp, proxies: Sequence[Network]) -> None:
        self.app, self.proxies = app, tuple(proxies)

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] == "http" and scope.get("client"):
            host, port = scope["client"]
            peer = _address(host)
            if peer is not None and self._is_proxy(peer):
                hops = _values(scope["headers"], b"x-forwarded-for")
                schemes = [one for one in _values(scope["headers"], b"x-forwarded-proto") if one in _SCHEMES]
                scope = {
                    **scope,
                    "client": (str(self._sender(peer, hops)), port),
                    "scheme": schemes[-1] if schemes else scope["scheme"],
                }
        await self.app(scope, receive, send)

    def _sender(self, peer: Address, hops: Iterable[str]) -> Address:
        sender = peer
        for hop in reversed(list(hops)):
            named = _address(hop)
            if named is None:
                break
            sender = named
            if not self._is_proxy(sender):
                break
        return sender

    def _is_proxy(self, address: Address) -> bool:
        return any(address.version == one.version and address in one for one in self.proxies)


def is_forwarded(names: Iterable[bytes]) -> bool:
    """Whether one of these header names (in lower case) says that a proxy stands between the sender and us."""
    return any(name in _ADDED_BY_PROXIES or name.startswith(b"x-forwarded") for name in names)


def _values(headers: Iterable[tuple[bytes, bytes]], name: bytes) -> list[str]:
    """What all headers of that name list, in order."""
    listed = b",".join(value for key, value in headers if key == name).decode("latin-1")
    return [one.strip().lower() for one in listed.split(",") if one.strip()]


def _address(text: str) -> Address | None:
    """The address in `10.0.0.7`, `10.0.0.7:4711`, `fd00::7` or `[fd00::7]:4711`; None for anything else."""
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
