"""The service for as long as one command needs it: the same house and REST, on loopback, in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from threading import Event

from predrain.data.store.port import Store
from predrain.service.http_server import Server, bind, url_of
from predrain.service.live_cluster import Live
from predrain.service.requester import Requester, Surface
from predrain.service.settings import Settings
from predrain.service.up import build


@contextmanager
def serving(
    settings: Settings,
    cluster: Callable[[Store], Live | None],
    tell: Callable[[str], None],
    *,
    acting: bool,
    person: str,
    retry: Callable[[Callable[[], None]], None],
) -> Iterator[tuple[str, str]]:
    """Address and token of a service over `cluster`; when `acting` its controller runs until the context ends. person:
    whoever typed the command. retry: runs the first look at the cluster, again where that fails.

    Disks are not scored meanwhile. Raises what is in the way as a Refusal, and what `retry` raises.
    """
    quiet = {"host": "127.0.0.1", "port": 0, "tls_certificate": None, "tls_key": None}
    settings = settings.model_copy(update={"service": settings.service.model_copy(update=quiet)})
    with ExitStack() as closing:
        listener = bind(settings.service)
        closing.callback(listener.close)
        built = closing.enter_context(
            build(settings, tell, cluster, requester=Requester(Surface.COMMAND_LINE, person))
        )
        retry(lambda: built.house.control.look(built.house.clock.now()))
        if acting:
            built.house.run(scoring=False)
        answering = Event()
        closing.callback(Server(built.house, built.known, listener, started=answering.set).serve_aside())
        answering.wait()
        if acting:  # others on this state reach the controller here, as long as the command lasts
            built.state.say_url(url_of(listener, settings.service))
            closing.callback(built.state.url.unlink, missing_ok=True)
        yield url_of(listener, settings.service), built.once
