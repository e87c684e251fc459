"""A controller in a process of its own on a real cluster, which can be killed where a test says.

    python -m tests.system.ceph.runner '{"connection": {...}, "store": "PATH", "owner": "one", "die_in": "draining"}'

The runner prints one JSON line for each event, among them `state`, `sent`, and `dying` just before it kills itself.
With `die_in`, it kills itself when its drain is in that state: right before or right after the first write (to the
store, the config_key store or the cluster) that is not among `outlived`. With `stop_at`, it stops itself (SIGSTOP)
right before the command of that number, when all checks for the command are made.
"""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from predrain.actions.cluster.cluster_port import Command, CommandResult
from predrain.actions.cluster.cluster_view import ClusterView
from predrain.actions.cluster.config_key_store import ConfigKeys
from predrain.actions.cluster.lease import RadosLease
from predrain.actions.cluster.live_ceph import LiveCluster
from predrain.actions.cluster.rados_connection import Connection, Rados
from predrain.actions.cluster.signed_keys import SignedKeys
from predrain.actions.controller.controller import Controller
from predrain.actions.core.drain_policy import Policy
from predrain.data.store.sqlite_store import SqliteStore
from tests.actions.made_config_keys import SIGNING_KEY
from tests.deadlines import idle_seconds

POLICY = Policy(tick_seconds=1.0, mgr_stats_period_seconds=1.0, out_share_max=0.5)
"""The policy for clusters with a `mgr_stats_period` of 1 s."""


Death = tuple[str, int, str]
"""At which kind of write, the how manieth of its kind in the state, before or after it."""
OF_A_KIND = 2
"""A step writes journal and keep twice, and deaths in the next step would repeat those in this one."""


@dataclass(frozen=True)
class Orders:
    """The orders for one life of the runner. A `stop_at` of 0 means never."""

    connection: dict[str, Any]
    store: str
    owner: str = "one"
    die_in: str = ""
    outlived: tuple[Death, ...] = ()
    stop_at: int = 0
    lease_seconds: float = 6.0
    seconds: float = 600.0
    until: tuple[str, ...] = ("verified", "cancelled", "handed_over", "failed")
    tick_seconds: float = 1.0


def say(what: str, **more: object) -> None:
    print(json.dumps({"what": what, "at": time.time(), **more}), flush=True)


@dataclass
class Fuse:
    """Counts writes, and kills this process at the chosen one."""

    orders: Orders
    state: Callable[[], str] = lambda: ""
    writes: int = 0
    _of_kind: Counter[str] = field(default_factory=Counter)

    def burn(self, kind: str, call: Callable[..., Any], *arguments: Any) -> Any:
        self.writes += 1
        state = self.state() if self.orders.die_in else ""
        if not state or state != self.orders.die_in:
            return call(*arguments)
        self._of_kind[kind] += 1
        self._live_or_die(kind, "before")
        result = call(*arguments)
        self._live_or_die(kind, "after")
        return result

    def _live_or_die(self, kind: str, side: str) -> None:
        number = self._of_kind[kind]
        if number <= OF_A_KIND and (kind, number, side) not in self.orders.outlived:
            say("dying", death=(kind, number, side))
            os.kill(os.getpid(), signal.SIGKILL)


@dataclass
class Fused:
    """Anything whose writes burn the fuse."""

    real: Any
    fuse: Fuse
    writes: tuple[str, ...]

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.real, name)
        return (lambda *given: self.fuse.burn(name, found, *given)) if name in self.writes else found


@dataclass
class FusedCluster:
    """The cluster's port; tells of every command. Stands in for the agents on the hosts, which would say that clients
    wait no longer than before and how many backfills are in force.
    """

    live: LiveCluster
    fuse: Fuse
    commands: int = 0

    def view(self) -> ClusterView:
        view = self.live.view()
        return dataclasses.replace(
            view,
            latency_ratio=dict.fromkeys(view.osds, 1.0),
            backfills_in_force=dict.fromkeys(view.osds, 1),
        )

    def apply(self, command: Command) -> CommandResult:
        self.commands += 1
        if self.commands == self.fuse.orders.stop_at:
            say("stopping")
            os.kill(os.getpid(), signal.SIGSTOP)
        answer: CommandResult = self.fuse.burn("command", self.live.apply, command)
        say("sent", command=repr(command), ok=answer.ok, text=answer.text)
        return answer


def main(orders: Orders) -> None:
    """Tick until every drain has ended (or rests), or time is up."""
    connection = Connection(**{**orders.connection, "interpreter": tuple(orders.connection["interpreter"])})
    channel = Rados(connection)
    now = lambda: datetime.now(UTC)  # noqa: E731
    fuse = Fuse(orders)
    store: Any = Fused(SqliteStore(Path(orders.store)), fuse, ("save_drain", "add_journal"))
    keep: Any = Fused(SignedKeys(ConfigKeys(channel), SIGNING_KEY), fuse, ("write", "remove"))
    lease = RadosLease(
        channel,
        orders.owner,
        lambda: time.clock_gettime(time.CLOCK_BOOTTIME),
        seconds=orders.lease_seconds,
    )
    cluster = FusedCluster(LiveCluster(channel, now), fuse)
    controller = Controller(cluster, store, POLICY, keep=keep, lease=lease, owner=orders.owner)
    fuse.state = lambda: ",".join(drain.state.value for drain in store.drains())
    until, told = idle_seconds() + orders.seconds, ""
    while idle_seconds() < until:
        report = controller.tick(now(), {})
        drains = store.drains()
        state = ",".join(drain.state.value for drain in drains)
        held = [sentence for drain in drains for sentence in drain.held_by]
        if (line := json.dumps([state, report.trouble, held])) != told:
            say("state", state=state, trouble=report.trouble, held=held)
            told = line
        if drains and all(drain.state.value in orders.until for drain in drains):
            break
        time.sleep(orders.tick_seconds)
    controller.give_up()
    say("done", state=",".join(drain.state.value for drain in store.drains()), writes=fuse.writes)
    channel.close()


if __name__ == "__main__":
    given = json.loads(sys.argv[1])
    given["until"] = tuple(given.get("until", Orders.__dataclass_fields__["until"].default))
    given["outlived"] = tuple((kind, number, side) for kind, number, side in given.get("outlived", ()))
    main(Orders(**given))


def as_given(connection: Connection) -> dict[str, Any]:
    """A connection as `Orders` takes it."""
    return dataclasses.asdict(connection)
