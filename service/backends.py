"""What a process stands on: local files, or Kafka and PostgreSQL where the settings name them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from predrain.data.log.port import Log
from predrain.data.refusal import Refusal
from predrain.data.store.port import Store
from predrain.service.settings import Settings
from predrain.service.state_directory import StateDir


class NothingToShare(Refusal):
    """Several processes cannot share a local file."""


def open_log(settings: Settings, state: StateDir) -> Log:
    """The log. Raises at once what is wrong with it."""
    if settings.kafka.bootstrap:
        from predrain.data.log.kafka import KafkaLog

        log = KafkaLog(settings.kafka.broker())
        log.check()
        return log
    from predrain.data.log.sqlite import SqliteLog

    return SqliteLog(state.log)


def open_store(settings: Settings, state: StateDir) -> Store:
    """The store. Raises at once what is wrong with it."""
    from predrain.data.store.opening import open_store as opened

    return opened(place_of_store(settings, state))


@contextmanager
def standing_log(settings: Settings) -> Iterator[Log | None]:
    """The log of a service, running or not; None where there is none yet."""
    state = StateDir(settings.service.state)
    if not settings.kafka.bootstrap and not state.log.exists():
        yield None
        return
    with closing(open_log(settings, state)) as log:
        yield log


@contextmanager
def standing_store(settings: Settings) -> Iterator[Store | None]:
    """The store of a service, running or not; None where there is none yet."""
    state = StateDir(settings.service.state)
    if settings.store.url is None and not state.store.exists():
        yield None
        return
    with closing(open_store(settings, state)) as store:
        yield store


@contextmanager
def untouched_store(settings: Settings) -> Iterator[Store | None]:
    """The same for who only looks: one of an earlier format is left as it is. Raises StoreOutdated for it."""
    from predrain.data.store import schema
    from predrain.data.store.faults import StoreOutdated
    from predrain.data.store.sqlite import version_of_file

    place = place_of_store(settings, StateDir(settings.service.state))
    if isinstance(place, Path) and place.exists() and (version := version_of_file(place)) < schema.VERSION:
        raise StoreOutdated(
            f"the store {place} is of version {version}, for an earlier predrain: `predrain store migrate`, or the next"
            f" start of this one, brings it to version {schema.VERSION}"
        )
    with standing_store(settings) as store:
        yield store


def place_of_store(settings: Settings, state: StateDir) -> Path | str:
    """A file, or the URL of a database."""
    return settings.store.url.get_secret_value() if settings.store.url is not None else state.store


def shared(settings: Settings) -> None:
    """Raises NothingToShare unless log and store are such that several processes on any machine can use them."""
    if not settings.kafka.bootstrap or settings.store.url is None:
        raise NothingToShare(
            "processes of their own share readings over Kafka and history in PostgreSQL: set bootstrap of [kafka] and "
            "url of [store], or run `predrain up`, which does everything by itself"
        )
