"""Settings for a backup, in which every secret is blanked, because people who hold the backup can read them."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from pydantic import BaseModel, SecretStr

from predrain.service.config.settings import Settings

BLANK = "***"


def blank_secrets(text: str, settings: Settings) -> str:
    """Return the text of the settings file without the secrets that `settings` hold, or a single comment if a secret is
    left.
    """
    secrets = [secret for value in _list_sensitive_values(settings) for secret in _find_secret_parts(value)]
    for secret in secrets:
        text = text.replace(secret, BLANK)
    # A secret that is written with escapes is not found in the text.
    left = [
        word for word in _list_text_values(tomllib.loads(text)) if any(secret in word for secret in secrets)
    ]
    return "# left out: a secret in these settings could not be blanked\n" if left else text


def without_password(url: str) -> str:
    """Return a database's URL with its password blanked."""
    for secret in _find_secret_parts(url):
        url = url.replace(secret, BLANK)
    return url


def _find_secret_parts(value: str) -> Iterator[str]:
    """Yield the secret parts of a secret setting: the password of a URL, else the whole value."""
    if "://" not in value or "password=" in value:
        yield value
    elif password := urlsplit(value).password:
        yield password


def _list_sensitive_values(table: BaseModel) -> Iterator[str]:
    """Yield the secret settings and all URLs, because the URL of a webhook or of a registry may contain a password,
    too.
    """
    for name in type(table).model_fields:
        value = getattr(table, name)
        ones = value.values() if isinstance(value, dict) else value
        for one in ones if isinstance(value, tuple | dict) else (value,):
            if isinstance(one, SecretStr):
                yield one.get_secret_value()
            elif isinstance(one, str) and "://" in one:
                yield one
            elif isinstance(one, BaseModel):
                yield from _list_sensitive_values(one)


def _list_text_values(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _list_text_values(one)
