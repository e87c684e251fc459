"""models.lab.peers: the forecasters that a forecast must beat, by published definitions.

In: a history, days. Out: scores and alarms, or the reason why there are none.

The files: `rows` holds drives on days, and `columns` the values that only peers read. `counters`, `vendor`,
`scrutiny` and `hdsentinel` are rules; `learned` and `redhat` are learners. `ask` runs any of them by name. A peer
sees only rows up to the landmark, and a learner only labels known on the split day. A rule's score is no
probability.
"""

from predrain.models.lab.peers.peer_answer import NotComputable
from predrain.models.lab.peers.peer_runs import (
    DEFAULT,
    LEARNERS,
    NAMES,
    PeerAnswer,
    UnknownPeer,
    peer_scores,
    refuse_unknown,
)

__all__ = [
    "DEFAULT",
    "LEARNERS",
    "NAMES",
    "NotComputable",
    "PeerAnswer",
    "UnknownPeer",
    "peer_scores",
    "refuse_unknown",
]
