"""The settings that a drain saved or sent, made for tests from their texts, as a journal prints the settings."""

from __future__ import annotations

from collections.abc import Mapping

from predrain.data.setting import Setting, read_setting


def by_setting(values: Mapping[str, str]) -> dict[Setting, str]:
    """The same values by typed settings. Raises ValueError for a text that names none."""
    return {read_setting(text): value for text, value in values.items()}
