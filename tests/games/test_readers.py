"""How readings are held against the model: on values beside the thresholds, on which a wrong side
would show."""

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from tests.oracles import normal_rows
from weightedshap.trees.readers import probes, read_sklearn

X = normal_rows(60, 2)


def test_probes_stand_on_both_sides_of_every_threshold():
    found = read_sklearn(DecisionTreeRegressor(max_depth=2).fit(X, X[:, 0] > 0.3), X)
    rows = probes(found, X)
    (ensemble,) = found.ensembles
    for column, t in zip(ensemble.column, np.float32(ensemble.threshold), strict=True):
        values = np.float32(rows[:, column])
        assert {np.nextafter(t, np.float32(end)) for end in (-np.inf, np.inf)} <= set(
            values.tolist()
        )
    np.testing.assert_array_equal(rows[:60], X)


@pytest.mark.parametrize("weights", [None, np.linspace(0.1, 9, 60)])
def test_the_trees_of_a_classifier_are_shares(weights):
    model = DecisionTreeClassifier(max_depth=3, random_state=0).fit(
        X, X[:, 0] > 0, sample_weight=weights
    )
    found = read_sklearn(model, X)
    shares = np.stack([ensemble.predict(X) for ensemble in found.ensembles], axis=1)
    np.testing.assert_allclose(shares, model.predict_proba(X), atol=1e-12)
