"""A controller on a real cluster, ticked by a test; the latency signal is given, so that the machine's load is no part.

The cluster should be started with `conf=QUICK`: statistics every second, so that steps need not wait for fifteen.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from predrain.actions.cluster.cluster_port import Command, CommandResult
from predrain.actions.cluster.cluster_view import ClusterView
from predrain.actions.cluster.live_ceph import LiveCluster
from predrain.actions.cluster.rados_connection import Rados
from predrain.actions.controller.controller import Controller
from predrain.actions.core.drain_policy import Policy
from predrain.data.drain import Drain, DrainState, Intent
from predrain.data.ids import PgId
from predrain.data.store.sqlite_store import SqliteStore
from tests.deadlines import idle_seconds
from tests.system.ceph.minicluster import MiniCluster

QUICK = "mgr_stats_period = 1\nmon_osd_report_timeout = 900\n"
POLICY = Policy(tick_seconds=1.0, mgr_stats_period_seconds=1.0, out_share_max=0.5)


@dataclass
class Calm:
    """The real cluster with a signal that says that clients wait as long as ever; keeps what was sent."""

    live: LiveCluster
    sent: list[Command] = field(default_factory=list)

    def view(self) -> ClusterView:
        seen = self.live.view()
        return replace(seen, latency_ratio=dict.fromkeys(seen.osds, 1.0))

    def apply(self, command: Command) -> CommandResult:
        self.sent.append(command)
        return self.live.apply(command)


class Driven:
    """Drains of one real cluster by predrain's own user, with a store of their own."""

    def __init__(self, cluster: MiniCluster, policy: Policy = POLICY) -> None:
        self.cluster, self.policy = cluster, policy
        self.channel = Rados(cluster.least())
        self.port = Calm(LiveCluster(self.channel, lambda: datetime.now(UTC)))
        self.store = SqliteStore(":memory:")
        self.controller = Controller(self.port, self.store, policy)

    def __enter__(self) -> Driven:
        return self

    def __exit__(self, *_: object) -> None:
        self.channel.close()

    def view(self) -> ClusterView:
        """A fresh look."""
        return self.port.view()

    def proposed(self, target: str, intent: Intent = Intent.REPLACE) -> Drain:
        """A drain with its plan, which may refuse; nobody has approved it."""
        now = datetime.now(UTC)
        self.controller.tick(now, {})
        return self.controller.requests.propose(target, "operator", "test", now, intent)

    def asked(self, target: str, intent: Intent = Intent.REPLACE) -> Drain:
        """A drain, proposed and approved."""
        drain = self.proposed(target, intent)
        assert drain.plan is not None
        assert not drain.plan.refusals, drain.plan.refusals
        return self.controller.requests.approve(drain.id, "operator", datetime.now(UTC))

    def until(
        self,
        drain: Drain,
        *states: DrainState,
        seconds: float = 400,
        each: Callable[[ClusterView], None] = lambda _: None,
    ) -> Drain:
        """Tick until the drain is in one of `states`, and call `each` with the view of each poll."""
        end = idle_seconds() + seconds
        while (found := self.controller.requests.get_drain(drain.id)).state not in states:
            assert idle_seconds() < end, f"{found.state}, held by {found.held_by}, {found.progress}"
            report = self.controller.tick(datetime.now(UTC), {})
            if report.view is not None:
                each(report.view)
            time.sleep(self.policy.tick_seconds)
        return found


def places(view: ClusterView) -> dict[PgId, frozenset[int]]:
    """Return the acting set of each PG."""
    return {id_: frozenset(pg.acting) for id_, pg in view.pgs.items()}
