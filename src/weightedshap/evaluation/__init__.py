"""Evaluation: rankings of features by several methods, compared on games that did not choose them.

`halves` splits the background, `rankings` lists the methods, `mci` computes one of them, `metrics`
scores the rankings, `evaluate` compares them, and `summary` describes the result in words. The
package exports `evaluate`; the command line and the reports use it.
"""

from weightedshap.evaluation.evaluate import Evaluation, evaluate
from weightedshap.evaluation.halves import halves
from weightedshap.evaluation.rankings import METHODS
from weightedshap.evaluation.summary import LARGER_IS_BETTER, in_words

__all__ = ["LARGER_IS_BETTER", "METHODS", "Evaluation", "evaluate", "halves", "in_words"]
