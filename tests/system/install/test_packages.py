"""The effects of the two packages on a clean Debian 12, with a real systemd and all of the units' sandbox."""

from __future__ import annotations

import json
import re
from hashlib import sha256
from importlib import metadata
from pathlib import Path

from tests.collector.fake_smartctl import Disk, FakeSmartctl
from tests.system.install.conftest import Packages, build
from tests.system.install.machine import Machine, until

SICK = Disk("/dev/sdb", sample="ata-001", serial="SICK0001", how="hang")
SOUND = Disk("/dev/sda", sample="ata-001", serial="SOUND001")


def install(machine: Machine, package: Path) -> None:
    """As an administrator does; nothing may be fetched, since the machine has no network."""
    machine.run("dpkg", "--install", f"/root/{package.name}")


def newer(machine: Machine, package: Path) -> str:
    """The same package under a later version, in the machine's /root."""
    machine.run("dpkg-deb", "-R", f"/root/{package.name}", "/root/later")
    control = machine.root / "root/later/DEBIAN/control"
    control.write_text(re.sub(r"(?m)^Version: (.*)$", r"Version: \1+later", control.read_text()))
    machine.run("dpkg-deb", "-Znone", "--build", "/root/later", "/root/later.deb")
    return "/root/later.deb"


def answering(machine: Machine) -> bool:
    """Return True if the service says that it runs."""
    return (machine.ask("/healthz") or {}).get("status") == "ok"


def token(machine: Machine) -> str:
    """The service's own."""
    return machine.run("cat", "/var/lib/predrain/token")


def starts(machine: Machine, unit: str) -> int:
    """Return how often systemd has started the unit."""
    return machine.run("journalctl", "--output=cat", f"--unit={unit}").count("Started ")


def settled(machine: Machine, unit: str) -> str:
    """State and number of restarts since the last deliberate one."""
    return machine.run("systemctl", "show", unit, "--property=ActiveState,NRestarts", "--value")


def append(file: Path, text: str) -> None:
    """An administrator's own words at the end of a settings file."""
    file.write_text(file.read_text() + text)


def disks(machine: Machine, *plugged: Disk) -> None:
    """Drives behind a smartctl in the place of the real one."""
    here = machine.root / "opt/drives"
    here.mkdir()
    fake = FakeSmartctl(here, plugged)
    script = Path(fake.program).read_text().replace(str(machine.root), "")
    (machine.root / "usr/sbin/smartctl").write_text(script)
    for made in (here, *here.rglob("*")):
        made.chmod(0o777 if made.is_dir() else 0o666)


def test_the_service_runs_in_its_sandbox_as_soon_as_it_is_installed(
    clean: Machine, packages: Packages
) -> None:
    install(clean, packages.service)
    until(lambda: answering(clean), "the first answer")
    assert settled(clean, "predrain.service").split() == ["0", "active"]
    assert clean.run("systemctl", "is-enabled", "predrain.service") == "enabled"
    assert clean.run("predrain", "--version") == metadata.version("predrain")
    assert "wrong" not in clean.run("predrain", "doctor", user="predrain")
    assert "<title>" in clean.run(
        "python3", "-c", "import urllib.request as web; print(web.urlopen('http://127.0.0.1:8080/').read())"
    )


def test_a_disk_that_a_collector_reads_has_an_outlook_on_the_same_host(
    clean: Machine, packages: Packages
) -> None:
    disks(clean, SOUND, SICK)
    install(clean, packages.service)
    install(clean, packages.collector)
    append(clean.root / "etc/predrain/collector.toml", "smartctl_timeout_seconds = 2.0\n")
    until(lambda: answering(clean), "the first answer")
    hand_over = [
        "install",
        "-o",
        "predrain-collector",
        "-m",
        "600",
        "/var/lib/predrain/token",
        "/var/lib/predrain-collector/token",
    ]
    clean.run(*hand_over)
    clean.run("systemctl", "restart", "predrain-collector.service")
    found = until(
        lambda: (clean.ask("/api/v1/outlooks", token=token(clean)) or {}).get("items"), "an outlook"
    )
    assert [one["device"] for one in found if "SOUND001" in one["device"]]
    assert settled(clean, "predrain-collector.service").split() == ["0", "active"]


def test_a_look_at_the_disks_takes_no_more_rights_than_the_sudoers_line(
    clean: Machine, packages: Packages
) -> None:
    disks(clean, SOUND)
    install(clean, packages.collector)
    clean.run("visudo", "--check")
    said = clean.run("predrain", "collect", "--once", "--json", user="predrain-collector", check=False)
    (reading, own) = (json.loads(line) for line in said.splitlines())
    assert "SOUND001" in json.dumps(reading)
    assert own["collector"]["unreadable"] == 0
    for refused in (("smartctl", "-s", "off", "/dev/sda"), ("sh",), ("smartctl", "-t", "long", "/dev/sda")):
        asked = clean.run("sudo", "-n", *refused, user="predrain-collector", check=False)
        assert asked == "", refused


def test_the_collector_is_cephs_user_where_there_is_one(clean: Machine, packages: Packages) -> None:
    clean.run("useradd", "--system", "--user-group", "ceph")
    install(clean, packages.collector)
    unit = "predrain-collector.service"
    assert clean.run("systemctl", "show", unit, "--property=User", "--value") == "ceph"
    assert clean.run("stat", "--format=%U", "/var/lib/predrain-collector") == "ceph"
    assert clean.run("getent", "passwd", "predrain-collector", check=False) == ""


def test_an_upgrade_starts_once_and_keeps_settings_and_state(clean: Machine, packages: Packages) -> None:
    for package in (packages.service, packages.collector):
        install(clean, package)
    until(lambda: answering(clean), "the first answer")
    before = token(clean)
    for file in ("predrain.toml", "collector.toml"):
        append(clean.root / "etc/predrain" / file, "# mine\n")
    for package, unit in (
        (packages.service, "predrain.service"),
        (packages.collector, "predrain-collector.service"),
    ):
        assert starts(clean, unit) == 1
        clean.run("dpkg", "--install", newer(clean, package))
        assert starts(clean, unit) == 2
        clean.run("rm", "-r", "/root/later", "/root/later.deb")
    until(lambda: answering(clean), "the answer after the upgrade")
    assert token(clean) == before
    for file in ("predrain.toml", "collector.toml"):
        assert (clean.root / "etc/predrain" / file).read_text().endswith("# mine\n")


def test_removed_packages_keep_state_and_purged_ones_leave_nothing(
    clean: Machine, packages: Packages
) -> None:
    before = clean.files()
    people = clean.run("getent", "passwd")
    for package in (packages.service, packages.collector):
        install(clean, package)
    until(lambda: answering(clean), "the first answer")
    clean.run("predrain", "--version")
    held = token(clean)
    clean.run("dpkg", "--remove", "predrain", "predrain-collector")
    assert not answering(clean)
    assert token(clean) == held
    assert clean.run("ls", "/etc/predrain").split() == ["collector.toml", "predrain.toml"]
    assert clean.run("ls", "/var/lib/predrain-collector").split()
    clean.run("dpkg", "--purge", "predrain", "predrain-collector")
    assert clean.files() - before == set()
    assert clean.run("getent", "passwd") == people


def test_the_command_is_the_services_where_both_are_and_the_collectors_after(
    clean: Machine, packages: Packages
) -> None:
    for package in (packages.collector, packages.service):
        install(clean, package)
    assert clean.run("readlink", "-f", "/usr/bin/predrain") == "/usr/lib/predrain/bin/predrain"
    clean.run("dpkg", "--remove", "predrain")
    assert clean.run("readlink", "-f", "/usr/bin/predrain") == "/usr/lib/predrain-collector/bin/predrain"


def test_the_same_checkout_gives_the_same_bytes(packages: Packages, tmp_path: Path) -> None:
    again = build(tmp_path)
    for first, second in ((packages.service, again.service), (packages.collector, again.collector)):
        assert sha256(first.read_bytes()).digest() == sha256(second.read_bytes()).digest(), first.name


def test_the_collectors_package_is_small_and_has_no_learning_in_it(packages: Packages) -> None:
    assert packages.collector.stat().st_size < 25e6
