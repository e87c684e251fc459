"""Write the files that version 0.1.0 leaves on disk and in a cluster: `python tests/service/v0_1_0/make_fixtures.py`.

The fixtures beside this file were written once, by the code of 0.1.0 (store version 5), and never change. Every later
version must read them. They hold the state directory of a service, the spool of a collector, and the keys below
`predrain/` in the cluster's config-key store. The state directory has a store, a log, access credentials, a promoted
bundle, a halt that was lifted and a silence. The service has one drain, which is under way on a simulated cluster.
"""

from __future__ import annotations

import json
import sys
import tarfile
import tempfile
from datetime import timedelta
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path.cwd()))

from predrain.actions.cluster.config_key_store import ConfigKeys
from predrain.actions.core.drain_policy import Policy
from predrain.collector.delivery import Spool
from predrain.data.drain import DrainState
from predrain.data.ids import HostName
from predrain.data.latency_windows import LatencySummary
from predrain.data.log.sqlite_log import SqliteLog
from predrain.data.scorebook import Scorebook
from predrain.data.store.sqlite_store import SqliteStore
from predrain.models.deploy.bundle_store import BundleStore
from predrain.models.forecast.bundle import DEFAULT
from predrain.service.access.credentials import CredentialBook, CredentialKind
from predrain.service.access.tokens import Scope, load_admin_tokens
from predrain.service.app.application import Application, ApplicationPorts
from predrain.service.config.settings import ServiceTable, Settings
from predrain.service.config.state_directory import StateDir
from predrain.service.drains.live_cluster import LiveClusterParts
from predrain.service.forecasting.bundle_choice import BundledForecaster
from tests.actions.made_channel import MonInMemory
from tests.actions.made_config_keys import LeaseInHand
from tests.collector.delivery.parcels import reading, summary
from tests.samples.make_state import fill, nobodys
from tests.service.conftest import shut
from tests.service.test_drains import ClusterClock, Seated, World, seated

HERE = Path(__file__).resolve().parent
COLLECTOR_HOST = HostName("stor-01")


def main() -> None:
    """Write `state.tar.gz`, `spool.tar.gz` and `cluster_keys.json` into the named folder, or beside this file."""
    out = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE
    with tempfile.TemporaryDirectory() as folder:
        write_service(Path(folder) / "state", out)
        write_spool(Path(folder) / "spool", out)


def write_service(path: Path, out: Path) -> None:
    """The state directory and the cluster's keys of a service whose drain of osd.0 is under way."""
    state = StateDir(path).ensure_exists()
    cluster, mon = seated(), MonInMemory()
    shelf = BundleStore(state.bundles)
    shelf.promote(shelf.install(DEFAULT))
    reach = Seated(cluster)
    ports = ApplicationPorts(
        SqliteLog(state.log),
        SqliteStore(state.store),
        ClusterClock(cluster),  # type: ignore[arg-type]
        BundledForecaster.load,
        LiveClusterParts(reach, ConfigKeys(mon), LeaseInHand(), "stor-mon-1"),
        installed=state.bundles,
        scorebook=Scorebook(state.scorebook),
    )
    application = Application(ports, Policy(), Settings(service=ServiceTable(port=0, state=state.path)))
    load_admin_tokens(state.token)
    application.start()
    fill(World(application, cluster, reach))
    book = CredentialBook(application.store, application.clock)
    book.issue_credential(
        CredentialKind.TOKEN, "collector of stor-01", (Scope.INGEST,), "operator", host="stor-01"
    )
    (drain,) = application.store.drains()
    assert drain.state is DrainState.DRAINING
    keys = {name: value.decode() for name, value in sorted(mon.keys.items())}
    shut(application)
    assert application.scorer.scorebook is not None
    application.scorer.scorebook.close()
    # The fixture leaves out the files that each start makes again.
    for name in ("lock", "url", "token"):
        (state.path / name).unlink(missing_ok=True)
    pack(state.path, out / "state.tar.gz")
    (out / "cluster_keys.json").write_text(json.dumps(keys, indent=1) + "\n")


def write_spool(path: Path, out: Path) -> None:
    """The spool of a collector that has not delivered for two hours."""
    path.mkdir()
    spool = Spool(path / "spool.db", COLLECTOR_HOST, Random(7))
    late = [reading(disk, hour) for hour in (0, 1) for disk in (1, 2, 3)]
    now = max(one.taken_at for one in late) + timedelta(minutes=1)
    assert spool.accept(late, now) == ()
    sums: list[LatencySummary] = [summary(osd, minute) for osd in (0, 1) for minute in (1, 2, 3)]
    spool.accept_latency(sums, now)
    spool.close()
    pack(path, out / "spool.tar.gz")


def pack(folder: Path, archive: Path) -> None:
    """Pack the folder's files without owner and time."""
    with tarfile.open(archive, "w:gz", compresslevel=9) as packed:
        for path in sorted(folder.iterdir()):
            packed.add(path, path.name, filter=nobodys)
    print(archive.name, archive.stat().st_size, "bytes")


if __name__ == "__main__":
    main()
