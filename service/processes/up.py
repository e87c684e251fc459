"""Start an application on this machine: everything in one process, or one of several that share a log and a
store.

The HTTP server answers before the heavy packages are imported.
"""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from predrain.data.clock import SystemClock
from predrain.data.refusal import Refusal
from predrain.data.scorebook import Scorebook, ScorebookUnusable
from predrain.data.store.store_faults import StoreRefusal
from predrain.data.store.store_port import Store
from predrain.service.access import tokens
from predrain.service.access.requester import Requester, RequestSurface
from predrain.service.app.active_log import ActiveServiceLog
from predrain.service.app.application import Application, ApplicationPorts
from predrain.service.app.roles import CONTROLLING, EVERYTHING, SERVING, SHARING, ServiceRoles
from predrain.service.config.channels import open_channels
from predrain.service.config.settings import Settings
from predrain.service.config.state_directory import StateDir
from predrain.service.drains.drain_requests import NoCluster
from predrain.service.drains.live_cluster import LiveClusterParts, conf_of, make_live_cluster
from predrain.service.drains.view_only_cluster import make_view_only_cluster
from predrain.service.forecasting.deployed_models import DeployedModels
from predrain.service.forecasting.forecaster import Forecaster
from predrain.service.http.server import Server, bind_listening_socket, run_metrics_server, url_of
from predrain.service.notifications.channel import NotificationChannel
from predrain.service.processes.state_opening import open_storage
from predrain.service.processes.worker_process import WorkerProcess
from predrain.service.runtime.process_identity import name_this_process, read_boot_clock
from predrain.service.runtime.service_lease import ServiceLease
from predrain.service.storage.backends import require_shared_backends
from predrain.service.storage.signing_key import find_or_make_signing_key

PAGE = Requester(RequestSurface.PAGE)


class MgrExecutorNeedsRest(Refusal):
    """The mgr executor needs REST, which `predrain control` does not serve."""


@dataclass(frozen=True, slots=True)
class OpenedApplication:
    """An application on this machine's files, and its tokens. `once`: a token that is valid until the process
    ends.
    """

    application: Application
    state: StateDir
    known: tokens.Tokens
    once: str


def run_whole_service(
    settings: Settings, tell: Callable[[str], None], *, watched: bool, accept_store: str | None = None
) -> None:
    """Run everything in this process until SIGINT or SIGTERM, beside other processes if the store is shared.

    Raises obstacles as a Refusal, before anything is started. `watched`: a person reads the output, and gets a
    URL that may act; a journal must not keep such a URL. `accept_store`: the id of a lost store whose loss a
    person accepts (`open_storage`).
    """
    _serve_application(
        settings,
        tell,
        None,
        lambda store: _make_controlled_cluster(settings, store),
        watched=watched,
        accept_store=accept_store,
    )


def run_web_service(settings: Settings, tell: Callable[[str], None], *, watched: bool) -> None:
    """Run the page, REST and ingest alone until SIGINT or SIGTERM; any number of such processes may run.

    Raises what `run_whole_service` raises, and LocalFilesNotShareable.
    """
    require_shared_backends(settings)
    _serve_application(
        settings, tell, SERVING, lambda store: _make_observed_cluster(settings, store), watched=watched
    )


def run_controller(settings: Settings, tell: Callable[[str], None], stopping: threading.Event) -> None:
    """Run the controller alone until `stopping` is set. Of several controllers the holder of the lease acts.

    Raises what `run_whole_service` raises, LocalFilesNotShareable, NoCluster, MgrExecutorNeedsRest.
    """
    require_shared_backends(settings)
    if conf_of(settings.ceph) is None:
        raise NoCluster("there is no cluster to control: set conf of [ceph]")
    if settings.ceph.executor_key is not None:
        raise MgrExecutorNeedsRest(
            "the mgr module takes its steps over REST, where `predrain control` does not answer: run `predrain up`, or "
            "take executor_key out of [ceph]"
        )
    with ExitStack() as closing:
        state = StateDir(settings.service.state).ensure_exists()
        application = closing.enter_context(
            _assemble_application(
                settings, state, lambda store: _make_controlled_cluster(settings, store), CONTROLLING, None
            )
        )
        closing.enter_context(run_metrics_server(application, settings, tell))
        application.run()
        tell(f"{this_process('controller')} controls")
        stopping.wait()


def run_worker(
    settings: Settings,
    tell: Callable[[str], None],
    stopping: threading.Event,
    *,
    accept_store: str | None = None,
) -> None:
    """Score a share of the readings and of the latencies until `stopping` is set.

    `accept_store` has the meaning that it has for `run_whole_service`.

    Raises obstacles as a Refusal, before anything is started, and LocalFilesNotShareable.
    """
    require_shared_backends(settings)
    with ExitStack() as closing:
        state = StateDir(settings.service.state).ensure_exists()
        deployed_models = DeployedModels(forecaster_of(settings.forecast.bundle, state.tried), state.bundles)
        name = this_process("worker")
        clock = SystemClock()
        log, store = closing.enter_context(
            open_storage(settings, state, clock, name, marks=True, accept_store=accept_store)
        )
        working = WorkerProcess(log, store, clock, deployed_models, name, settings.forecast.residence_limits)
        closing.enter_context(run_metrics_server(working, settings, tell))
        tell(f"{name} takes its share")
        working.run(stopping)


def _serve_application(
    settings: Settings,
    tell: Callable[[str], None],
    parts: ServiceRoles | None,
    cluster: Callable[[Store], LiveClusterParts | None],
    *,
    watched: bool,
    accept_store: str | None = None,
) -> None:
    with ExitStack() as closing:
        listener = bind_listening_socket(settings.service)
        closing.callback(listener.close)
        built = closing.enter_context(
            open_application(settings, tell, cluster, parts, accept_store=accept_store, competes=True)
        )
        application, url = built.application, url_of(listener, settings.service)

        if application.lease is not None:
            application.lease.url = url

        def started() -> None:
            with suppress(StoreRefusal):  # a service that is alone takes readings from its first answer on
                application.step_lease()
            built.state.say_url(url)
            tell(f"predrain answers at {url}\nprograms act with the token in {built.state.token}")
            if watched:
                tell(f"open {url}/#token={built.once}\n(this address may act until the process ends)")
            application.run()

        Server(application, built.known, listener, started=started).serve_here()


@contextmanager
def open_application(
    settings: Settings,
    tell: Callable[[str], None],
    cluster: Callable[[Store], LiveClusterParts | None],
    parts: ServiceRoles | None = None,
    requester: Requester = PAGE,
    *,
    accept_store: str | None = None,
    competes: bool = False,
) -> Iterator[OpenedApplication]:
    """Open the state directory and build an application on it; nothing runs yet. On exit all is closed, with the
    cluster.

    parts: by default everything, beside other processes if the store is a database. requester: the holder of the
    token that is valid until the process ends.

    competes: the process is a service, which may become the active one of those on the store. A command is no service.

    Raises obstacles as a Refusal.
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
        application = closing.enter_context(
            _assemble_application(
                settings, state, cluster, parts, scorebook, accept_store=accept_store, competes=competes
            )
        )
        known = tokens.load_admin_tokens(state.token)
        once = tokens.new_token()
        known = known.with_token(
            once, tokens.Caller(requester.name, frozenset({tokens.Scope.READ, tokens.Scope.ACT}))
        )
        yield OpenedApplication(application, state, known, once)


@contextmanager
def _assemble_application(
    settings: Settings,
    state: StateDir,
    cluster: Callable[[Store], LiveClusterParts | None],
    parts: ServiceRoles,
    scorebook: Scorebook | None,
    *,
    accept_store: str | None = None,
    competes: bool = True,
) -> Iterator[Application]:
    """Build an application on the backends of the settings. competes: as for `open_application`."""
    with ExitStack() as closing:
        clock, name = SystemClock(), this_process("predrain") if parts.shares else "predrain"
        log, store = closing.enter_context(
            open_storage(settings, state, clock, name, marks=parts.scores, accept_store=accept_store)
        )
        found = cluster(store)
        if found is not None:
            closing.callback(found.close)
        lease = None
        if parts.shares and competes:
            lease = ServiceLease(store, name_this_process(), clock, read_boot_clock)
            if not settings.kafka.bootstrap_servers:
                log = ActiveServiceLog(log, lease)
        ports = ApplicationPorts(
            log,
            store,
            clock,
            forecaster_of(settings.forecast.bundle, state.tried),
            cluster=found,
            installed=state.bundles,
            scorebook=scorebook,
            name=name,
            channels=_build_notification_channels(settings),
            other_clusters=settings.clusters.open_sources(),
            digest=settings.mail.make_digest_factory(
                settings.service.cluster_name, settings.service.external_url
            ),
            lease=lease,
        )
        application = Application(ports, settings.policy.to_policy(), settings, parts=parts)
        closing.callback(application.stop)
        yield application


def _build_notification_channels(settings: Settings) -> tuple[NotificationChannel, ...]:
    """Open the notification channels that are set. Raises NoSecret, NoAuthority."""
    return tuple(open_channels(settings, SystemClock().now))


def _make_controlled_cluster(settings: Settings, store: Store) -> LiveClusterParts | None:
    """Return the cluster of the settings for a process that may lead."""
    state = StateDir(settings.service.state)
    return make_live_cluster(settings.ceph, store, lambda: find_or_make_signing_key(settings.ceph, state))


def _make_observed_cluster(settings: Settings, store: Store) -> LiveClusterParts | None:
    """Return the cluster of the settings for a process that never acts, not even through the mgr executor."""
    state, alone = StateDir(settings.service.state), settings.ceph.model_copy(update={"executor_key": None})
    found = make_live_cluster(alone, store, lambda: find_or_make_signing_key(settings.ceph, state))
    return None if found is None else make_view_only_cluster(found)


def this_process(part: str) -> str:
    """Return a name that no other process on any machine has."""
    return f"{part}-{socket.gethostname()}-{os.getpid()}"


def forecaster_of(bundle: Path | None, tried: Path | None = None) -> Callable[[], Forecaster[Any]]:
    """Return a function that loads the bundle, since the import of LightGBM takes longer than all the rest.

    tried: the file of verdicts about bundles from outside.
    """

    def load() -> Forecaster[Any]:
        from predrain.service.forecasting.bundle_choice import BundledForecaster

        return BundledForecaster.load(bundle, tried)

    return load
