"""deploy/cephadm under a real cephadm: service, collector and mgr module in containers, beside OSDs of cephadm.

One host is the cluster: a Debian 12 that boots, with cephadm of Pacific, podman and a registry. Of predrain's two
specifications the test replaces only what their first lines tell an operator to replace.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from tests.collector.fake_smartctl import Disk, FakeSmartctl
from tests.system.containers.cephadm_host import SERVICE_NAME, CephadmHost
from tests.system.containers.stack import HERE
from tests.system.install.images import ROOT, Buildah
from tests.system.install.machine import until

DEPLOY: Final = ROOT / "deploy/cephadm"
MODEL: Final = "WDC_WD1003FBYZ-010FB0"
"""The model of the sample ata-001 in the form of udev."""
SERIALS: Final = ("FAKE0000", "FAKE0001", "FAKE0002")
DRAINED: Final = 1
LONG: Final = 900.0
OSDS: Final = """service_type: osd
service_id: disks
placement:
  hosts: [stor-01]
spec:
  method: raw
  data_devices:
    paths: {paths}
"""
"""`raw`: without logical volumes, for which a container needs the device mapper."""
SETTINGS: Final = """ceph config set global mon_data_avail_warn 1
ceph config set global osd_pool_default_pg_autoscale_mode off
ceph mgr module enable predrain
"""
OBJECTS: Final = """ceph osd pool create data 4 4
ceph osd pool application enable data rados
dd if=/dev/urandom of=/tmp/object bs=1M count=4
for each in 1 2 3 4 5 6 7 8; do rados -p data put $each /tmp/object; done
"""
READ_STORE: Final = """import json
from datetime import UTC, datetime
from pathlib import Path
from predrain.data.store.sqlite_store import SqliteStore
store = SqliteStore(Path("/var/lib/predrain/store.sqlite"))
ever = datetime(2000, 1, 1, tzinfo=UTC)
print(json.dumps({
    "osds": {name: [one.osd for one in reading.osd_devices] for name, reading in store.latest_readings().items()},
    "latencies": {n: sorted({one.host for one in store.read_latency_summaries(n, ever)}) for n in range(3)},
}))
"""
SERVICE: Final = "container-predrain-stor-01"
PREDRAIN: Final = "/usr/lib/predrain/bin/predrain"


@dataclass(frozen=True)
class Deployed:
    """The cluster with all parts of predrain in it."""

    host: CephadmHost

    def predrain(self, *argv: str) -> str:
        """Return what a command of predrain printed in the container of the service."""
        return self.host.run("podman", "exec", self.host.find_container(SERVICE), PREDRAIN, *argv)

    def ask(self, *argv: str) -> Any:
        """Return the answer of a command of predrain as JSON; None if there is none yet."""
        name = self.host.find_container(SERVICE)
        said = self.host.run("podman", "exec", name, PREDRAIN, *argv, "--json", check=False)
        return json.loads(said) if said.startswith(("[", "{")) else None

    def find_osd(self, number: int) -> dict[str, Any]:
        """Return an OSD as the map of the cluster has it."""
        return next(one for one in self.host.json("osd dump")["osds"] if one["osd"] == number)


def make_certificate(folder: Path) -> tuple[str, str]:
    """Make a certificate for the service, which is its own authority, and its key."""
    certificate, key = folder / "authority.crt", folder / "tls.key"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={SERVICE_NAME}",
         "-addext", f"subjectAltName=DNS:{SERVICE_NAME}", "-keyout", key, "-out", certificate],
        check=True, capture_output=True,
    )  # fmt: skip
    return certificate.read_text(), key.read_text()


def build_ceph_image(images: Buildah) -> None:
    """Build Ceph of Debian's packages, and on it the image that deploy/ceph-mgr/Dockerfile derives."""
    images.build(HERE / "ceph", "--tag=localhost/ceph-base")
    images.build(
        ROOT,
        "--file=deploy/ceph-mgr/Dockerfile",
        "--build-arg=CEPH=localhost/ceph-base",
        "--tag=localhost/ceph",
    )


def build_collector_image(images: Buildah, folder: Path, disks: list[str]) -> None:
    """Build an image on that of the collector, in which smartctl answers for the disks of the host."""
    shutil.copy(HERE / "collector/Dockerfile", folder)
    drives = folder / "drives"
    fake = FakeSmartctl(
        drives, [Disk(disk, "sat", "ata-001", SERIALS[n], 1000 + n) for n, disk in enumerate(disks)]
    )
    script = Path(fake.program)
    script.write_text(script.read_text().replace(str(drives), "/opt/drives"))
    images.build(
        folder, "--build-arg=COLLECTOR=localhost/predrain-collector:first", "--tag=localhost/collector"
    )


def fill_in(name: str, *replaced: tuple[str, str]) -> str:
    """Return a specification of deploy/cephadm with words replaced, each of which must be there."""
    text = (DEPLOY / name).read_text()
    for old, new in replaced:
        assert old in text, f"{name} no longer has {old}"
        text = text.replace(old, new)
    return text


def deploy_service(host: CephadmHost, image: str, certificate: str, key: str) -> None:
    """Make the user by the script that predrain prints, and apply service.yaml."""
    script = host.run("podman", "run", "--rm", "--net=host", image, "ceph", "auth")
    host.shell(script)
    cephx = host.ceph("auth print-key client.predrain")
    host.apply(
        "service.yaml",
        fill_in(
            "service.yaml",
            ("hosts: [mon-01]", "hosts: [stor-01]"),
            ("image: predrain:latest", f"image: {image}"),
            ("put-the-key-of-client.predrain-here", cephx),
            ('["put the certificate here"]', json.dumps(certificate.splitlines())),
            ('["put its key here"]', json.dumps(key.splitlines())),
        ),
    )


def deploy_collector(host: CephadmHost, image: str, token: str) -> None:
    """Apply collector.yaml; the address of the service is that of the file."""
    assert SERVICE_NAME in (DEPLOY / "collector.yaml").read_text()
    replaced = (
        ("image: predrain-collector:latest", f"image: {image}"),
        ("put-the-token-of-scope-ingest-here-0000000000", token),
    )
    host.apply("collector.yaml", fill_in("collector.yaml", *replaced))


def await_answer(holds: Callable[[], Any], what: str) -> Any:
    """Wait for something that cephadm brings about: it polls a host about once a minute."""
    return until(holds, what, LONG)


@pytest.fixture(scope="module")
def deployed(own_images: Buildah, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    """Bootstrap, three OSDs, the service and the collector."""
    folder = tmp_path_factory.mktemp("cephadm")
    built = folder / "collector"
    built.mkdir()
    certificate, key = make_certificate(built)
    build_ceph_image(own_images)
    with CephadmHost(folder, len(SERIALS)) as host:
        build_collector_image(own_images, built, host.disks)
        ceph, service, collector = (host.push(own_images, name) for name in ("ceph", "predrain", "collector"))
        for number, serial in enumerate(SERIALS):
            host.describe_disk(number, MODEL, serial)
        host.bootstrap(ceph)
        host.shell(SETTINGS)
        host.apply("osds.yaml", OSDS.format(paths=json.dumps(host.disks)))
        await_answer(lambda: host.json("osd stat")["num_up_osds"] == len(SERIALS), "three OSDs")
        host.shell(OBJECTS)
        deploy_service(host, service, certificate, key)
        await_answer(lambda: host.find_container(SERVICE), "the container of the service")
        parts = Deployed(host)
        await_answer(lambda: parts.ask("osds"), "an answer of the service that names OSDs")
        token = parts.predrain("token", "create", "--name", "collectors", "--scope", "ingest").split()[-1]
        deploy_collector(host, collector, token)
        yield parts


def test_the_mgr_module_of_the_derived_image_answers(deployed: Deployed) -> None:
    assert re.search(r"^halted +no$", deployed.host.ceph("predrain status"), re.MULTILINE)


def test_the_collector_delivers_a_reading_of_each_disk_and_names_the_osd_on_it(deployed: Deployed) -> None:
    expected = {
        one["device_ids"].partition("=")[2]: [one["id"]] for one in deployed.host.json("osd metadata")
    }
    assert await_answer(lambda: complete(read_store(deployed)["osds"]), "a reading of each disk") == expected
    listed = {one["device"]: one["status"] for one in deployed.ask("disks")}
    assert listed == dict.fromkeys(expected, "good")


def test_the_latencies_of_each_osd_come_from_its_admin_socket(deployed: Deployed) -> None:
    found = await_answer(
        lambda: complete(read_store(deployed)["latencies"]), "a minute of latencies of each OSD"
    )
    assert found == {str(number): ["stor-01"] for number in range(len(SERIALS))}


def complete(found: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """Return what the store has of the disks or OSDs, once it has something of each."""
    return found if len(found) == len(SERIALS) and all(found.values()) else {}


def read_store(deployed: Deployed) -> Any:
    """Return what collectors delivered, as the store of the service has it."""
    name = deployed.host.find_container(SERVICE)
    return json.loads(
        deployed.host.run("podman", "exec", name, "/usr/lib/predrain/bin/python3", "-c", READ_STORE)
    )


def test_a_drained_osd_is_handed_over_by_the_commands_of_cephadm_which_keep_its_id(
    deployed: Deployed,
) -> None:
    deployed.predrain("drain", "apply", f"osd.{DRAINED}", "--reason", "a larger disk", "--yes")
    await_answer(lambda: find_drain_state(deployed) == "verified", "an empty OSD")
    assert deployed.host.json(f"osd safe-to-destroy osd.{DRAINED}")["safe_to_destroy"] == [DRAINED]
    printed = deployed.predrain("drain", "hand-over", f"osd.{DRAINED}")
    typed = [line.strip() for line in printed.splitlines() if line.strip().startswith("ceph orch ")]
    assert typed == [f"ceph orch osd rm {DRAINED} --replace", "ceph orch osd rm status"]
    before = count_misplaced(deployed)
    deployed.host.shell(typed[0])
    await_answer(lambda: "destroyed" in deployed.find_osd(DRAINED)["state"], "the end of the removal")
    await_answer(lambda: "No OSD remove" in deployed.host.shell(typed[1]), "an empty list of removals")
    assert deployed.host.find_container(f"osd-{DRAINED}") == ""
    assert deployed.host.find_container("osd-0")
    assert DRAINED in [one["id"] for one in deployed.host.json("osd tree")["nodes"]]
    assert (before, count_misplaced(deployed)) == (0, 0)


def find_drain_state(deployed: Deployed) -> str:
    """Return the state of the one drain."""
    (one,) = deployed.ask("drain", "list") or [{"state": ""}]
    return one["state"]


def count_misplaced(deployed: Deployed) -> int:
    """Return the number of copies of objects that are to move."""
    return int(deployed.host.json("status")["pgmap"].get("misplaced_objects", 0))
