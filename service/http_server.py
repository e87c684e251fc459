"""The HTTP server: bind first, so that a taken port is a plain sentence; serve; end quickly."""

from __future__ import annotations

import asyncio
import errno
import signal
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from types import FrameType
from typing import Any

import structlog
import uvicorn
from starlette.types import ASGIApp

from predrain.data.clock import Clock
from predrain.data.refusal import Refusal
from predrain.service.access.certificate import Certificate, CertificateUnusable
from predrain.service.application import House
from predrain.service.connections import Entrance, bounded, room
from predrain.service.rest.app import create_app
from predrain.service.rest.guarding import is_loopback
from predrain.service.rest.metrics import Process, create_metrics
from predrain.service.settings import ServiceTable, Settings
from predrain.service.tokens import Tokens

GRACE_SECONDS = 1
TICKS_A_LOOK = 50


class CannotListen(Refusal):
    """The address or port is not to be had."""


class InTheClear(Refusal):
    """Listening beyond loopback without TLS, and nobody said that this is meant."""


def bind(service: ServiceTable, option: str = "--port") -> socket.socket:
    """A listening socket. `option` is the one by which a person says its port. Raises CannotListen, InTheClear."""
    nothing_in_the_clear(service)
    host, port = service.host, service.port
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            raise CannotListen(
                f"port {port} of {host} is in use by another program; stop it, or give {option} another one "
                "(0 takes a free one)"
            ) from error
        raise CannotListen(
            f"cannot listen on {host} port {port}: {error.strerror or error}; give --host and {option} that "
            "this machine has and you may use"
        ) from error
    listener.set_inheritable(True)
    return listener


def nothing_in_the_clear(service: ServiceTable) -> None:
    """Refuse to be reached over the network without TLS, unless that is meant. Raises InTheClear."""
    if not (is_loopback(service.host) or service.tls_certificate or service.insecure_without_tls):
        raise InTheClear(
            f"{service.host} is reached over the network and all that is said would cross it in the clear, tokens too;"
            " set tls_certificate and tls_key of [service], put a TLS proxy in front of 127.0.0.1, or say"
            " --insecure-without-tls (insecure_without_tls of [service])"
        )


def url_of(listener: socket.socket, service: ServiceTable) -> str:
    """Where a browser on this machine finds it."""
    host: str = listener.getsockname()[0]
    port: int = listener.getsockname()[1]
    here = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104  (compared, not bound)
    shown = f"[{here}]" if ":" in here else here
    return f"{'https' if service.tls_certificate else 'http'}://{shown}:{port}"


class Answering(uvicorn.Server):
    """Serves an app. `serve_here` blocks until a signal; `serve_aside` returns and leaves a thread.

    clock: by which a certificate ends. started: called once requests are answered; leaving: before they no longer are.
    """

    def __init__(
        self,
        app: ASGIApp,
        listener: socket.socket,
        service: ServiceTable,
        clock: Clock,
        *,
        started: Callable[[], None] | None = None,
        leaving: Callable[[], None] = lambda: None,
    ) -> None:
        self._certificate = certificate_of(service)
        factory = None if self._certificate is None else _given(self._certificate.context)
        super().__init__(
            uvicorn.Config(
                app,
                access_log=False,
                log_config=None,
                log_level="warning",
                server_header=False,
                date_header=True,
                timeout_graceful_shutdown=GRACE_SECONDS,
                timeout_keep_alive=15,
                http=bounded(most=room()),
                ws="none",
                proxy_headers=False,  # uvicorn would believe every process of this machine (service.rest.forwarding)
                ssl_context_factory=factory,
            )
        )
        self._listener, self._clock, self._started, self._leaving = listener, clock, started, leaving
        self._taking: asyncio.Task[None] | None = None

    def serve_here(self) -> None:
        """Until SIGINT or SIGTERM."""
        self.run(sockets=[self._listener])

    def serve_aside(self) -> Callable[[], None]:
        """In a thread of its own; returns what stops it."""
        thread = threading.Thread(target=self.serve_here, name="http", daemon=True)
        thread.start()

        def stop() -> None:
            self._leaving()
            self.should_exit = True
            thread.join(GRACE_SECONDS + 2)

        return stop

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Tell who waits that requests are answered from now on."""
        await super().startup(sockets if self._certificate is None else [])
        if self._certificate is not None:
            self._take(self._certificate.context)
        if self._started is not None and not self.should_exit:
            self._started()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Nobody comes in any more, and those inside go."""
        if self._taking is not None:
            self._taking.cancel()
        await super().shutdown(sockets)

    def _take(self, tls: ssl.SSLContext) -> None:
        protocol: Any = self.config.http_protocol_class

        def made() -> Any:  # as uvicorn makes it
            return protocol(config=self.config, server_state=self.server_state, app_state=self.lifespan.state)

        self._listener.listen(self.config.backlog)
        self._listener.setblocking(False)
        entrance = Entrance(made, self.server_state.connections, tls, protocol.most)
        self._taking = asyncio.create_task(entrance.take_from(self._listener))

    async def on_tick(self, counter: int) -> bool:
        """Every tenth of a second; the count begins anew every day."""
        if self._certificate is not None and counter % TICKS_A_LOOK == 0:
            self._follow(self._certificate, daily=counter == 0)
        return await super().on_tick(counter)

    def _follow(self, certificate: Certificate, *, daily: bool) -> None:
        try:
            changed = certificate.follow()
        except CertificateUnusable as unusable:
            structlog.get_logger().error("the certificate before stays in force", why=str(unusable))
            return
        complaint = certificate.complaint(self._clock.now())
        if complaint and (changed or daily):
            structlog.get_logger().warning(complaint)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Whoever would hold the server up for ever is let go first."""
        self._leaving()
        super().handle_exit(sig, frame)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Unlike uvicorn's own, the signal is not raised again: state is closed in order after it."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {
            number: signal.signal(number, self.handle_exit) for number in (signal.SIGINT, signal.SIGTERM)
        }
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


class Server(Answering):
    """Serves one house. Listeners of its events are let go before it ends."""

    def __init__(
        self,
        house: House,
        tokens: Tokens,
        listener: socket.socket,
        *,
        started: Callable[[], None] | None = None,
        people: Clock | None = None,
    ) -> None:
        service = house.settings.service
        app = create_app(house, tokens, host=service.host, people=people)
        super().__init__(app, listener, service, house.clock, started=started, leaving=house.changes.close)


@contextmanager
def watched(process: Process, settings: Settings, tell: Callable[[str], None]) -> Iterator[None]:
    """Answers `/metrics` for `process` in a thread while the context lasts, where metrics_port of [service] is set.

    Told is where. Raises CannotListen, InTheClear, CertificateUnusable.
    """
    if settings.service.metrics_port is None:
        yield
        return
    service = settings.service.model_copy(update={"port": settings.service.metrics_port})
    with closing(bind(service, "--metrics-port")) as listener:
        server = Answering(create_metrics(process, settings), listener, service, process.clock)
        stop = server.serve_aside()
        try:
            tell(f"metrics are at {url_of(listener, service)}/metrics")
            yield
        finally:
            stop()


def certificate_of(service: ServiceTable) -> Certificate | None:
    """The certificate of the settings; None where there is none. Raises CertificateUnusable."""
    if service.tls_certificate is None or service.tls_key is None:
        return None
    return Certificate(service.tls_certificate, service.tls_key)


def _given(
    context: ssl.SSLContext,
) -> Callable[[uvicorn.Config, Callable[[], ssl.SSLContext]], ssl.SSLContext]:
    return lambda _config, _default: context
