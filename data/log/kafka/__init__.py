"""The event log in Apache Kafka: shared by all machines of an installation, as durable as the replicas of its topics.

`KafkaLog` is `data.log.log_port.Log` on a `Broker` (its address and this client's credentials). `ensure_topics` creates
the topics, each by its `TopicShape`. `check_broker_topics` gives at once the reason why a broker would refuse this
client, and `measure_consumer_lag` how far a group is behind.
"""

from predrain.data.log.kafka.broker import (
    Broker,
    BrokerAway,
    BrokerRefuses,
    RecordTooLong,
    Security,
    TopicMissing,
)
from predrain.data.log.kafka.consumer_lag import ConsumerLag, measure_consumer_lag
from predrain.data.log.kafka.kafka_log import KafkaLog
from predrain.data.log.kafka.kafka_topics import TopicShape, TopicStatus, ensure_topics, list_topics
from predrain.data.log.kafka.preflight_check import check_broker_topics

__all__ = [
    "Broker",
    "BrokerAway",
    "BrokerRefuses",
    "ConsumerLag",
    "KafkaLog",
    "RecordTooLong",
    "Security",
    "TopicMissing",
    "TopicShape",
    "TopicStatus",
    "check_broker_topics",
    "ensure_topics",
    "list_topics",
    "measure_consumer_lag",
]
