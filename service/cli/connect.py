"""How commands reach the cluster: through the running service, else straight; found as Ceph's own tools find it."""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from predrain.actions.cluster.channel import CommandChannel
from predrain.data.refusal import Refusal
from predrain.service.cli.client import Client, NotRunning
from predrain.service.cli.options import Where
from predrain.service.cli.person import name_typist
from predrain.service.cli.waiting import ClusterUnanswered, wait_for_cluster
from predrain.service.settings import CephTable, Settings
from predrain.service.state_directory import StateDir, StateInUse

IN_USE_SECONDS = 15.0
"""How long a command waits for another one that holds the state directory and does not answer: most end in seconds."""


class NoClusterNamed(Refusal):
    """Neither options nor settings nor Ceph's usual places name a cluster."""


@Parameter(name="*")
@dataclass(frozen=True)
class Reach(Where):
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

    @contextmanager
    def service(self, *, acting: bool = False) -> Iterator[Client]:
        """The running service; where none runs on this state, one of our own over the cluster while the context lasts.

        acting: the controller of our own works meanwhile. Raises NotRunning, NoClusterNamed and what is in the way.
        """
        settings = self.settings()
        with ExitStack() as closing:
            if self.recorded is not None:
                yield closing.enter_context(self._own(settings, acting=acting))
            else:
                yield self._join(settings, closing, acting=acting)

    def _join(self, settings: Settings, closing: ExitStack, *, acting: bool) -> Client:
        """The process that holds this state and answers, else one of our own, which waits for a command to end that
        holds it. Raises StateInUse."""
        ends = time.monotonic() + IN_USE_SECONDS
        while True:
            try:
                running = Client.of(settings)
                running.get("halt")
            except NotRunning as silent:
                clustered = _clustered(settings, silent)
            else:
                return replace(running, waits=True)
            try:
                return closing.enter_context(self._own(clustered, acting=acting))
            except StateInUse:
                if time.monotonic() > ends:
                    raise
                time.sleep(0.2)

    @contextmanager
    def _own(self, settings: Settings, *, acting: bool) -> Iterator[Client]:
        """A service of this command's own."""
        from predrain.service.in_process_service import serving
        from predrain.service.live_cluster import make_live_cluster, recorded
        from predrain.service.signing_key import find_key_file, find_signing_key

        found, state = None, StateDir(settings.service.state)
        key = find_key_file(settings.ceph, state)
        caller = name_typist() + ("" if key is None else f", key {key.name}")
        with tempfile.TemporaryDirectory(prefix="predrain-") as scratch:
            if self.recorded is not None:
                apart = settings.service.model_copy(update={"state": Path(scratch)})
                settings = settings.model_copy(update={"service": apart})
                found = recorded(self.recorded)
            with serving(
                settings,
                lambda store: (
                    found
                    or make_live_cluster(settings.ceph, store, lambda: find_signing_key(settings.ceph, state))
                ),
                _tell,
                acting=acting,
                person=caller,
                retry=look_at_cluster,
            ) as (url, token):
                yield Client(url, token, own=True, waits=True)


def look_at_cluster(look: Callable[[], None]) -> None:
    """Look; where the cluster does not answer, again for as long as a command waits. Raises NotSeen, as `look` does."""
    from predrain.service.drains.drain_requests import LOOK_AGAIN_SECONDS, NotSeen, may_pass

    def look_once() -> None:
        try:
            look()
        except NotSeen as unseen:
            if not may_pass(unseen.__cause__):
                raise
            raise ClusterUnanswered(unseen, LOOK_AGAIN_SECONDS) from unseen

    wait_for_cluster(look_once)


def connected(reach: Reach) -> CommandChannel:
    """A channel to the cluster that is meant. Raises NoClusterNamed; it is not yet connected."""
    from predrain.service.live_cluster import channel_to

    channel = channel_to(reach.settings().ceph)
    if channel is None:
        raise NoClusterNamed(_nowhere(reach.settings().ceph))
    return channel


def _clustered(settings: Settings, silent: NotRunning) -> Settings:
    from predrain.service.live_cluster import conf_of

    if conf_of(settings.ceph) is None:
        raise NotRunning(f"{silent}; without one, {_nowhere(settings.ceph)}") from silent
    return settings


def _nowhere(ceph: CephTable) -> str:
    return (
        f"no cluster is named: say --conf, CEPH_CONF or `conf` of [ceph], or put the file at "
        f"/etc/ceph/{ceph.cluster_name}.conf"
    )


def _tell(text: str) -> None:
    print(text, file=sys.stderr)
