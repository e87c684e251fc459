"""The base of every table of the settings that opens a notification channel: `Settings` finds a channel by its
type.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel, ConfigDict, Field

if TYPE_CHECKING:
    from predrain.service.notifications.channel import CheckableChannel

MinSeverity = Literal["notice", "urgent"]


class RouteTable(BaseModel, ABC):
    """The route of one channel: the causes whose messages it gets."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    only_hosts: tuple[str, ...] = Field(
        default=(), description="Patterns of the hosts whose messages go here; those of all when empty."
    )
    only_racks: tuple[str, ...] = Field(
        default=(), description="Patterns of the racks whose messages go here; those of all when empty."
    )
    only_clusters: tuple[str, ...] = Field(
        default=(),
        description="Patterns of `cluster_name` of `[service]`; for another cluster nothing goes here.",
    )
    min_severity: MinSeverity = Field(
        default="notice",
        description="`urgent`: what needs attention now; `notice`: also what can wait.",
    )


class ChannelTable(RouteTable):
    """Settings of one notification channel.

    A field of `Settings` with a subclass is all that a channel needs: notifications are sent to it, `predrain
    doctor` checks it, and `predrain config show` shows its settings.
    """

    @abstractmethod
    def open_channel(
        self, cluster: str, address: str, now: Callable[[], datetime]
    ) -> CheckableChannel | None:
        """Open the channel; None if it is not set. cluster: its name; address: of the page, for links.

        Raises a Refusal for a file that the settings name and that cannot be used.
        """
