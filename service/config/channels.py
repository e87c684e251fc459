"""The notification channels of the settings: every field of `Settings` that holds a `ChannelTable` is one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from typing import TYPE_CHECKING

from predrain.service.config.settings import Settings
from predrain.service.notifications.channel_table import ChannelTable

if TYPE_CHECKING:
    from predrain.service.notifications.channel import CheckableChannel


def list_channel_names() -> tuple[str, ...]:
    """Return the tables of the settings that open a channel, in the order of the settings."""
    return tuple(
        name
        for name, field in Settings.model_fields.items()
        if isinstance(field.annotation, type) and issubclass(field.annotation, ChannelTable)
    )


def open_channel(settings: Settings, name: str, now: Callable[[], datetime]) -> CheckableChannel | None:
    """Open the channel of one table; None if the table is not set. Raises NoSecret, NoAuthority."""
    table: ChannelTable = getattr(settings, name)
    return table.open_channel(settings.service.cluster_name, settings.service.external_url, now)


def open_channels(settings: Settings, now: Callable[[], datetime]) -> Iterator[CheckableChannel]:
    """Open every channel that is set. Raises NoSecret, NoAuthority."""
    for name in list_channel_names():
        channel = open_channel(settings, name, now)
        if channel is not None:
            yield channel
