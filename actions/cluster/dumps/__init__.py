"""From what a cluster answers to a `ClusterView`. In: the answers' bytes, of three releases. Out: a view, or one
sentence that says what was not understood.
"""

from predrain.actions.cluster.dumps.answers import RawAnswers, ReadCommand, asked
from predrain.actions.cluster.dumps.decoding import NotUnderstood
from predrain.actions.cluster.dumps.questions import QUESTIONS
from predrain.actions.cluster.dumps.reader import ClusterReader

__all__ = ["QUESTIONS", "ClusterReader", "NotUnderstood", "RawAnswers", "ReadCommand", "asked"]
