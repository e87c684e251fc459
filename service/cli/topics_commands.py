"""`predrain topics create|list`: the log's topics on the broker."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from predrain.data.refusal import Refusal
from predrain.service.cli.shared_options import THIS_MACHINE, AsJson, StateAddress, print_json

if TYPE_CHECKING:
    from predrain.data.log.kafka import TopicStatus
    from predrain.service.config.kafka_table import KafkaTable

IN_PART = 3


class NoBroker(Refusal):
    """The settings name no broker."""


def create_topics_command(*, where: StateAddress = THIS_MACHINE, as_json: AsJson = False) -> int:
    """Make the log's topics, those that are missing; exit with 3 when one that is there is not as it is set.

    Example: predrain topics create
    """
    from predrain.data.log.kafka import ensure_topics

    table = _require_kafka_settings(where)
    found = ensure_topics(
        table.make_broker(),
        table.make_topic_shapes(),
        replicas=table.replication_factor,
        in_sync=table.min_insync_replicas,
    )
    return _report_topics(found, as_json)


def list_topics_command(*, where: StateAddress = THIS_MACHINE, as_json: AsJson = False) -> int:
    """The log's topics that the broker has; exit with 3 when one is missing, or not as it is set.

    Example: predrain topics list
    """
    from predrain.data.log.kafka import list_topics

    table = _require_kafka_settings(where)
    found = list_topics(table.make_broker(), table.make_topic_shapes())
    missing = table.make_topic_shapes().keys() - {one.topic for one in found}
    code = _report_topics(found, as_json)
    for topic in sorted(missing):
        print(
            f"predrain: the topic {table.prefix}{topic} is missing: predrain topics create", file=sys.stderr
        )
    return IN_PART if missing else code


def _require_kafka_settings(where: StateAddress) -> KafkaTable:
    table = where.settings().kafka
    if not table.bootstrap_servers:
        raise NoBroker("no broker is named: set bootstrap_servers of [kafka] to host:port of at least one")
    return table


def _report_topics(found: Sequence[TopicStatus], as_json: bool) -> int:
    if as_json:
        print_json([asdict(one) for one in found])
    else:
        for one in found:
            made = "made" if one.made else "there"
            print(f"{one.name}: {made}, partitions {one.partitions}, replicas {one.replicas}")
    for one in found:
        if one.trouble:
            print(f"predrain: {one.trouble}", file=sys.stderr)
    return IN_PART if any(one.trouble for one in found) else 0
