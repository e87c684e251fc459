"""What a training or a backtest was made from: a digest of the histories, and the code."""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]


def digest_histories(paths: Sequence[Path]) -> str:
    """SHA-256 over the SHA-256 of each file, in ascending order: the same files in another order or place are equal.

    Raises OSError for a file that cannot be read.
    """
    digests: list[str] = []
    for path in paths:
        with path.open("rb") as file:
            digests.append(hashlib.file_digest(file, "sha256").hexdigest())
    return hashlib.sha256("\n".join(sorted(digests)).encode()).hexdigest()


def describe_code() -> dict[str, str]:
    """`release`: the installed version; `commit`: of the checkout, with `+changes` where files differ from it; "" where
    the code runs from no checkout, or git is not there."""
    return {"release": version("predrain"), "commit": _commit()}


def _commit() -> str:
    if not (ROOT / ".git").exists():
        return ""
    try:
        head = _git("rev-parse", "HEAD")
        return head + ("+changes" if _git("status", "--porcelain", "--untracked-files=no") else "")
    except (OSError, subprocess.SubprocessError):
        return ""


def _git(*words: str) -> str:
    asked = subprocess.run(  # noqa: S603 - fixed words, no input from outside
        ["git", "-C", str(ROOT), *words],  # noqa: S607 - whichever git the developer has
        capture_output=True,
        text=True,
        timeout=10,
        check=True,
    )
    return asked.stdout.strip()
