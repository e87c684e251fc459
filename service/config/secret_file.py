"""Read secrets and certificates of authorities, which are in files of their own and never in the settings."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from predrain.data.refusal import Refusal

if TYPE_CHECKING:
    import ssl


class NoSecret(Refusal):
    """A file with a secret cannot be used."""


def read_secret_file(file: Path, key: str) -> str:
    """Return the content of `file` without its last line break. key: the setting that names the file,
    `password_file of [kafka]`.

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


class NoAuthority(Refusal):
    """A file with an authority's certificate cannot be used."""


def load_ca_tls_context(file: Path, key: str) -> ssl.SSLContext:
    """Return a TLS context that trusts the authority in `file`. key: the setting, `ca of [mail]`. Raises
    NoAuthority.
    """
    import ssl

    try:
        return ssl.create_default_context(cafile=file)
    except OSError as error:  # ssl.SSLError is one
        raise NoAuthority(
            f"the authority's certificate {file} cannot be used ({error.strerror or error}); give {key} a PEM file "
            "that our user may read"
        ) from error
