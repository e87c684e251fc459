"""Real apt and dnf take predrain's packages from a signed repository, and refuse what was changed on the way."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.system.install.conftest import ROOT

pytestmark = [pytest.mark.system, pytest.mark.slow, pytest.mark.timeout(300)]
BUILD = ROOT / "deploy" / "repository" / "build"
PROGRAMS = {"apt-get": "apt", "apt-ftparchive": "apt-utils", "dpkg-deb": "dpkg", "gpg": "gnupg"}
RPM_PROGRAMS = {"rpmbuild": "rpm", "createrepo_c": "createrepo-c", "dnf": "dnf"}


def require_programs(programs: dict[str, str]) -> None:
    """Skip the test, or fail it under CI, where a program is missing."""
    missing = sorted({package for program, package in programs.items() if not shutil.which(program)})
    if missing:
        why = f"missing: apt-get install {' '.join(missing)}"
        pytest.fail(why) if os.environ.get("CI") == "true" else pytest.skip(why)


@dataclass(frozen=True, slots=True)
class Keyring:
    """A home of GnuPG with the secret keys of two people."""

    home: Path

    def run(self, *words: str | Path) -> subprocess.CompletedProcess[str]:
        """Run a program that uses the keys."""
        return subprocess.run(
            [str(word) for word in words],
            env={**os.environ, "GNUPGHOME": str(self.home)},
            capture_output=True,
            text=True,
            check=False,
        )

    def export(self, name: str) -> bytes:
        """Return a public key in ASCII armour."""
        return self.run("gpg", "--batch", "--armor", "--export", name).stdout.encode()


@pytest.fixture(scope="module")
def keyring(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Keyring]:
    require_programs(PROGRAMS)
    keys = Keyring(tmp_path_factory.mktemp("keys"))
    keys.home.chmod(0o700)
    for name in ("releases@example.org", "stranger@example.org"):
        made = keys.run(
            "gpg", "--batch", "--passphrase", "", "--quick-generate-key", name, "rsa3072", "sign", "never"
        )
        assert made.returncode == 0, made.stderr
    yield keys
    keys.run("gpgconf", "--kill", "all")


def build_deb(folder: Path, version: str = "1.0", name: str = "predrain_1.0_all.deb") -> None:
    """Build a package of one file."""
    tree = folder / "tree"
    (tree / "DEBIAN").mkdir(parents=True, exist_ok=True)
    (tree / "usr/lib/predrain").mkdir(parents=True, exist_ok=True)
    (tree / "usr/lib/predrain/words").write_text("as it was built\n")
    architecture = name.removesuffix(".deb").rpartition("_")[2]
    (tree / "DEBIAN/control").write_text(
        f"Package: predrain\nVersion: {version}\nArchitecture: {architecture}\n"
        "Maintainer: a <a@example.org>\nDescription: a package\n"
    )
    (folder / "debs").mkdir(exist_ok=True)
    subprocess.run(["dpkg-deb", "--build", tree, folder / "debs" / name], check=True, capture_output=True)


def make_repository(keyring: Keyring, folder: Path, pair: str, key: str = "releases@example.org") -> Path:
    """Make the repositories of one suite by the command that releases use."""
    made = keyring.run(BUILD, key, folder / "repository", pair)
    assert made.returncode == 0, made.stderr
    return folder / "repository"


class Apt:
    """Real apt with a root of its own, which knows one repository and trusts one key."""

    def __init__(self, folder: Path, repository: Path, key: bytes) -> None:
        self.folder = folder / "apt"
        for name in ("state/lists/partial", "cache/archives/partial", "etc", "got"):
            (self.folder / name).mkdir(parents=True)
        (self.folder / "status").touch()
        (self.folder / "key.asc").write_bytes(key)
        (self.folder / "etc/sources.list").write_text(
            f"deb [signed-by={self.folder}/key.asc] copy:{repository}/apt bookworm main\n"
        )

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run apt-get as root of the folder alone."""
        options = {
            "Dir::State": self.folder / "state",
            "Dir::State::status": self.folder / "status",
            "Dir::Cache": self.folder / "cache",
            "Dir::Etc": self.folder / "etc",
            "Dir::Etc::sourcelist": self.folder / "etc/sources.list",
            "Dir::Etc::sourceparts": "/dev/null",
            "APT::Sandbox::User": "root",
            "APT::Update::Error-Mode": "any",
        }
        said = [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
        return subprocess.run(
            ["apt-get", *said, *words],
            cwd=self.folder / "got", env={**os.environ, "LC_ALL": "C.UTF-8"},
            capture_output=True, text=True, check=False,
        )  # fmt: skip


def test_apt_takes_the_package_that_was_signed(keyring: Keyring, tmp_path: Path) -> None:
    build_deb(tmp_path)
    repository = make_repository(keyring, tmp_path, f"bookworm={tmp_path}/debs")
    apt = Apt(tmp_path, repository, (repository / "predrain.asc").read_bytes())
    updated = apt.run("update")
    assert updated.returncode == 0, updated.stderr
    taken = apt.run("download", "predrain")
    assert taken.returncode == 0, taken.stderr
    assert [one.name for one in (apt.folder / "got").iterdir()] == ["predrain_1.0_all.deb"]


def test_apt_refuses_a_package_that_was_changed(keyring: Keyring, tmp_path: Path) -> None:
    build_deb(tmp_path)
    repository = make_repository(keyring, tmp_path, f"bookworm={tmp_path}/debs")
    apt = Apt(tmp_path, repository, (repository / "predrain.asc").read_bytes())
    assert apt.run("update").returncode == 0
    (package,) = repository.glob("apt/pool/bookworm/*.deb")
    body = bytearray(package.read_bytes())
    body[-20] ^= 1
    package.write_bytes(body)
    taken = apt.run("download", "predrain")
    assert taken.returncode != 0
    assert "Hash Sum mismatch" in taken.stderr
    assert not list((apt.folder / "got").glob("*.deb"))


@pytest.mark.parametrize("signature", ["InRelease", "Release.gpg"])
def test_apt_refuses_an_index_that_was_changed(keyring: Keyring, tmp_path: Path, signature: str) -> None:
    build_deb(tmp_path)
    repository = make_repository(keyring, tmp_path, f"bookworm={tmp_path}/debs")
    dists = repository / "apt/dists/bookworm"
    if signature == "Release.gpg":
        (dists / "InRelease").unlink()
    changed = dists / ("InRelease" if signature == "InRelease" else "Release")
    changed.write_text(changed.read_text().replace("Label: predrain", "Label: redrainp"))
    apt = Apt(tmp_path, repository, (repository / "predrain.asc").read_bytes())
    updated = apt.run("update")
    assert updated.returncode != 0
    assert "BADSIG" in updated.stderr or "invalid" in updated.stderr, updated.stderr


def test_apt_refuses_a_repository_that_another_key_signed(keyring: Keyring, tmp_path: Path) -> None:
    build_deb(tmp_path)
    repository = make_repository(keyring, tmp_path, f"bookworm={tmp_path}/debs", key="stranger@example.org")
    apt = Apt(tmp_path, repository, keyring.export("releases@example.org"))
    updated = apt.run("update")
    assert updated.returncode != 0
    assert "NO_PUBKEY" in updated.stderr


def test_no_repository_is_made_with_a_key_that_is_not_there(keyring: Keyring, tmp_path: Path) -> None:
    build_deb(tmp_path)
    made = keyring.run(BUILD, "nobody@example.org", tmp_path / "repository", f"bookworm={tmp_path}/debs")
    assert (made.returncode, made.stderr) == (1, "build: GnuPG has no secret key nobody@example.org\n")
    assert not (tmp_path / "repository").exists()


def list_packages(repository: Path, suite: str) -> list[str]:
    """List the packages that the index of an apt suite names."""
    index = repository / "apt/dists" / suite / "main/binary-amd64/Packages"
    return [line[9:] for line in index.read_text().splitlines() if line.startswith("Version: ")]


def test_packages_of_two_debians_in_one_folder_become_a_suite_each(keyring: Keyring, tmp_path: Path) -> None:
    for version in ("1.0+deb12", "1.0+deb13"):
        build_deb(tmp_path, version, f"predrain_{version}_amd64.deb")
    repository = make_repository(keyring, tmp_path, f"{tmp_path}/debs")
    assert {suite: list_packages(repository, suite) for suite in ("bookworm", "trixie")} == {
        "bookworm": ["1.0+deb12"],
        "trixie": ["1.0+deb13"],
    }


def test_a_package_of_no_known_debian_is_named_and_nothing_is_made(keyring: Keyring, tmp_path: Path) -> None:
    build_deb(tmp_path)
    made = keyring.run(BUILD, "releases@example.org", tmp_path / "repository", f"{tmp_path}/debs")
    assert made.returncode == 1
    assert f"the version of {tmp_path}/debs/predrain_1.0_all.deb names no Debian" in made.stderr
    assert not (tmp_path / "repository").exists()


def test_folders_without_packages_say_what_builds_them(keyring: Keyring, tmp_path: Path) -> None:
    made = keyring.run(BUILD, "releases@example.org", tmp_path / "repository", tmp_path, tmp_path / "rpm")
    assert made.returncode == 1
    assert made.stderr == "build: there are neither .deb nor .rpm files; build them: make deb, make rpm\n"


def build_rpm(folder: Path) -> None:
    """Build an .rpm of one file."""
    spec = folder / "predrain.spec"
    spec.write_text(
        "Name: predrain\nVersion: 1.0\nRelease: 1\nSummary: a package\nLicense: Apache-2.0\nBuildArch: noarch\n"
        "%description\na package\n"
        "%install\nmkdir -p %{buildroot}/usr/lib/predrain\necho built >%{buildroot}/usr/lib/predrain/words\n"
        "%files\n/usr/lib/predrain\n"
    )
    done = subprocess.run(
        ["rpmbuild", "-bb", "--define", f"_topdir {folder}/top", "--define", f"_rpmdir {folder}/rpms",
         "--define", "_build_name_fmt %%{NAME}-%%{VERSION}.%%{ARCH}.rpm", spec],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def run_dnf(folder: Path, repository: Path, key: Path) -> subprocess.CompletedProcess[str]:
    """Install the package with real dnf into a root of its own, which trusts one key."""
    for name in ("repos", "log"):
        (folder / name).mkdir()
    (folder / "repos/predrain.repo").write_text(
        f"[predrain]\nname=predrain\nbaseurl=file://{repository}/yum/el9\nenabled=1\n"
        f"gpgcheck=1\nrepo_gpgcheck=1\ngpgkey=file://{key}\n"
    )
    (folder / "dnf.conf").write_text("[main]\nassumeyes=True\n")
    return subprocess.run(
        ["dnf", "--config", folder / "dnf.conf", f"--installroot={folder}/root", "--releasever=9",
         f"--setopt=reposdir={folder}/repos", f"--setopt=cachedir={folder}/cache", f"--setopt=logdir={folder}/log",
         "install", "predrain"],
        env={**os.environ, "LC_ALL": "C.UTF-8"}, capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.fixture
def yum(keyring: Keyring, tmp_path: Path) -> Path:
    """A yum repository with one package."""
    require_programs(RPM_PROGRAMS)
    if os.geteuid():
        pytest.skip("dnf installs as root only")
    build_rpm(tmp_path)
    return make_repository(keyring, tmp_path, f"el9={tmp_path}/rpms")


def test_dnf_installs_the_package_that_was_signed(yum: Path, tmp_path: Path) -> None:
    done = run_dnf(tmp_path, yum, yum / "predrain.asc")
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "root/usr/lib/predrain/words").read_text() == "built\n"


def test_dnf_refuses_a_package_that_was_changed(yum: Path, tmp_path: Path) -> None:
    (package,) = yum.glob("yum/el9/*.rpm")
    body = bytearray(package.read_bytes())
    body[-20] ^= 1
    package.write_bytes(body)
    done = run_dnf(tmp_path, yum, yum / "predrain.asc")
    assert done.returncode != 0
    assert not (tmp_path / "root/usr/lib/predrain").exists()


def test_dnf_refuses_metadata_that_was_changed(yum: Path, tmp_path: Path) -> None:
    metadata = yum / "yum/el9/repodata/repomd.xml"
    metadata.write_text(metadata.read_text().replace("</repomd>", "<!-- more --></repomd>"))
    done = run_dnf(tmp_path, yum, yum / "predrain.asc")
    assert done.returncode != 0
    assert "signature" in (done.stdout + done.stderr).lower()
    assert not (tmp_path / "root/usr/lib/predrain").exists()


def test_dnf_refuses_a_repository_that_another_key_signed(
    keyring: Keyring, yum: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other.asc"
    other.write_bytes(keyring.export("stranger@example.org"))
    done = run_dnf(tmp_path, yum, other)
    assert done.returncode != 0
    assert not (tmp_path / "root/usr/lib/predrain").exists()
