"""models.peers: what a forecast must beat, by published definitions. In: a history, days. Out: scores and
alarms, or why there are none.

A file an idea: `rows` (drives on days), `columns` (what only peers read), `counters`, `vendor`, `scrutiny`,
`hdsentinel` (rules), `learned`, `redhat` (learners), `ask` (all of them by name). A peer sees only rows up to
the landmark, a learner only labels known on the split day. A rule's score is no probability.
"""

from predrain.models.peers.ask import (
    DEFAULT,
    LEARNERS,
    NAMES,
    PeerAnswer,
    UnknownPeer,
    peer_scores,
    refuse_unknown,
)
from predrain.models.peers.verdict import NotComputable

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
