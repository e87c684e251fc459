"""The backends of a process: local files, or Kafka and PostgreSQL if the settings name them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from predrain.data.log.log_port import Log
from predrain.data.refusal import Refusal
from predrain.data.store.store_port import Store
from predrain.service.config.settings import Settings
from predrain.service.config.state_directory import StateDir


class LocalFilesNotShareable(Refusal):
    """Several processes cannot share a local file."""


def open_log(settings: Settings, state: StateDir) -> Log:
    """Open the log. Raises at once if the log is unusable."""
    if settings.kafka.bootstrap_servers:
        from predrain.data.log.kafka import KafkaLog

        log = KafkaLog(settings.kafka.make_broker())
        log.check_broker()
        return log
    from predrain.data.log.sqlite_log import SqliteLog

    return SqliteLog(state.log)


def open_store(settings: Settings, state: StateDir) -> Store:
    """Open the store. Raises at once if the store is unusable."""
    from predrain.data.store.store_opening import open_store as opened

    return opened(place_of_store(settings, state))


@contextmanager
def standing_log(settings: Settings) -> Iterator[Log | None]:
    """Open the log of a service, whether the service runs or not; None if there is no log yet."""
    state = StateDir(settings.service.state)
    if not settings.kafka.bootstrap_servers and not state.log.exists():
        yield None
        return
    with closing(open_log(settings, state)) as log:
        yield log


@contextmanager
def standing_store(settings: Settings) -> Iterator[Store | None]:
    """Open the store of a service, whether the service runs or not; None if there is no store yet.

    Raises StoreOutdated for a store of an older format: only a start and `predrain store migrate` change the format.
    """
    place = place_of_store(settings, StateDir(settings.service.state))
    if isinstance(place, Path) and not place.exists():
        yield None
        return
    require_present_version(place)
    with closing(open_store(settings, StateDir(settings.service.state))) as store:
        yield store


@contextmanager
def open_halt_store(settings: Settings) -> Iterator[Store | None]:
    """Open the store of a service to halt or to lift a halt, with no change of its format; None if there is no store.

    Every version of a file has the table of the halt, so that a halt is not refused beside a service of an older
    release. A file of another version takes nothing else.
    """
    from predrain.data.store.sqlite_store import SqliteStore

    place = place_of_store(settings, StateDir(settings.service.state))
    if isinstance(place, str):
        with standing_store(settings) as store:
            yield store
    elif not place.exists():
        yield None
    else:
        with closing(SqliteStore(place, keep_version=True)) as store:
            yield store


def require_present_version(place: Path | str) -> None:
    """Raise StoreOutdated if there is a file of an older format; a database says so when it is opened."""
    from predrain.data.store import store_schema
    from predrain.data.store.sqlite_store import version_of_file
    from predrain.data.store.store_faults import StoreOutdated

    if not isinstance(place, Path) or not place.exists():
        return
    if (version := version_of_file(place)) < store_schema.VERSION:
        raise StoreOutdated(
            f"the store {place} is of version {version}, for an earlier predrain: `predrain store migrate`, or the next"
            f" start of this one, brings it to version {store_schema.VERSION}"
        )


def place_of_store(settings: Settings, state: StateDir) -> Path | str:
    """Return the file of the store, or the URL of a database."""
    return settings.store.url.get_secret_value() if settings.store.url is not None else state.store


def require_shared_backends(settings: Settings) -> None:
    """Raise LocalFilesNotShareable unless processes on any machine can use both log and store."""
    if not settings.kafka.bootstrap_servers or settings.store.url is None:
        raise LocalFilesNotShareable(
            "processes of their own share readings over Kafka and history in PostgreSQL: set bootstrap_servers of "
            "[kafka] and url of [store], or run `predrain up`, which does everything by itself"
        )
