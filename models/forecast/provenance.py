"""The provenance of a training or a backtest: a digest of the histories, and the version of the code."""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]


def digest_histories(paths: Sequence[Path]) -> str:
    """Return the SHA-256 over the SHA-256 of each file, in ascending order. Order and place of the files do not matter.

    Raises OSError for a file that cannot be read.
    """
    digests: list[str] = []
    for path in paths:
        with path.open("rb") as file:
            digests.append(hashlib.file_digest(file, "sha256").hexdigest())
    return hashlib.sha256("\n".join(sorted(digests)).encode()).hexdigest()


def describe_code() -> dict[str, str]:
    """Return `release`, the installed version, and `commit`, that of the checkout.

    The commit ends in `+changes` if files differ from it. It is "" if the code runs from no checkout, or without
    git.
    """
    return {"release": version("predrain"), "commit": _read_git_commit()}


def _read_git_commit() -> str:
    if not (ROOT / ".git").exists():
        return ""
    try:
        head = _run_git("rev-parse", "HEAD")
        return head + ("+changes" if _run_git("status", "--porcelain", "--untracked-files=no") else "")
    except (OSError, subprocess.SubprocessError):
        return ""


def _run_git(*words: str) -> str:
    asked = subprocess.run(  # noqa: S603 - fixed words, no input from outside
        ["git", "-C", str(ROOT), *words],  # noqa: S607 - whichever git the developer has
        capture_output=True,
        text=True,
        timeout=10,
        check=True,
    )
    return asked.stdout.strip()
