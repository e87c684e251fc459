"""Checks of other machines: Kafka, PostgreSQL, the notification channels, and the sign-in provider."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from predrain.data.clock import Clock
from predrain.data.log.log_port import LogFull, Topic
from predrain.data.refusal import Refusal
from predrain.service.config.channels import open_channels
from predrain.service.config.settings import Settings
from predrain.service.doctor import finding
from predrain.service.doctor.finding import Finding

if TYPE_CHECKING:
    from predrain.data.log.kafka import Broker

Look = Callable[[Settings, Clock], Iterator[Finding]]
LAGGING = 10_000
"""The lag in records above which a person should know of it: some minutes of one worker's work."""


def check_kafka(settings: Settings, clock: Clock) -> Iterator[Finding]:
    """Check each broker, the topics, the lag of each consumer group, and the brokers' timestamps against our clock."""
    table = settings.kafka
    if not table.bootstrap_servers:
        return
    from predrain.data.log.kafka import check_broker_topics, list_topics

    broker = table.make_broker()
    answering = 0
    for address in table.bootstrap_servers:
        try:
            check_broker_topics(replace(broker, bootstrap=(address,)))
            answering += 1
            yield Finding(f"kafka {address}", "ok", f"answers, and lets us in by {table.security}")
        except LogFull as error:
            yield Finding(f"kafka {address}", "wrong", str(error))
    if not answering:
        return
    shapes = table.make_topic_shapes()
    found = list_topics(broker, shapes)
    missing = [
        broker.broker_topic_name(topic) for topic in shapes if topic not in {one.topic for one in found}
    ]
    if missing:
        told = f"{', '.join(missing)} missing or not shown to us: run predrain topics create"
        yield Finding("kafka topics", "wrong", told)
    for one in found:
        if one.trouble:
            yield Finding("kafka topics", "note", one.trouble)
    if not missing:
        yield Finding("kafka topics", "ok", f"all {len(found)} are there")
        yield from _check_consumer_lag(broker, clock)


def _check_consumer_lag(broker: Broker, clock: Clock) -> Iterator[Finding]:
    from predrain.data.log.kafka import measure_consumer_lag
    from predrain.service.forecasting.worker import GROUP as WORKER
    from predrain.service.streams.latency_ingest import GROUP as LATENCY

    newest: list[datetime] = []
    for topic, group in ((Topic.READINGS, WORKER), (Topic.LATENCY, LATENCY)):
        behind = measure_consumer_lag(broker, topic, group)
        newest += [behind.newest] if behind.newest is not None else []
        told = f"{behind.records:,} records of {topic.value} are not worked through"
        if behind.records > LAGGING:
            told += ": see that workers run (predrain work), and start more of them"
        yield Finding(f"kafka {group}", "ok" if behind.records <= LAGGING else "note", told)
        if behind.dropped:
            told = f"the topic's retention dropped {behind.dropped:,} records of {topic.value} before they were taken"
            yield Finding(
                f"kafka {group}, lost", "wrong", f"{told}: let workers run, or keep the topic for longer"
            )
    if newest:  # an old record proves nothing: perhaps no host sends
        now = clock.now()
        yield finding.compare_clocks("Kafka", max(*newest, now), now, now)


def check_postgresql(settings: Settings, clock: Clock) -> Iterator[Finding]:
    """Check that PostgreSQL accepts our login. Report its version and the store's format, and compare its clock."""
    if settings.store.url is None:
        return
    from sqlalchemy import text

    from predrain.data.store import store_schema
    from predrain.data.store.postgres_store import PostgresDatabase

    database = PostgresDatabase(settings.store.url.get_secret_value())
    try:
        asked = text("SELECT current_setting('server_version'), clock_timestamp()")
        before = clock.now()
        version, theirs = database.read(lambda connection: connection.execute(asked).one())
        after = clock.now()
    finally:
        database.close()
    told = f"{database.name}, PostgreSQL {version}, store of version {store_schema.VERSION}"
    yield Finding("postgresql", "ok", told)
    yield finding.compare_clocks("PostgreSQL", theirs, before, after)


def look_at_channel(name: str) -> Look:
    """Return a check whether the receivers of one table can be reached and accept us. It sends nothing."""

    def look(settings: Settings, clock: Clock) -> Iterator[Finding]:
        for channel in open_channels(settings, clock.now, (name,)):
            try:
                channel.run_preflight_check()
            except Refusal as error:
                yield Finding(channel.name, "wrong", str(error))
            else:
                yield Finding(channel.name, "ok", f"{channel.reached}; nothing was sent (--send does)")

    return look


def check_oidc_provider(settings: Settings, _clock: Clock) -> Iterator[Finding]:
    """Check that the sign-in provider answers and that its keys can be read. The check signs nobody in."""
    provider = settings.oidc.make_provider("")
    if provider is not None:
        yield Finding("sign-in", "ok", f"{provider.run_preflight_check()} answers, and its keys can be read")


def test_message(settings: Settings, clock: Clock) -> Iterator[Finding]:
    """Send one message by each configured channel."""
    from predrain.service.notifications.trial_message import send_test_message

    for way in list(open_channels(settings, clock.now)):
        try:
            send_test_message(way, clock.now(), "predrain doctor --send was run")
            yield Finding(f"{way.name}, sent", "ok", "a test message was taken")
        except Refusal as error:
            yield Finding(f"{way.name}, sent", "wrong", str(error))
