"""The HTTP server. It binds first, so that a taken port gives a plain sentence, then serves, and ends quickly."""

from __future__ import annotations

import asyncio
import errno
import signal
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from types import FrameType
from typing import Any

import structlog
import uvicorn
from starlette.types import ASGIApp

from predrain.data.clock import Clock
from predrain.data.refusal import Refusal
from predrain.service.access.certificate import Certificate, CertificateUnusable
from predrain.service.access.loopback import is_loopback
from predrain.service.access.tokens import Tokens
from predrain.service.app.application import Application
from predrain.service.config.settings import ServiceTable, Settings
from predrain.service.http.connections import TlsHandshakeLimit, make_bounded_protocol, raise_connection_limit
from predrain.service.rest.metrics import MeasuredProcess, create_metrics
from predrain.service.rest.rest_app import create_app

GRACE_SECONDS = 1
TICKS_A_LOOK = 50


class CannotListen(Refusal):
    """The service cannot listen on the address or port."""


class ServerNotStarted(Refusal):
    """The HTTP server ended before it answered a request."""


class UnencryptedListen(Refusal):
    """Listening beyond loopback without TLS, although no setting allows it."""


def bind_listening_socket(service: ServiceTable, option: str = "--port") -> socket.socket:
    """Return a listening socket. `option`: the command-line option of its port. Raises CannotListen,
    UnencryptedListen.
    """
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
    """Refuse to listen beyond loopback without TLS, unless a setting allows it. Raises UnencryptedListen."""
    if not (is_loopback(service.host) or service.tls_certificate or service.insecure_without_tls):
        raise UnencryptedListen(
            f"{service.host} is reached over the network and all that is said would cross it in the clear, tokens too;"
            " set tls_certificate and tls_key of [service], put a TLS proxy in front of 127.0.0.1, or say"
            " --insecure-without-tls (insecure_without_tls of [service])"
        )


def url_of(listener: socket.socket, service: ServiceTable) -> str:
    """Return the URL at which a browser on this machine finds the service."""
    host: str = listener.getsockname()[0]
    port: int = listener.getsockname()[1]
    here = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104  (compared, not bound)
    shown = f"[{here}]" if ":" in here else here
    return f"{'https' if service.tls_certificate else 'http'}://{shown}:{port}"


class ServedApplication(uvicorn.Server):
    """Serves an app. `serve_here` blocks until a signal; `serve_aside` returns and leaves a thread.

    clock: the time for the expiry of the certificate. started: called once requests are answered. leaving: called
    before the server stops to answer.
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
        tls = None if self._certificate is None else self._certificate.context
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
                http=make_bounded_protocol(most=raise_connection_limit()),
                ws="none",
                # uvicorn would believe every process of this machine (service.rest.forwarded_headers)
                proxy_headers=False,
                ssl_context_factory=None if tls is None else lambda _config, _default: tls,
            )
        )
        self._listener, self._clock, self._started, self._leaving = listener, clock, started, leaving
        self._answers = threading.Event()
        self._taking: asyncio.Task[None] | None = None

    def serve_here(self) -> None:
        """Serve until SIGINT or SIGTERM."""
        self.run(sockets=[self._listener])

    def serve_aside(self) -> Callable[[], None]:
        """Serve in a thread; return a function that stops it, once requests are answered. Raises ServerNotStarted."""

        def serve_and_release() -> None:
            """Serve to the end. A server that could not start keeps nobody waiting."""
            try:
                # uvicorn exits where it cannot start, and has logged the cause.
                with suppress(SystemExit):
                    self.serve_here()
            finally:
                self._answers.set()

        thread = threading.Thread(target=serve_and_release, name="http", daemon=True)
        thread.start()
        self._answers.wait()
        if not self.started:
            thread.join()
            raise ServerNotStarted(
                "the HTTP server ended before it answered; the cause is in the lines above this one"
            )

        def stop() -> None:
            self._leaving()
            self.should_exit = True
            thread.join(GRACE_SECONDS + 2)

        return stop

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Call `started` once requests are answered."""
        await super().startup(sockets if self._certificate is None else [])
        if self._certificate is not None:
            self._take(self._certificate.context)
        self._answers.set()
        if self._started is not None and not self.should_exit:
            self._started()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept no more connections and close those that are open."""
        if self._taking is not None:
            self._taking.cancel()
        await super().shutdown(sockets)

    def _take(self, tls: ssl.SSLContext) -> None:
        protocol: Any = self.config.http_protocol_class

        def made() -> Any:  # as uvicorn makes it
            return protocol(config=self.config, server_state=self.server_state, app_state=self.lifespan.state)

        self._listener.listen(self.config.backlog)
        self._listener.setblocking(False)
        entrance = TlsHandshakeLimit(made, self.server_state.connections, tls, protocol.most)
        self._taking = asyncio.create_task(entrance.take_from(self._listener))

    async def on_tick(self, counter: int) -> bool:
        """Check the certificate for changes about every 5 s. uvicorn calls this ten times a second; its count
        restarts daily.
        """
        if self._certificate is not None and counter % TICKS_A_LOOK == 0:
            self._follow(self._certificate, daily=counter == 0)
        return await super().on_tick(counter)

    def _follow(self, certificate: Certificate, *, daily: bool) -> None:
        try:
            changed = certificate.reload_if_changed()
        except CertificateUnusable as unusable:
            structlog.get_logger().error("the certificate before stays in force", reason=str(unusable))
            return
        complaint = certificate.describe_expiry(self._clock.now())
        if complaint and (changed or daily):
            structlog.get_logger().warning(complaint)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Disconnect the clients that would hold the server up for ever, then exit."""
        self._leaving()
        super().handle_exit(sig, frame)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Handle SIGINT and SIGTERM without raising them again, unlike uvicorn: state is closed in order
        afterwards.
        """
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


class Server(ServedApplication):
    """Serves one application. Listeners of its change feed are disconnected before the server ends."""

    def __init__(
        self,
        application: Application,
        tokens: Tokens,
        listener: socket.socket,
        *,
        started: Callable[[], None] | None = None,
        people: Clock | None = None,
    ) -> None:
        service = application.settings.service
        app = create_app(application, tokens, host=service.host, people=people)
        super().__init__(
            app, listener, service, application.clock, started=started, leaving=application.changes.close
        )


@contextmanager
def run_metrics_server(
    process: MeasuredProcess, settings: Settings, tell: Callable[[str], None]
) -> Iterator[None]:
    """Answer `/metrics` for `process` in a thread while the context lasts, if metrics_port of [service] is set.

    The address is printed with `tell`. Raises CannotListen, UnencryptedListen, CertificateUnusable.
    """
    if settings.service.metrics_port is None:
        yield
        return
    service = settings.service.model_copy(update={"port": settings.service.metrics_port})
    with closing(bind_listening_socket(service, "--metrics-port")) as listener:
        server = ServedApplication(create_metrics(process, settings), listener, service, process.clock)
        stop = server.serve_aside()
        try:
            tell(f"metrics are at {url_of(listener, service)}/metrics")
            yield
        finally:
            stop()


def certificate_of(service: ServiceTable) -> Certificate | None:
    """Return the certificate of the settings, or None if there is none. Raises CertificateUnusable."""
    if service.tls_certificate is None or service.tls_key is None:
        return None
    return Certificate(service.tls_certificate, service.tls_key)
