"""models.challengers: other ways to forecast, beside the recipe that ships, judged by the same protocol. In: history
files and a day of split. Out: scores. None of them is part of a bundle; what they are worth is in
docs/explanation/challengers.md.

A file an idea: `lessons` (what is learned from), `film` (the last ninety days, frame by frame), `periods` (person-
period rows), `crossed` (what is learned from all drives, and how good that is on drives not seen), `boosting`,
`forest`, `logistic`, `sequence` with its `network` (the learners), `blend`, `contest` (scores of any of them).
"""

from predrain.models.challengers.contest import NAMES, UnknownChallenger, challenger_scores, members_of

__all__ = ["NAMES", "UnknownChallenger", "challenger_scores", "members_of"]
