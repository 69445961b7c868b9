"""The cost table."""

from __future__ import annotations

import numpy as np

from weightedshap_paper import costs
from weightedshap_paper.experiment import Settings
from weightedshap_paper.runner import plain


def test_seconds_and_evaluations_of_every_row_are_reported(data):
    quick = Settings(rows=3, quick=True)
    cases = costs.COSTS.cases(quick)
    runs = {case: [plain(costs.run_costs(case, quick, np.random.default_rng(0)))] for case in cases}
    exact, sampled = (np.array(runs[case][0]["rows"]) for case in cases)
    assert exact.shape == sampled.shape == (3, 3)
    assert (exact[:, 2] == 0).all()
    assert (sampled[:, 2] > 1_000).all()
    claims = costs.claims_costs(runs)
    assert [claim.text.split(":")[0] for claim in claims] == [
        "phoneme/tree_surrogate",
        "phoneme/neural_surrogate",
    ]
