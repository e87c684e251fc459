"""Settings as they may be shown to whoever holds a backup: every secret in them blanked."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from pydantic import BaseModel, SecretStr

from predrain.service.settings import Settings

BLANK = "***"


def blanked(text: str, settings: Settings) -> str:
    """The settings file's text without the secrets that `settings` hold; a single comment where one is left in it."""
    secrets = [secret for value in _values(settings) for secret in _secrets(value)]
    for secret in secrets:
        text = text.replace(secret, BLANK)
    # A secret that is written with escapes is not found as text.
    left = [word for word in _words(tomllib.loads(text)) if any(secret in word for secret in secrets)]
    return "# left out: a secret in these settings could not be blanked\n" if left else text


def without_password(url: str) -> str:
    """A database's URL as people may see it."""
    for secret in _secrets(url):
        url = url.replace(secret, BLANK)
    return url


def _secrets(value: str) -> Iterator[str]:
    """What of a secret setting is secret: of a URL its password only."""
    if "://" not in value or "password=" in value:
        yield value
    elif password := urlsplit(value).password:
        yield password


def _values(table: BaseModel) -> Iterator[str]:
    """Secret settings, and other addresses: a webhook's or a registry's may have a password in it, too."""
    for name in type(table).model_fields:
        value = getattr(table, name)
        for one in value if isinstance(value, tuple) else (value,):
            if isinstance(one, SecretStr):
                yield one.get_secret_value()
            elif isinstance(one, str) and "://" in one:
                yield one
            elif isinstance(one, BaseModel):
                yield from _values(one)


def _words(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _words(one)
