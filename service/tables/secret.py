"""Secrets are in files of their own, never in the settings."""

from __future__ import annotations

from pathlib import Path

from data.refusal import Refusal


class NoSecret(Refusal):
    """A file with a secret cannot be used."""


def secret(file: Path, key: str) -> str:
    """What stands in `file` without its last line break. key: what names the file, `password_file of [kafka]`.

    Raises NoSecret.
    """
    try:
        found = file.read_text(encoding="utf-8").removesuffix("\n").removesuffix("\r")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise NoSecret(
            f"the secret in {file} cannot be read: {why}; give {key} a file that our user may read"
        ) from error
    if not found:
        raise NoSecret(f"{file} is empty; give {key} a file with the secret in it")
    return found
