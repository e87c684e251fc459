"""A house on this machine: everything in one process, or one of several that share a log and a store.

What answers over HTTP does so before the heavy packages are imported.
"""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from predrain.data.clock import SystemClock
from predrain.data.refusal import Refusal
from predrain.data.scorebook import Scorebook, ScorebookUnusable
from predrain.data.store.port import Store
from predrain.service import tokens
from predrain.service.application import House, Ports
from predrain.service.backends import shared
from predrain.service.drains.drain_requests import NoCluster
from predrain.service.drains.onlooking import onlooking
from predrain.service.http_server import Server, bind, url_of, watched
from predrain.service.live_cluster import Live, conf_of, make_live_cluster
from predrain.service.notifications.channel import NotificationChannel
from predrain.service.requester import Requester, Surface
from predrain.service.roles import CONTROLLING, EVERYTHING, SERVING, SHARING, ServiceRoles
from predrain.service.scoring.deployed_models import Lineup
from predrain.service.scoring.forecasting import Forecaster
from predrain.service.settings import Settings
from predrain.service.signing_key import find_or_make_signing_key
from predrain.service.state_directory import StateDir
from predrain.service.storage.opening import open_storage
from predrain.service.worker_process import Working

PAGE = Requester(Surface.PAGE)


class HandNeedsAPage(Refusal):
    """The mgr's hand takes its steps over REST."""


@dataclass(frozen=True, slots=True)
class Built:
    """A house on this machine's files, and who may enter it. `once`: a token that dies with the process."""

    house: House
    state: StateDir
    known: tokens.Tokens
    once: str


def up(
    settings: Settings, tell: Callable[[str], None], *, watched: bool, accept_store: str | None = None
) -> None:
    """Everything in this process, until SIGINT or SIGTERM; beside others where the store is one that is shared.

    Raises what is in the way as a Refusal, before anything was started. `watched`: a person reads what is told, and
    gets an address that may act; a journal must not keep one. `accept_store`: the id of the loss of a store that
    a person accepts (`open_storage`).
    """
    _answering(
        settings,
        tell,
        None,
        lambda store: _leading(settings, store),
        watched=watched,
        accept_store=accept_store,
    )


def serve(settings: Settings, tell: Callable[[str], None], *, watched: bool) -> None:
    """The page, REST and ingest alone, any number of times, until SIGINT or SIGTERM. Raises as `up`, NothingToShare."""
    shared(settings)
    _answering(settings, tell, SERVING, lambda store: _looking(settings, store), watched=watched)


def control(settings: Settings, tell: Callable[[str], None], stopping: threading.Event) -> None:
    """The controller alone, until `stopping` is set. Of several the one that holds the lease acts.

    Raises as `up`, NothingToShare, NoCluster, HandNeedsAPage.
    """
    shared(settings)
    if conf_of(settings.ceph) is None:
        raise NoCluster("there is no cluster to control: set conf of [ceph]")
    if settings.ceph.hand_key is not None:
        raise HandNeedsAPage(
            "the mgr module takes its steps over REST, where `predrain control` does not answer: run `predrain up`, or "
            "take hand_key out of [ceph]"
        )
    with ExitStack() as closing:
        state = StateDir(settings.service.state).make()
        house = closing.enter_context(
            _housed(settings, state, lambda store: _leading(settings, store), CONTROLLING, None)
        )
        closing.enter_context(watched(house, settings, tell))
        house.run()
        tell(f"{this_process('controller')} controls")
        stopping.wait()


def work(
    settings: Settings,
    tell: Callable[[str], None],
    stopping: threading.Event,
    *,
    accept_store: str | None = None,
) -> None:
    """A share of the readings and of the latencies, until `stopping` is set. `accept_store`: as for `up`.

    Raises what is in the way as a Refusal, before anything was started, and NothingToShare.
    """
    shared(settings)
    with ExitStack() as closing:
        state = StateDir(settings.service.state).make()
        lineup = Lineup(forecaster_of(settings.forecast.bundle, state.tried), state.bundles)
        name = this_process("worker")
        clock = SystemClock()
        log, store = closing.enter_context(
            open_storage(settings, state, clock, name, marks=True, accept_store=accept_store)
        )
        working = Working(log, store, clock, lineup, name, settings.forecast.residence_limits)
        closing.enter_context(watched(working, settings, tell))
        tell(f"{name} takes its share")
        working.run(stopping)


def _answering(
    settings: Settings,
    tell: Callable[[str], None],
    parts: ServiceRoles | None,
    cluster: Callable[[Store], Live | None],
    *,
    watched: bool,
    accept_store: str | None = None,
) -> None:
    with ExitStack() as closing:
        listener = bind(settings.service)
        closing.callback(listener.close)
        built = closing.enter_context(build(settings, tell, cluster, parts, accept_store=accept_store))
        house, url = built.house, url_of(listener, settings.service)

        def started() -> None:
            built.state.say_url(url)
            tell(f"predrain answers at {url}\nprograms act with the token in {built.state.token}")
            if watched:
                tell(f"open {url}/#token={built.once}\n(this address may act until the process ends)")
            house.run()

        Server(house, built.known, listener, started=started).serve_here()


@contextmanager
def build(
    settings: Settings,
    tell: Callable[[str], None],
    cluster: Callable[[Store], Live | None],
    parts: ServiceRoles | None = None,
    requester: Requester = PAGE,
    *,
    accept_store: str | None = None,
) -> Iterator[Built]:
    """Open the state directory and put a house on it; nothing runs yet. Closes all of it, the cluster too.

    parts: everything when it is not said, beside others where the store is a database. requester: the one who has the
    token that dies with the process. Raises what is in the way as a
    Refusal.
    """
    if parts is None:
        parts = SHARING if settings.store.url is not None else EVERYTHING
    with ExitStack() as closing:
        state = closing.enter_context(StateDir(settings.service.state))
        scorebook = None
        try:
            if parts.judges:
                scorebook = Scorebook(state.scorebook)
                closing.callback(scorebook.close)
        except ScorebookUnusable as unusable:
            tell(f"bundles are not compared: {unusable}")
        house = closing.enter_context(
            _housed(settings, state, cluster, parts, scorebook, accept_store=accept_store)
        )
        known = tokens.gather(state.token)
        once = tokens.new_token()
        known = known.adding(
            once, tokens.Caller(requester.name, frozenset({tokens.Scope.READ, tokens.Scope.ACT}))
        )
        yield Built(house, state, known, once)


@contextmanager
def _housed(
    settings: Settings,
    state: StateDir,
    cluster: Callable[[Store], Live | None],
    parts: ServiceRoles,
    scorebook: Scorebook | None,
    *,
    accept_store: str | None = None,
) -> Iterator[House]:
    """A house on what the settings name."""
    with ExitStack() as closing:
        clock, name = SystemClock(), this_process("predrain") if parts.shares else "predrain"
        log, store = closing.enter_context(
            open_storage(settings, state, clock, name, marks=parts.scores, accept_store=accept_store)
        )
        found = cluster(store)
        if found is not None:
            closing.callback(found.close)
        ports = Ports(
            log,
            store,
            clock,
            forecaster_of(settings.forecast.bundle, state.tried),
            cluster=found,
            installed=state.bundles,
            scorebook=scorebook,
            name=name,
            channels=_channels(settings),
            digest=settings.mail.digest(settings.service.cluster_name, settings.service.address),
        )
        house = House(ports, settings.policy.policy(), settings, parts=parts)
        closing.callback(house.stop)
        yield house


def _channels(settings: Settings) -> tuple[NotificationChannel, ...]:
    """The ways to tell people that are set. Raises NoSecret."""
    cluster, address = settings.service.cluster_name, settings.service.address
    found = (
        settings.mail.channel(cluster, address),
        settings.webhook.channel(cluster, address, SystemClock().now),
    )
    return tuple(one for one in found if one is not None)


def _leading(settings: Settings, store: Store) -> Live | None:
    """The cluster of the settings, to be led."""
    state = StateDir(settings.service.state)
    return make_live_cluster(settings.ceph, store, lambda: find_or_make_signing_key(settings.ceph, state))


def _looking(settings: Settings, store: Store) -> Live | None:
    """The cluster of the settings, only to be looked at: the hand, too, is another process's."""
    state, alone = StateDir(settings.service.state), settings.ceph.model_copy(update={"hand_key": None})
    found = make_live_cluster(alone, store, lambda: find_or_make_signing_key(settings.ceph, state))
    return None if found is None else onlooking(found)


def this_process(part: str) -> str:
    """A name for a process that no other one on any machine has."""
    return f"{part}-{socket.gethostname()}-{os.getpid()}"


def forecaster_of(bundle: Path | None, tried: Path | None = None) -> Callable[[], Forecaster[Any]]:
    """Loads the bundle when it is called: LightGBM takes longer to import than all the rest.

    tried: where verdicts about bundles from outside are remembered.
    """

    def load() -> Forecaster[Any]:
        from predrain.service.scoring.bundled import BundledForecaster

        return BundledForecaster.load(bundle, tried)

    return load
