"""How good is a ranking, on a game that did not choose it: methods, metrics, and the comparison."""

from weightedshap.evaluation.evaluate import LARGER_IS_BETTER, Evaluation, evaluate, halves, in_words
from weightedshap.evaluation.rankings import METHODS

__all__ = ["LARGER_IS_BETTER", "METHODS", "Evaluation", "evaluate", "halves", "in_words"]
