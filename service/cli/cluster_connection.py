"""How commands reach the cluster: through the running service, else straight; found as Ceph's own tools find it."""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from predrain.actions.cluster.channel import CommandChannel
from predrain.data.refusal import Refusal
from predrain.service.cli.shared_options import ServiceAddress, StateAddress
from predrain.service.config.state_directory import StateDir, StateInUse
from predrain.service.terminal.person import name_typist
from predrain.service.terminal.service_connection import CliClient, NotRunning
from predrain.service.terminal.waiting import ClusterUnanswered, wait_for_cluster

if TYPE_CHECKING:
    from predrain.service.config.settings import CephTable, Settings

IN_USE_SECONDS = 15.0
"""Time for which a command waits for another one that holds the state directory without answering: most end soon."""


class NoClusterNamed(Refusal):
    """Neither options nor settings nor Ceph's usual places name a cluster."""


@Parameter(name="*")
@dataclass(frozen=True)
class ClusterAddress(StateAddress):
    """Which cluster is meant."""

    conf: Annotated[Path | None, Parameter(help="Ceph's configuration file.")] = None
    name: Annotated[str | None, Parameter(help="Cephx user, such as client.predrain.")] = None
    keyring: Annotated[Path | None, Parameter(help="File with its key.")] = None
    cluster_name: Annotated[str | None, Parameter(help="Name of the cluster, as in its file names.")] = None
    signing_key: Annotated[
        Path | None, Parameter(help="File with the controllers' key: without one a command may only plan.")
    ] = None
    recorded: Annotated[
        Path | None, Parameter(help="Plan against a recording (`predrain cluster record`) instead.")
    ] = None

    def settings(self) -> Settings:
        """Settings under the options. Raises BadSettings."""
        settings = super().settings()
        said = {
            "conf": self.conf,
            "name": self.name,
            "keyring": self.keyring,
            "cluster_name": self.cluster_name,
            "signing_key": self.signing_key,
        }
        given = {key: value for key, value in said.items() if value is not None}
        return settings.model_copy(update={"ceph": settings.ceph.model_copy(update=given)})

    def names_this_machine(self) -> bool:
        """Return whether an option names a state, settings or a cluster, so that no remote service is meant."""
        given = (self.conf, self.name, self.keyring, self.cluster_name, self.signing_key, self.recorded)
        return super().names_this_machine() or any(one is not None for one in given)


@Parameter(name="*")
@dataclass(frozen=True)
class DrainAddress(ServiceAddress, ClusterAddress):
    """Which service answers about drains, or which cluster, where no service runs."""

    @contextmanager
    def service(self, *, acting: bool = False) -> Iterator[CliClient]:
        """Yield the remote service that is named, or the running service with this state, or a service of our own over
        the cluster while the context lasts.

        acting: the controller of our own works meanwhile. Raises NotRunning, NoClusterNamed and what is in the way.
        """
        if (remote := self.remote_client()) is not None:
            yield replace(remote, waits=True)
            return
        settings = self.settings()
        with ExitStack() as closing:
            if self.recorded is not None:
                yield closing.enter_context(self._own(settings, acting=acting))
            else:
                yield self._join(settings, closing, acting=acting)

    def _join(self, settings: Settings, closing: ExitStack, *, acting: bool) -> CliClient:
        """Return a client of the running service with this state. Without one start a service of our own, which waits
        until a command that holds the state has ended. Raises StateInUse.
        """
        ends = time.monotonic() + IN_USE_SECONDS
        while True:
            try:
                running = CliClient.from_settings(settings)
                running.get("halt")
            except NotRunning as silent:
                clustered = _require_named_cluster(settings, silent)
            else:
                return replace(running, waits=True)
            try:
                return closing.enter_context(self._own(clustered, acting=acting))
            except StateInUse:
                if time.monotonic() > ends:
                    raise
                time.sleep(0.2)

    @contextmanager
    def _own(self, settings: Settings, *, acting: bool) -> Iterator[CliClient]:
        """Run a service of this command's own and yield its client."""
        from predrain.service.drains.live_cluster import make_live_cluster, open_recorded_cluster
        from predrain.service.processes.in_process_service import serve_in_process
        from predrain.service.storage.signing_key import find_key_file, find_signing_key

        found, state = None, StateDir(settings.service.state)
        key = find_key_file(settings.ceph, state)
        caller = name_typist() + ("" if key is None else f", key {key.name}")
        with tempfile.TemporaryDirectory(prefix="predrain-") as scratch:
            if self.recorded is not None:
                apart = settings.service.model_copy(update={"state": Path(scratch)})
                settings = settings.model_copy(update={"service": apart})
                found = open_recorded_cluster(self.recorded)
            with serve_in_process(
                settings,
                lambda store: (
                    found
                    or make_live_cluster(settings.ceph, store, lambda: find_signing_key(settings.ceph, state))
                ),
                _print_progress,
                acting=acting,
                person=caller,
                retry=look_at_cluster,
            ) as (url, token):
                yield CliClient(url, token, own=True, waits=True)


def look_at_cluster(look: Callable[[], None]) -> None:
    """Look; where the cluster does not answer, again for as long as a command waits. Raises NotSeen, as `look` does."""
    from predrain.actions.cluster.cluster_port import ClusterNotReadYet
    from predrain.service.drains.drain_requests import LOOK_AGAIN_SECONDS, may_pass

    def look_once() -> None:
        try:
            look()
        except ClusterNotReadYet as unseen:
            if not may_pass(unseen.__cause__):
                raise
            raise ClusterUnanswered(unseen, LOOK_AGAIN_SECONDS) from unseen

    wait_for_cluster(look_once)


def make_cluster_channel(reach: ClusterAddress) -> CommandChannel:
    """A channel to the cluster that is meant. Raises NoClusterNamed; it is not yet connected."""
    from predrain.service.drains.live_cluster import channel_to

    channel = channel_to(reach.settings().ceph)
    if channel is None:
        raise NoClusterNamed(_describe_missing_cluster(reach.settings().ceph))
    return channel


def _require_named_cluster(settings: Settings, silent: NotRunning) -> Settings:
    from predrain.service.drains.live_cluster import conf_of

    if conf_of(settings.ceph) is None:
        raise NotRunning(f"{silent}; without one, {_describe_missing_cluster(settings.ceph)}") from silent
    return settings


def _describe_missing_cluster(ceph: CephTable) -> str:
    return (
        f"no cluster is named: say --conf, CEPH_CONF or `conf` of [ceph], or put the file at "
        f"/etc/ceph/{ceph.cluster_name}.conf"
    )


def _print_progress(text: str) -> None:
    print(text, file=sys.stderr)
