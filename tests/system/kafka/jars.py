"""Kafka itself: jars of the versions and checksums in `.ci/kafka.txt`, fetched once into the user's cache."""

from __future__ import annotations

import hashlib
import os
import shutil
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

PINNED = Path(__file__).resolve().parents[3] / ".ci" / "kafka.txt"
CENTRAL = "https://repo1.maven.org/maven2/"
PACKAGES = ("openjdk-17-jre-headless", "openssl", "util-linux")
LONGEST = 64 << 20
"""Bytes of a jar, at most."""


def missing() -> str | None:
    """Why no broker can run here, with the cure; None when one can."""
    absent = [tool for tool in ("java", "openssl", "setpriv") if shutil.which(tool) is None]
    if absent:
        return f"a broker needs {', '.join(absent)}: apt-get install -y --no-install-recommends {' '.join(PACKAGES)}"
    return None


def classpath() -> str:
    """Return the class path of all jars, each complete and in the listed version.

    Raise OSError when a jar cannot be fetched, and ValueError when a fetched jar has another checksum.
    """
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "predrain" / "kafka"
    cache.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(6) as pool:
        jars = list(pool.map(lambda pin: _jar(cache, *pin), _pins()))
    return ":".join(str(jar) for jar in jars)


def _pins() -> Iterator[tuple[str, str]]:
    for line in PINNED.read_text().splitlines():
        if line and not line.startswith("#"):
            digest, path = line.split()
            yield digest, path


def _jar(cache: Path, digest: str, path: str) -> Path:
    jar = cache / f"{digest[:12]}-{path.rpartition('/')[2]}"
    if not jar.exists():
        with urllib.request.urlopen(CENTRAL + path, timeout=60) as answer:
            held = answer.read(LONGEST)
        if hashlib.sha256(held).hexdigest() != digest:
            raise ValueError(f"{path} is not the one that {PINNED.name} pins: fetch it by hand and look")
        part = jar.with_suffix(f".{os.getpid()}.part")
        part.write_bytes(held)
        part.replace(jar)
    return jar
