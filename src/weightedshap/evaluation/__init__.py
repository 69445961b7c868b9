"""How good is a ranking, on a game that did not choose it: methods, metrics, and the comparison."""

from weightedshap.evaluation.evaluate import Evaluation, evaluate, halves
from weightedshap.evaluation.rankings import METHODS
from weightedshap.evaluation.summary import LARGER_IS_BETTER, in_words

__all__ = ["LARGER_IS_BETTER", "METHODS", "Evaluation", "evaluate", "halves", "in_words"]
