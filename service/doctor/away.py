"""What is on other machines: Kafka, PostgreSQL, the mail server, the webhook, who people sign in with."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from predrain.data.clock import Clock
from predrain.data.log.port import LogFull, Topic
from predrain.data.refusal import Refusal
from predrain.service.doctor import finding
from predrain.service.doctor.finding import Finding
from predrain.service.notifications.channel import NotificationChannel
from predrain.service.settings import Settings

if TYPE_CHECKING:
    from predrain.data.log.kafka import Broker

LAGGING = 10_000
"""Records behind which a person should know of: some minutes of one worker's work."""


def kafka(settings: Settings, clock: Clock) -> Iterator[Finding]:
    """Each broker by itself, the topics, how far each group is behind, and the brokers' stamps beside our clock."""
    table = settings.kafka
    if not table.bootstrap:
        return
    from predrain.data.log.kafka import greet, list_topics

    broker = table.broker()
    answering = 0
    for address in table.bootstrap:
        try:
            greet(replace(broker, bootstrap=(address,)))
            answering += 1
            yield Finding(f"kafka {address}", "ok", f"answers, and lets us in by {table.security}")
        except LogFull as error:
            yield Finding(f"kafka {address}", "wrong", str(error))
    if not answering:
        return
    shapes = table.shapes()
    found = list_topics(broker, shapes)
    missing = [broker.topic(topic) for topic in shapes if topic not in {one.topic for one in found}]
    if missing:
        told = f"{', '.join(missing)} missing or not shown to us: run predrain topics create"
        yield Finding("kafka topics", "wrong", told)
    for one in found:
        if one.trouble:
            yield Finding("kafka topics", "note", one.trouble)
    if not missing:
        yield Finding("kafka topics", "ok", f"all {len(found)} are there")
        yield from _lags(broker, clock)


def _lags(broker: Broker, clock: Clock) -> Iterator[Finding]:
    from predrain.data.log.kafka import lag
    from predrain.service.latency_ingest import GROUP as LATENCY
    from predrain.service.scoring.worker import GROUP as WORKER

    newest: list[datetime] = []
    for topic, group in ((Topic.READINGS, WORKER), (Topic.LATENCY, LATENCY)):
        behind = lag(broker, topic, group)
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
    if newest:  # what is old says nothing: perhaps nobody sends
        now = clock.now()
        yield finding.clock("Kafka", max(*newest, now), now, now)


def postgresql(settings: Settings, clock: Clock) -> Iterator[Finding]:
    """Whether it lets us in, its version, the store's format, and its clock."""
    if settings.store.url is None:
        return
    from sqlalchemy import text

    from predrain.data.store import schema
    from predrain.data.store.postgres import PostgresDatabase

    database = PostgresDatabase(settings.store.url.get_secret_value())
    try:
        asked = text("SELECT current_setting('server_version'), clock_timestamp()")
        before = clock.now()
        version, theirs = database.read(lambda connection: connection.execute(asked).one())
        after = clock.now()
    finally:
        database.close()
    told = f"{database.name}, PostgreSQL {version}, store of version {schema.VERSION}"
    yield Finding("postgresql", "ok", told)
    yield finding.clock("PostgreSQL", theirs, before, after)


def mail(settings: Settings, _: Clock) -> Iterator[Finding]:
    """Whether the mail server answers, shows a certificate that is trusted, and lets us in. Sends nothing."""
    service = settings.service
    channel = settings.mail.channel(service.cluster_name, service.address)
    if channel is not None:
        channel.greet()
        told = f"{channel.host}:{channel.port} takes mails by {channel.security}"
        yield Finding("mail", "ok", f"{told}; nothing was sent (--send does)")


def webhook(settings: Settings, clock: Clock) -> Iterator[Finding]:
    """Whether the receiver can be reached and shows a certificate that is trusted. Sends nothing."""
    service = settings.service
    channel = settings.webhook.channel(service.cluster_name, service.address, clock.now)
    if channel is not None:
        channel.greet()
        yield Finding("webhook", "ok", "can be reached; nothing was sent (--send does)")


def oidc(settings: Settings, clock: Clock) -> Iterator[Finding]:
    """Whether the provider describes itself and shows its keys. Nobody signs in."""
    provider = settings.oidc.provider("", clock)
    if provider is not None:
        yield Finding("sign-in", "ok", f"{provider.greet()} answers, and its keys can be read")


def test_message(settings: Settings, clock: Clock) -> Iterator[Finding]:
    """Send one message by each way that is set."""
    from predrain.service.notifications.cause import AlertCause, CausePart
    from predrain.service.notifications.notification_log import Message

    service, now = settings.service, clock.now()
    ways: list[NotificationChannel | None] = [
        settings.mail.channel(service.cluster_name, service.address),
        settings.webhook.channel(service.cluster_name, service.address, clock.now),
    ]
    point = CausePart("test", "predrain doctor --send was run; nothing is wrong.")
    cause = AlertCause("test", "A test of predrain's messages", (point,), "Nothing is to be done.", "/")
    message = Message(f"test-{now:%Y%m%dT%H%M%S}", now, cause, frozenset({point.name}))
    for way in ways:
        if way is None:
            continue
        try:
            way.deliver(message)
            yield Finding(f"{way.name}, sent", "ok", "a test message was taken")
        except Refusal as error:
            yield Finding(f"{way.name}, sent", "wrong", str(error))
