"""The service on another machine that a command asks: its address, its token, and the CA of its certificate.

Options come before `PREDRAIN_URL`, `PREDRAIN_TOKEN_FILE` and `PREDRAIN_CA_FILE`, and these before the profile, a file
for its owner only. A token goes only to the address beside which it is written.
"""

from __future__ import annotations

import os
import ssl
import tomllib
import urllib.parse
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from predrain.data.refusal import Refusal
from predrain.service.access.loopback import is_loopback
from predrain.service.access.tokens import LEAST_TOKEN_CHARACTERS, read_token_file

STANDARD_INPUT = "-"
"""The only value of `--token`: the token is the first line of standard input."""
_TOKEN_CURE = "put a token there that `predrain token create` made on the service's machine"  # noqa: S105  (a sentence)


class RemoteUnusable(Refusal):
    """Options, variables or profile name no service that a command can ask."""


@dataclass(frozen=True, slots=True)
class RemoteNaming:
    """The statements of one source about a service. `source`: its name in messages."""

    source: str
    url: str | None = None
    token: str | None = None
    """The token itself, or STANDARD_INPUT."""
    token_file: Path | None = None
    ca_file: Path | None = None
    insecure_without_tls: bool = False


@dataclass(frozen=True, slots=True)
class RemoteService:
    """One service on another machine. `token_source`: where the token is from; empty if there is none."""

    url: str
    token: str | None
    token_source: str
    ca_file: Path | None

    def create_tls_context(self) -> ssl.SSLContext | None:
        """Return a context that trusts the CA alone, or None: the CAs of the system are trusted, or TLS is not used.

        Raises RemoteUnusable.
        """
        if self.ca_file is None or not self.url.startswith("https://"):
            return None
        try:
            return ssl.create_default_context(cafile=self.ca_file)
        except OSError as error:  # ssl.SSLError is one
            raise RemoteUnusable(
                f"{self.ca_file} cannot be used as a CA file ({error.strerror or error}); name the PEM file of the CA "
                "that signed the service's certificate"
            ) from error


class _Profile(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    url: str
    token: str | None = None
    token_file: str | None = None
    ca_file: str | None = None
    insecure_without_tls: bool = False


def find_remote_service(
    options: RemoteNaming, environment: Mapping[str, str], read_input: Callable[[], str]
) -> RemoteService | None:
    """Return the remote service that options, variables or profile name, or None if none of them has an address.

    read_input: reads the token from standard input. Raises RemoteUnusable, TokenFileOpen.
    """
    namings = [options, _read_variables(environment)]
    if all(one.url is None for one in namings) and (profile := _read_profile(environment)) is not None:
        namings.append(profile)
    named = next((one for one in namings if one.url is not None), None)
    if named is None or named.url is None:
        if stated := next((one.source for one in namings if one.token or one.token_file), None):
            raise RemoteUnusable(
                f"{stated} gives a token and no address; name the service by --url or PREDRAIN_URL"
            )
        return None
    url = _check_url(named.url, named.source)
    beside = [one for one in namings if one.url is None or one.url.rstrip("/") == url]
    holder = next((one for one in beside if one.token or one.token_file), None)
    token, source = (None, "") if holder is None else _read_token(holder, read_input)
    insecure = any(one.insecure_without_tls for one in beside)
    host = urllib.parse.urlsplit(url).hostname or ""
    if token is not None and not (url.startswith("https://") or is_loopback(host) or insecure):
        raise RemoteUnusable(
            f"the token would cross the network in the clear to {url}; give an https:// address, or say "
            "--insecure-without-tls"
        )
    return RemoteService(url, token, source, next((one.ca_file for one in beside if one.ca_file), None))


def _read_variables(environment: Mapping[str, str]) -> RemoteNaming:
    def read_path(name: str) -> Path | None:
        return Path(environment[name]) if environment.get(name) else None

    return RemoteNaming(
        "the environment",
        url=environment.get("PREDRAIN_URL") or None,
        token_file=read_path("PREDRAIN_TOKEN_FILE"),
        ca_file=read_path("PREDRAIN_CA_FILE"),
    )


def locate_profile(environment: Mapping[str, str]) -> Path | None:
    """Return the profile's place: PREDRAIN_PROFILE, else `predrain/profile.toml` in the user's configuration folder.

    None: the user has no such folder.
    """
    if named := environment.get("PREDRAIN_PROFILE"):
        return Path(named)
    if folder := environment.get("XDG_CONFIG_HOME"):
        return Path(folder) / "predrain" / "profile.toml"
    home = environment.get("HOME")
    return Path(home) / ".config" / "predrain" / "profile.toml" if home else None


def _read_profile(environment: Mapping[str, str]) -> RemoteNaming | None:
    """Return the statements of the profile, or None if there is no such file. Raises RemoteUnusable."""
    path = locate_profile(environment)
    if path is None:
        return None
    try:
        with path.open("rb") as file:
            if os.fstat(file.fileno()).st_mode & 0o077:
                raise RemoteUnusable(f"the profile {path} can be read by others; run chmod 600 {path}")
            written = tomllib.loads(file.read().decode())
    except (FileNotFoundError, NotADirectoryError):
        if environment.get("PREDRAIN_PROFILE"):
            raise RemoteUnusable(
                f"the profile {path} of PREDRAIN_PROFILE does not exist; make it, or unset it"
            ) from None
        return None
    except OSError as error:
        raise RemoteUnusable(
            f"the profile {path} cannot be read ({error.strerror}); make it yours"
        ) from error
    except ValueError as error:  # neither UTF-8 nor TOML
        raise RemoteUnusable(f"the profile {path} is not TOML: {error}; correct it") from error
    return parse_profile(path, written)


def parse_profile(path: Path, written: Any) -> RemoteNaming:
    """Return the statements of a profile that was read from `path`. Raises RemoteUnusable."""
    try:
        profile = msgspec.convert(written, _Profile)
    except msgspec.ValidationError as error:
        keys = ", ".join(_Profile.__struct_fields__)
        raise RemoteUnusable(f"the profile {path} cannot be used: {error}; its keys are {keys}") from error
    if profile.token is not None and len(profile.token) < LEAST_TOKEN_CHARACTERS:
        raise RemoteUnusable(f"`token` of the profile {path} is no token; {_TOKEN_CURE}")

    def locate(text: str | None) -> Path | None:
        return None if text is None else path.parent / Path(text).expanduser()

    return RemoteNaming(
        f"the profile {path}",
        url=profile.url,
        token=profile.token,
        token_file=locate(profile.token_file),
        ca_file=locate(profile.ca_file),
        insecure_without_tls=profile.insecure_without_tls,
    )


def _check_url(text: str, source: str) -> str:
    """Return the address without the slash at its end. Raises RemoteUnusable."""
    try:
        parts = urllib.parse.urlsplit(text)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:  # a port that is no number, or a broken IPv6 address
        usable, parts = False, None
    if not usable or parts is None:
        raise RemoteUnusable(
            f"{text!r}, which {source} names, is no address; give one like https://predrain.example:9470"
        )
    if parts.username is not None:
        raise RemoteUnusable(
            f"the address that {source} names holds a name or a secret; give the token by --token-file"
        )
    return text.rstrip("/")


def _read_token(holder: RemoteNaming, read_input: Callable[[], str]) -> tuple[str, str]:
    """Return the token, and the name of the place that it is from. Raises RemoteUnusable, TokenFileOpen."""
    if holder.token is not None and holder.token_file is not None:
        raise RemoteUnusable(f"{holder.source} names two tokens; give a token or a token file")
    if holder.token == STANDARD_INPUT:
        token = read_input().strip()
        if len(token) < LEAST_TOKEN_CHARACTERS:
            raise RemoteUnusable("standard input held no token; --token - reads one line")
        return token, "standard input"
    if holder.token is not None:
        return holder.token, holder.source
    assert holder.token_file is not None
    try:
        return read_token_file(holder.token_file, cure=_TOKEN_CURE), str(holder.token_file)
    except OSError as error:
        raise RemoteUnusable(
            f"{holder.token_file} cannot be read ({error.strerror}); {_TOKEN_CURE}"
        ) from error
