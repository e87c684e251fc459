"""Makes a stored copy of a state directory as the code of this commit writes it: `python tests/samples/make_state.py`.

The script is run once for each version of the store. The copy is kept beside the script, so that every later predrain
is tested on it. The copy holds three drives, one of them bad, a drain that has begun on a simulated cluster, latencies,
an outcome, a halt in the past, and a reading that is accepted and not scored yet. From version 4 on, it has a silence.
"""

from __future__ import annotations

import sys
import tarfile
import tempfile
from datetime import timedelta
from pathlib import Path

sys.path.insert(0, str(Path.cwd()))

from predrain.actions.core.drain_policy import Policy
from predrain.data.drain import DrainState
from predrain.data.ids import DeviceId, HostName, OsdId
from predrain.data.latency_windows import LatencySummary, LatencyWindows
from predrain.data.outcome import DriveFate, Outcome
from predrain.data.store.store_schema import VERSION
from predrain.service.app.application import Application
from predrain.service.config.settings import ServiceTable, Settings
from predrain.service.config.state_directory import StateDir
from predrain.service.forecasting.bundle_choice import BundledForecaster
from tests.service.conftest import Place, shut, smart_reading, week_of
from tests.service.person_requests import approve_drain, propose_drain
from tests.service.test_drains import ClusterClock, Seated, World, seated
from tests.service.test_worker import work


def main() -> None:
    """Write `state-vN.tar.gz` beside this file's commit."""
    with tempfile.TemporaryDirectory() as folder:
        state = StateDir(Path(folder) / "state").ensure_exists()
        cluster = seated()
        settings = Settings(service=ServiceTable(port=0, state=state.path))
        place = Place(state, ClusterClock(cluster), BundledForecaster.load(), settings, Policy())  # type: ignore[arg-type]
        reach = Seated(cluster)
        application = place.application(cluster=reach)
        application.start()
        fill(World(application, cluster, reach))
        shut(application)
        out = Path(sys.argv[1] if len(sys.argv) > 1 else ".") / f"state-v{VERSION}.tar.gz"
        with tarfile.open(out, "w:gz", compresslevel=9) as archive:
            for path in sorted(state.path.iterdir()):
                archive.add(path, path.name, filter=nobodys)
        print(out, out.stat().st_size, "bytes")


def fill(world: World) -> None:
    """Some days of a small service."""
    application, now = world.application, world.application.clock.now()
    world.tick(5)
    application.ingest([*week_of("A", now, pending=400), *week_of("B", now), *week_of("C", now)])
    work(application)
    application.record_outcome(
        Outcome(DeviceId("ST4000DM000_OLD"), now - timedelta(days=30), DriveFate.FAILED, "operator")
    )
    application.store.add_latency(
        LatencyWindows.from_summaries(
            LatencySummary(
                OsdId(osd), HostName("stor-01"), now - timedelta(minutes=minute), 60.0, 600, 4.0, 9.5
            )
            for osd in range(3)
            for minute in range(20, 0, -1)
        )
    )
    application.halt("storm", "operator")
    application.halt(None, "operator")
    drain = propose_drain(application, "osd.0", "operator")
    approve_drain(application, drain, "operator")
    while application.store.drains()[0].progress.moved_pgs < 1:
        world.tick()
    assert application.store.drains()[0].state is DrainState.DRAINING
    silenced(application)
    application.ingest([smart_reading("D", world.application.clock.now())])


def silenced(application: Application) -> None:
    """Save a silence, if the code of this commit has silences (from version 4 on)."""
    try:
        from predrain.service.notifications.notifier import save_silence
        from predrain.service.notifications.silences import Silence
    except ImportError:
        return
    now = application.clock.now()
    save_silence(
        application.store, Silence("s1", now + timedelta(days=3650), "operator", "known", host="stor-09"), now
    )


def nobodys(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """Without who and when."""
    member.uid = member.gid = member.mtime = 0
    member.uname = member.gname = ""
    return member


if __name__ == "__main__":
    main()
