"""The service for the duration of one command: the same application and REST, on loopback, in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from predrain.data.store.store_port import Store
from predrain.service.access.requester import Requester, RequestSurface
from predrain.service.config.settings import Settings
from predrain.service.config.state_directory import StateDir
from predrain.service.drains.live_cluster import LiveClusterParts
from predrain.service.http.server import Server, bind_listening_socket, url_of
from predrain.service.processes.up import open_application
from predrain.service.storage.backends import place_of_store, require_present_version


@contextmanager
def serve_in_process(
    settings: Settings,
    cluster: Callable[[Store], LiveClusterParts | None],
    tell: Callable[[str], None],
    *,
    acting: bool,
    person: str,
    retry: Callable[[Callable[[], None]], None],
) -> Iterator[tuple[str, str]]:
    """Serve the application over `cluster`; yield its address and token.

    acting: run the controller until the context ends. person: the person who typed the command. retry: runs the
    first poll of the cluster, repeatedly if it fails.

    Disks are not scored meanwhile, and a store of an older format is refused. Raises obstacles as a Refusal, and what
    `retry` raises.
    """
    require_present_version(place_of_store(settings, StateDir(settings.service.state)))
    quiet = {"host": "127.0.0.1", "port": 0, "tls_certificate": None, "tls_key": None}
    settings = settings.model_copy(update={"service": settings.service.model_copy(update=quiet)})
    with ExitStack() as closing:
        listener = bind_listening_socket(settings.service)
        closing.callback(listener.close)
        built = closing.enter_context(
            open_application(
                settings, tell, cluster, requester=Requester(RequestSurface.COMMAND_LINE, person)
            )
        )
        retry(lambda: built.application.control.poll_cluster(built.application.clock.now()))
        if acting:
            built.application.run(scoring=False)
        closing.callback(Server(built.application, built.known, listener).serve_aside())
        if acting:  # other commands with this state directory reach the controller here
            built.state.say_url(url_of(listener, settings.service))
            closing.callback(built.state.url.unlink, missing_ok=True)
        yield url_of(listener, settings.service), built.once
