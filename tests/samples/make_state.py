"""Makes a stored copy of a state directory as the code of this commit writes it: `python tests/samples/make_state.py`.

It is run once for each version of the store, and the copy kept beside it, so that every later predrain is tested on it:
three drives, one of them bad, a drain that has begun on a simulated cluster, latencies, an outcome, a halt in the past,
a reading that is accepted and not scored yet, and, from version 4 on, a silence.
"""

from __future__ import annotations

import sys
import tarfile
import tempfile
from datetime import timedelta
from pathlib import Path

sys.path.insert(0, str(Path.cwd()))

from predrain.actions.core.policy import Policy
from predrain.data.drain import DrainState, Intent
from predrain.data.ids import DeviceId, HostName, OsdId
from predrain.data.outcome import Fate, Outcome
from predrain.data.reading import LatencySummary
from predrain.data.store.schema import VERSION
from predrain.data.windows import Windows
from predrain.service.application import House
from predrain.service.drains import plan_etags as seals
from predrain.service.scoring.bundled import BundledForecaster
from predrain.service.settings import ServiceTable, Settings
from predrain.service.state_directory import StateDir
from tests.service.conftest import Place, shut, smart_reading, week_of
from tests.service.test_drains import ClusterClock, Seated, World, seated
from tests.service.test_worker import work


def main() -> None:
    """Write `state-vN.tar.gz` beside this file's commit."""
    with tempfile.TemporaryDirectory() as folder:
        state = StateDir(Path(folder) / "state").make()
        cluster = seated()
        settings = Settings(service=ServiceTable(port=0, state=state.path))
        place = Place(state, ClusterClock(cluster), BundledForecaster.load(), settings, Policy())  # type: ignore[arg-type]
        reach = Seated(cluster)
        house = place.house(cluster=reach)
        house.start()
        fill(World(house, cluster, reach))
        shut(house)
        out = Path(sys.argv[1] if len(sys.argv) > 1 else ".") / f"state-v{VERSION}.tar.gz"
        with tarfile.open(out, "w:gz", compresslevel=9) as archive:
            for path in sorted(state.path.iterdir()):
                archive.add(path, path.name, filter=nobodys)
        print(out, out.stat().st_size, "bytes")


def fill(world: World) -> None:
    """Some days of a small service."""
    house, now = world.house, world.house.clock.now()
    world.tick(5)
    house.ingest([*week_of("A", now, pending=400), *week_of("B", now), *week_of("C", now)])
    work(house)
    house.conclude(Outcome(DeviceId("ST4000DM000_OLD"), now - timedelta(days=30), Fate.FAILED, "operator"))
    house.store.add_latency(
        Windows.of(
            LatencySummary(
                OsdId(osd), HostName("stor-01"), now - timedelta(minutes=minute), 60.0, 600, 4.0, 9.5
            )
            for osd in range(3)
            for minute in range(20, 0, -1)
        )
    )
    house.halt("storm", "operator")
    house.halt(None, "operator")
    drain = house.propose("osd.0", "operator", "noisy", Intent.REPLACE)
    house.ask(lambda control, now: control.approve(drain.id, seals.seal(drain), "operator", now))
    while house.store.drains()[0].progress.moved_pgs < 1:
        world.tick()
    assert house.store.drains()[0].state is DrainState.DRAINING
    silenced(house)
    house.ingest([smart_reading("D", world.house.clock.now())])


def silenced(house: House) -> None:
    """From version 4 on."""
    try:
        from predrain.service.notifications.notifier import silence
        from predrain.service.notifications.silence import Silence
    except ImportError:
        return
    now = house.clock.now()
    silence(house.store, Silence("s1", now + timedelta(days=3650), "operator", "known", host="stor-09"), now)


def nobodys(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """Without who and when."""
    member.uid = member.gid = member.mtime = 0
    member.uname = member.gname = ""
    return member


if __name__ == "__main__":
    main()
