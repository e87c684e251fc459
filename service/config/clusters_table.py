"""`[clusters]`: the services of other clusters, whose overviews this service asks for."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, Field, model_validator

from predrain.service.config.secret_file import load_ca_tls_context, read_secret_file

if TYPE_CHECKING:
    from predrain.service.clusters.other_clusters import OverviewSource


class OtherServiceTable(BaseModel):
    """The service of one other cluster."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    url: str = Field(pattern=r"^https?://[^\s/]+/?$")
    token_file: Path | None = None
    ca: Path | None = None


class ClustersTable(BaseModel):
    """`[clusters]`: other clusters, each with a service of its own; their overviews stand beside this one's."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    services: tuple[OtherServiceTable, ...] = Field(
        default=(),
        max_length=1_000,
        description='Services of other clusters: `[{ url = "https://predrain.east.example.org", token_file = '
        '"/etc/predrain/east.token", ca = "/etc/predrain/ca.pem" }]`. The file (0600) holds a token of that service '
        "with the scope `read`; `ca` is the PEM file of who signed its certificate, the system's when not set.",
    )
    interval_seconds: float = Field(
        default=60.0, ge=10.0, le=3_600.0, description="Seconds between two requests to each of them."
    )

    @model_validator(mode="after")
    def _each_once(self) -> ClustersTable:
        urls = [one.url.rstrip("/") for one in self.services]
        if twice := sorted({url for url in urls if urls.count(url) > 1}):
            raise ValueError(f"name each service once: {', '.join(twice)}")
        return self

    def open_sources(self) -> tuple[OverviewSource, ...]:
        """Return the sources of the overviews. Raises NoSecret, NoAuthority."""
        from predrain.service.clusters.other_clusters import open_overview_source

        key = "of [clusters]"
        return tuple(
            open_overview_source(
                one.url.rstrip("/"),
                read_secret_file(one.token_file, f"token_file {key}") if one.token_file else None,
                load_ca_tls_context(one.ca, f"ca {key}") if one.ca else None,
            )
            for one in self.services
        )
