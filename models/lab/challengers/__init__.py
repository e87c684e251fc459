"""models.lab.challengers: other forecasters beside the recipe that ships, judged by the same protocol.

In: history files and the day of a split. Out: scores. No challenger is part of a bundle;
docs/explanation/challengers.md tells their results.

The files: `lessons` holds the training rows. `film` holds the last ninety days as frames. `periods` makes
person-period rows. `crossed` trains on all drives and scores drives not seen. The learners are `boosting`,
`forest`, `logistic`, and `sequence` with its `network`. `blend` combines them, and `contest` computes the
scores of any of them.
"""

from predrain.models.lab.challengers.contest import NAMES, UnknownChallenger, challenger_scores, members_of

__all__ = ["NAMES", "UnknownChallenger", "challenger_scores", "members_of"]
