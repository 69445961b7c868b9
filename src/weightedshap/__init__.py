"""WeightedSHAP: which features produced this prediction?

>>> import weightedshap as ws
>>> explainer = ws.Explainer(model, background)     # doctest: +SKIP
>>> explanation = explainer(X)                      # doctest: +SKIP
"""

from weightedshap import curves, engines, estimators, games, utilities, weights
from weightedshap._version import __version__
from weightedshap.contributions import Contributions
from weightedshap.evaluation import Evaluation, evaluate
from weightedshap.explainer import Explainer, explain
from weightedshap.explanation import Explanation
from weightedshap.weights import WeightFamily

__all__ = [
    "Contributions",
    "Evaluation",
    "Explainer",
    "Explanation",
    "WeightFamily",
    "__version__",
    "curves",
]
__all__ += ["engines", "estimators", "evaluate", "explain", "games", "utilities", "weights"]
