"""The sums of a release are signed by a key of GnuPG, and a person checks them with GnuPG and sha256sum alone."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.system.install.test_repositories import require_programs

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]
SIGN = ROOT / "deploy" / "release" / "sign"
KEY = "releases@example.org"


@dataclass(frozen=True, slots=True)
class ReleaseFolder:
    """A folder of one artefact with its sums, and a home of GnuPG with a throw-away key."""

    home: Path
    folder: Path

    def run(self, *words: str | Path, home: Path | None = None) -> subprocess.CompletedProcess[str]:
        """Run a program in the folder."""
        return subprocess.run(
            [str(word) for word in words],
            cwd=self.folder, env={**os.environ, "GNUPGHOME": str(home or self.home), "LC_ALL": "C.UTF-8"},
            capture_output=True, text=True, check=False,
        )  # fmt: skip

    def verify(self, stranger: Path) -> subprocess.CompletedProcess[str]:
        """Check the signature as a person who has nothing but the folder, in an empty home of GnuPG."""
        stranger.mkdir(mode=0o700)
        assert self.run("gpg", "--batch", "--import", "predrain.asc", home=stranger).returncode == 0
        return self.run("gpg", "--batch", "--verify", "SHA256SUMS.asc", "SHA256SUMS", home=stranger)


@pytest.fixture
def release(tmp_path: Path) -> Iterator[ReleaseFolder]:
    require_programs({"gpg": "gnupg"})
    made = ReleaseFolder(tmp_path / "keys", tmp_path / "predrain-1.0")
    made.home.mkdir(mode=0o700)
    made.folder.mkdir()
    (made.folder / "predrain-1.0.whl").write_bytes(b"a wheel")
    (made.folder / "SHA256SUMS").write_text(f"{sha256(b'a wheel').hexdigest()}  predrain-1.0.whl\n")
    key = made.run(
        "gpg", "--batch", "--passphrase", "", "--quick-generate-key", KEY, "ed25519", "sign", "never"
    )
    assert key.returncode == 0, key.stderr
    yield made
    for home in (made.home, tmp_path / "stranger"):
        made.run("gpgconf", "--kill", "all", home=home)


def test_a_person_checks_signature_and_sums_with_nothing_but_the_folder(
    release: ReleaseFolder, tmp_path: Path
) -> None:
    signed = release.run(SIGN, release.folder, KEY)
    assert signed.returncode == 0, signed.stderr
    verified = release.verify(tmp_path / "stranger")
    assert verified.returncode == 0, verified.stderr
    assert f'Good signature from "{KEY}"' in verified.stderr
    assert signed.stdout.split()[-1] in verified.stderr.replace(" ", ""), (
        "the fingerprint is the one that was said"
    )
    assert release.run("sha256sum", "--check", "SHA256SUMS").returncode == 0


def test_sums_that_were_changed_afterwards_fail_the_signature(release: ReleaseFolder, tmp_path: Path) -> None:
    assert release.run(SIGN, release.folder, KEY).returncode == 0
    (release.folder / "SHA256SUMS").write_text("0" * 64 + "  predrain-1.0.whl\n")
    verified = release.verify(tmp_path / "stranger")
    assert verified.returncode == 1
    assert "BAD signature" in verified.stderr


def test_without_a_key_one_sentence_says_that_the_artefacts_are_unsigned(release: ReleaseFolder) -> None:
    (release.folder / "SHA256SUMS.asc").write_text("of a build before\n")
    said = release.run(SIGN, release.folder)
    assert said.returncode == 0
    assert said.stderr == (
        f"the artefacts in {release.folder} are unsigned: name a key of GnuPG, as in "
        f"make release-artefacts KEY={KEY}\n"
    )
    assert sorted(file.name for file in release.folder.iterdir()) == ["SHA256SUMS", "predrain-1.0.whl"]


@pytest.mark.parametrize("broken", ["key", "file"])
def test_nothing_is_signed_by_an_unknown_key_or_with_wrong_sums(release: ReleaseFolder, broken: str) -> None:
    if broken == "file":
        (release.folder / "predrain-1.0.whl").write_bytes(b"another wheel")
    refused = release.run(SIGN, release.folder, "nobody@example.org" if broken == "key" else KEY)
    assert refused.returncode == 1
    assert "no secret key nobody@example.org" in refused.stderr or "not those of SHA256SUMS" in refused.stderr
    assert not (release.folder / "SHA256SUMS.asc").exists()
