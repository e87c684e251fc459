"""`predrain topics create|list`: the log's topics on the broker."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from predrain.data.refusal import Refusal
from predrain.service.cli.options import HERE, AsJson, Where, print_json
from predrain.service.tables.kafka import KafkaTable

if TYPE_CHECKING:
    from predrain.data.log.kafka import TopicStatus

IN_PART = 3


class NoBroker(Refusal):
    """The settings name no broker."""


def create(*, where: Where = HERE, as_json: AsJson = False) -> int:
    """Make the log's topics, those that are missing; exit with 3 when one that is there is not as it is set.

    Example: predrain topics create
    """
    from predrain.data.log.kafka import ensure_topics

    table = _kafka(where)
    found = ensure_topics(table.broker(), table.shapes(), replicas=table.replicas, in_sync=table.in_sync)
    return _told(found, as_json)


def listing(*, where: Where = HERE, as_json: AsJson = False) -> int:
    """The log's topics that the broker has; exit with 3 when one is missing, or not as it is set.

    Example: predrain topics list
    """
    from predrain.data.log.kafka import list_topics

    table = _kafka(where)
    found = list_topics(table.broker(), table.shapes())
    missing = table.shapes().keys() - {one.topic for one in found}
    code = _told(found, as_json)
    for topic in sorted(missing):
        print(
            f"predrain: the topic {table.prefix}{topic} is missing: predrain topics create", file=sys.stderr
        )
    return IN_PART if missing else code


def _kafka(where: Where) -> KafkaTable:
    table = where.settings().kafka
    if not table.bootstrap:
        raise NoBroker("no broker is named: set bootstrap of [kafka] to host:port of at least one")
    return table


def _told(found: Sequence[TopicStatus], as_json: bool) -> int:
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
