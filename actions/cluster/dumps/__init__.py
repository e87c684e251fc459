"""From what a cluster answers to a `ClusterView`. In: the answers' bytes, of three releases. Out: a view, or one
sentence that says what was not understood.
"""

from predrain.actions.cluster.dumps.answers import Answers, Question, asked
from predrain.actions.cluster.dumps.decoding import NotUnderstood
from predrain.actions.cluster.dumps.questions import QUESTIONS
from predrain.actions.cluster.dumps.reader import Reader

__all__ = ["QUESTIONS", "Answers", "NotUnderstood", "Question", "Reader", "asked"]
