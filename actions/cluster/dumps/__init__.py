"""Build a `ClusterView` from the answers of a cluster, in the form of three releases of Ceph. An answer that cannot be
read raises one sentence that says what was not understood.
"""

from predrain.actions.cluster.dumps.dump_decoding import NotUnderstood
from predrain.actions.cluster.dumps.raw_answers import RawAnswers, ReadCommand, run_read_commands
from predrain.actions.cluster.dumps.view_questions import QUESTIONS
from predrain.actions.cluster.dumps.view_reader import ClusterReader

__all__ = ["QUESTIONS", "ClusterReader", "NotUnderstood", "RawAnswers", "ReadCommand", "run_read_commands"]
