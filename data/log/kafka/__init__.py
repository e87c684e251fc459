"""The event log in Apache Kafka: shared by all machines of a house, durable as its topics' replicas are.

`KafkaLog` is `data.log.port.Log`, on a `Broker` (where it is and who we are there). `ensure_topics` makes the topics
that a `TopicShape` each describes; `greet` says at once why a broker would not serve us, `lag` how far a group
is behind.
"""

from predrain.data.log.kafka.broker import (
    Broker,
    BrokerAway,
    BrokerRefuses,
    RecordTooLong,
    Security,
    TopicMissing,
)
from predrain.data.log.kafka.lag import Lag, lag
from predrain.data.log.kafka.log import KafkaLog
from predrain.data.log.kafka.preflight_check import greet
from predrain.data.log.kafka.topics import TopicShape, TopicStatus, ensure_topics, list_topics

__all__ = [
    "Broker",
    "BrokerAway",
    "BrokerRefuses",
    "KafkaLog",
    "Lag",
    "RecordTooLong",
    "Security",
    "TopicMissing",
    "TopicShape",
    "TopicStatus",
    "ensure_topics",
    "greet",
    "lag",
    "list_topics",
]
