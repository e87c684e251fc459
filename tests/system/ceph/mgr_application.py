"""An application for the mgr module: real REST on a fixed port, over any cluster. It can go down and come back."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx2

from predrain.actions.cluster.cluster_port import Cluster
from predrain.actions.core.drain_policy import Policy
from predrain.data.clock import SystemClock
from predrain.data.ids import DeviceId
from predrain.data.log.sqlite_log import SqliteLog
from predrain.data.outlook import Outlook, Reason, Status
from predrain.data.store.sqlite_store import SqliteStore
from predrain.service.access.tokens import load_admin_tokens
from predrain.service.app.application import Application, ApplicationPorts
from predrain.service.app.changes import ChangeKind
from predrain.service.config.settings import ServiceTable, Settings
from predrain.service.config.state_directory import StateDir
from predrain.service.drains.live_cluster import LiveClusterParts
from predrain.service.http.server import Server, bind_listening_socket, url_of
from tests.ports import hold_port


class MgrApplication:
    """`step` lets the controller look once. Forecasts are put in by `forecast`: no worker runs."""

    def __init__(self, folder: Path, cluster: Cluster, policy: Policy | None = None, **service: Any) -> None:
        state = StateDir(folder).ensure_exists()
        self.store, self.log = SqliteStore(state.store), SqliteLog(state.log)
        self.settings = Settings(service=ServiceTable(port=hold_port(), state=folder, **service))
        self.tokens = load_admin_tokens(state.token)
        self.token = state.token.read_text().strip()
        ports = ApplicationPorts(self.log, self.store, SystemClock(), _nobody, LiveClusterParts(cluster))
        self.application = Application(ports, policy or Policy(), self.settings)
        self.url = ""
        self._stop: Callable[[], None] | None = None

    def up(self) -> MgrApplication:
        """Listen, at the same port after each `down`."""
        listener = bind_listening_socket(self.settings.service)
        self.url = url_of(listener, self.settings.service)
        stop = Server(self.application, self.tokens, listener).serve_aside()

        def down() -> None:
            stop()
            listener.close()

        self._stop = down
        return self

    def down(self) -> None:
        """Nobody listens."""
        if self._stop is not None:
            self._stop()
            self._stop = None

    def close(self) -> None:
        """Stop the application for good, and close its log and its store."""
        self.down()
        self.application.stop()
        self.log.close()
        self.store.close()

    def forecast(self, device: str, status: Status) -> None:
        """Say this of a device from now on."""
        why = (Reason("pending-rose", "Pending sectors rose on 5 of the last 7 days, 0 to 48."),)
        outlook = Outlook(
            DeviceId(device), datetime.now(UTC), status, "model:test", why, "Drain it.",
            p_fail_7d=0.3, p_fail_14d=0.4, p_fail_30d=0.6, readings=8, span_hours=48.0,
        )  # fmt: skip
        self.store.save_outlooks([outlook])
        self.application.fleet.update_newest((), [outlook])
        self.step()

    def step(self) -> None:
        """Let the controller poll once, and notify the listeners."""
        self.application.step_controller()
        self.application.changes.notify_change(ChangeKind.DRAINS, ChangeKind.OSDS, ChangeKind.STATUS)

    def call(self, method: str, path: str, body: object = None, **headers: str) -> Any:
        """A person's own request."""
        headers = {"Authorization": f"Bearer {self.token}", **headers}
        answer = httpx2.request(method, f"{self.url}/api/v1/{path}", json=body, headers=headers, timeout=20)
        assert answer.status_code < 300, answer.text
        return answer.json()


def _nobody() -> Any:
    raise AssertionError("nothing is scored here")
