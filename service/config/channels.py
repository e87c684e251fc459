"""The notification channels of the settings: every field of `Settings` that holds a `ChannelTable`, or receivers by
name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from predrain.service.config.receiver_tables import ReceiverTable
from predrain.service.config.settings import Settings, find_table_model
from predrain.service.notifications.channel_table import ChannelTable, RouteTable

if TYPE_CHECKING:
    from predrain.service.notifications.channel import CheckableChannel
    from predrain.service.notifications.message_route import MessageRoute


def list_channel_names() -> tuple[str, ...]:
    """Return the tables of the settings that open channels, in the order of the settings."""
    found = ((name, find_table_model(name)) for name in Settings.model_fields)
    return tuple(name for name, model in found if model is not None and issubclass(model, RouteTable))


def open_channels(
    settings: Settings, now: Callable[[], datetime], tables: tuple[str, ...] | None = None
) -> Iterator[CheckableChannel]:
    """Open every channel that is set for this cluster. tables: only these tables of the settings.

    Raises NoSecret, NoAuthority.
    """
    cluster, address = settings.service.cluster_name, settings.service.external_url
    for kind in list_channel_names() if tables is None else tables:
        for name, table in _list_route_tables(settings, kind).items():
            if not _is_for_cluster(table, cluster):
                continue
            if isinstance(table, ReceiverTable):
                yield table.open_receiver(name, cluster, address, now)
            elif isinstance(table, ChannelTable):
                channel = table.open_channel(cluster, address, now)
                if channel is not None:
                    yield channel


def make_message_routes(settings: Settings) -> Mapping[str, MessageRoute]:
    """Return the route of each channel by the channel's name."""
    from predrain.service.notifications.cause import Severity
    from predrain.service.notifications.message_route import MessageRoute

    return {
        name: MessageRoute(Severity(table.min_severity), table.only_hosts, table.only_racks)
        for kind in list_channel_names()
        for name, table in _list_route_tables(settings, kind).items()
    }


def _list_route_tables(settings: Settings, kind: str) -> dict[str, RouteTable]:
    """Return the tables of one kind by the names of their channels: `mail`, `slack.storage`."""
    found: RouteTable | Mapping[str, RouteTable] = getattr(settings, kind)
    if isinstance(found, RouteTable):
        return {kind: found}
    return {f"{kind}.{name}": table for name, table in found.items()}


def _is_for_cluster(table: RouteTable, cluster: str) -> bool:
    from predrain.service.notifications.message_route import is_name_matched

    return is_name_matched(cluster, table.only_clusters)
