"""Asks the services of other clusters for their overviews, and keeps the last answer of each.

Each cluster has a service of its own, with rights in its own cluster alone. An overview has numbers and drive models,
and no disks (decision 0064).
"""

from __future__ import annotations

import ssl
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import msgspec

from predrain.data.ids import parse_cluster_id
from predrain.data.outside_text import CLUSTER_NAME, MODEL, clean_identifier, clean_text
from predrain.service.client import contract
from predrain.service.client.http_exchange import ServiceProblem, Unreachable, Wire
from predrain.service.fleet.cluster_overview import ClusterOverview, ModelCounts

ASKED_AT_ONCE = 8
ANSWER_SECONDS = 10.0
LONGEST_ANSWER_BYTES = 1 << 20
"""About 5,000 drive models; a longer answer is no overview."""
MOST_MODELS = 2_000
TROUBLE_AFTER = timedelta(minutes=15)
"""A service that has not answered for this time is reported as a broken part: an upgrade takes less."""
COUNTED_FOR = timedelta(days=1)
"""The time for which the disks of an overview count in the sums over all clusters."""
_ANY_TIME = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class OtherCluster:
    """The service of another cluster: its last overview, and the reason why the last request got none."""

    url: str
    overview: ClusterOverview | None = None
    answered_at: datetime | None = None
    refused: str = ""
    """Empty if the last request was answered."""


@dataclass(frozen=True, slots=True)
class OverviewSource:
    """The address of another service, and the way to ask it."""

    url: str
    fetch: Callable[[], bytes]
    """Returns the JSON of `GET overview`. Raises ServiceProblem, Unreachable."""


def open_overview_source(url: str, token: str | None, tls: ssl.SSLContext | None) -> OverviewSource:
    """Return the source of the service at `url`. token: one with the scope `read`. tls: the authorities to trust."""
    wire = Wire(
        url, token, tls=tls, seconds=ANSWER_SECONDS, waits=(), longest_answer_bytes=LONGEST_ANSWER_BYTES
    )
    return OverviewSource(url, lambda: wire.get("overview").content)


class OtherClusters:
    """The other clusters of the settings. Thread-safe; one thread asks at a time."""

    def __init__(self, sources: Sequence[OverviewSource], began: datetime) -> None:
        self._sources, self._began = tuple(sources), began
        self._lock = threading.Lock()
        self._known = {source.url: OtherCluster(source.url) for source in self._sources}

    def __bool__(self) -> bool:
        return bool(self._sources)

    def list_known(self) -> tuple[OtherCluster, ...]:
        """Return what is known of each cluster, in the order of the settings."""
        with self._lock:
            return tuple(self._known[source.url] for source in self._sources)

    def list_recent_overviews(self, now: datetime) -> tuple[ClusterOverview, ...]:
        """Return the overviews that are younger than `COUNTED_FOR`."""
        return tuple(
            known.overview
            for known in self.list_known()
            if known.overview is not None
            and known.answered_at is not None
            and now - known.answered_at <= COUNTED_FOR
        )

    def ask_all(self, now: datetime) -> bool:
        """Ask every service once. Return whether anything changed that people see."""
        before = self.list_known()
        with ThreadPoolExecutor(ASKED_AT_ONCE, "other-clusters") as pool:
            after = list(pool.map(lambda source: self._ask(source, now), self._sources))
        with self._lock:
            self._known = {known.url: known for known in after}
        return [_strip_times(known) for known in before] != [_strip_times(known) for known in after]

    def describe_troubles(self, now: datetime) -> dict[str, str]:
        """Return a sentence for each service that has not answered for `TROUBLE_AFTER`, by the part's name."""
        return {
            f"other cluster {known.url}": f"The service of another cluster at {known.url} has not answered since "
            f"{since:%Y-%m-%d %H:%M} UTC: {known.refused}"
            for known in self.list_known()
            if known.refused and now - (since := known.answered_at or self._began) > TROUBLE_AFTER
        }

    def _ask(self, source: OverviewSource, now: datetime) -> OtherCluster:
        known = self._known[source.url]
        try:
            return OtherCluster(source.url, decode_overview(source.fetch()), now)
        except ServiceProblem as problem:
            cure = "" if problem.status not in (401, 403) else "; give it a token with the scope read"
            return replace(
                known, refused=f"it answered {problem.status}: {clean_text(str(problem), 300)}{cure}"
            )
        except Unreachable as error:
            return replace(known, refused=clean_text(str(error), 300))
        except msgspec.DecodeError as error:
            why = (
                f"its answer is no overview of ours ({error}); both services need this release or a newer one"
            )
            return replace(known, refused=clean_text(why, 300))


def decode_overview(content: bytes) -> ClusterOverview:
    """Decode the answer of another service; its texts are cleaned. Raises msgspec.DecodeError."""
    body = msgspec.json.decode(content, type=contract.OverviewBody)
    if len(body.models) > MOST_MODELS:
        raise msgspec.ValidationError(f"{len(body.models)} models, at most {MOST_MODELS}")
    return ClusterOverview(
        name=clean_identifier(body.cluster, CLUSTER_NAME.limit) or "unnamed",
        fsid=parse_cluster_id(body.fsid) if body.fsid is not None else None,
        at=body.at,
        health=None if body.health is None else clean_text(body.health, CLUSTER_NAME.limit),
        osds=body.osds,
        hosts=body.hosts,
        disks=body.disks,
        fresh=body.fresh,
        warning=body.warning,
        bad=body.bad,
        expected_30d=body.expected_30d,
        drains=body.drains,
        halted=body.halted,
        models=tuple(
            ModelCounts(
                clean_identifier(one.model, MODEL.limit), one.disks, one.warning, one.bad, one.turned_bad
            )
            for one in body.models
        ),
    )


def _strip_times(known: OtherCluster) -> OtherCluster:
    overview = known.overview
    return replace(known, answered_at=None, overview=overview and replace(overview, at=_ANY_TIME))
