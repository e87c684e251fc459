"""The service that is measured, as `predrain up` or `predrain serve` starts it: `python -m ... CONFIG up|serve`.

Its first line is its address. Each line on its standard input gives it a cluster of one OSD for each disk that it
knows, and is answered with `viewed`; what this imports is not loaded before.
"""

from __future__ import annotations

import sys
import threading
from pathlib import Path

from predrain.service.app.application import Application
from predrain.service.app.roles import SERVING
from predrain.service.config.settings import load_settings
from predrain.service.http.server import Server, bind_listening_socket, url_of
from predrain.service.processes.up import open_application
from predrain.service.runtime import python_runtime


def serve_until_ended(config: Path, *, scoring: bool) -> None:
    """Serve until SIGTERM. scoring: everything runs here; otherwise workers score elsewhere."""
    settings = load_settings(config)
    listener = bind_listening_socket(settings.service)
    address = url_of(listener, settings.service).removeprefix("http://")
    python_runtime.tune_runtime()
    with open_application(settings, lambda _: None, lambda _: None, None if scoring else SERVING) as built:

        def started() -> None:
            built.application.run()
            threading.Thread(target=_give_views, args=(built.application,), daemon=True).start()
            print(address, flush=True)

        Server(built.application, built.known, listener, started=started).serve_here()


def _give_views(application: Application) -> None:
    for _ in sys.stdin:
        from predrain.service.app.changes import ChangeKind
        from tests.bench.fleet_view import build_view

        application.fleet.update_view(build_view(application.fleet.get_readings().values()))
        application.changes.notify_change(ChangeKind.OSDS, ChangeKind.DEVICES, ChangeKind.STATUS)
        print("viewed", flush=True)


if __name__ == "__main__":
    serve_until_ended(Path(sys.argv[1]), scoring=sys.argv[2] == "up")
