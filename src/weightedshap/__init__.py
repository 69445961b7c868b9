"""WeightedSHAP: which features produced this prediction?

>>> import weightedshap as ws
>>> explainer = ws.Explainer(model, background)     # doctest: +SKIP
>>> explanation = explainer(X)                      # doctest: +SKIP

The method is in `weightedshap.method`: `explain_block` is the paper on one page. Its terms, in the
order in which they are computed for a row:

============  ==================================================================  ===============
in the paper  in the code                                                         module
============  ==================================================================  ===============
f, x          `Model`, `Rows` (asks a model once), `Table` (the background)       `inputs`
v(S)          `Game` (one row), `GameBatch` (many rows), `Recipe` (how to fit)    `games`
Δ_j(x_i)      `Contributions`, estimated by Algorithm 2                           `estimators`
w, W          `WeightFamily`                                                      `weights`
φ_w           `WeightFamily.phi`, Σ_j w_j Δ_j                                     `weights`
ℐ(φ; q)       `rank_features`                                                     `curves`
T             `Utility`, computed on the judge, the game that draws curves        `utilities`
w*            `select`, Algorithm 1                                               `selection`
φ*            `Explanation`                                                       `explanation`
============  ==================================================================  ===============
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
    "engines",
    "estimators",
    "evaluate",
    "explain",
    "games",
    "utilities",
    "weights",
]
