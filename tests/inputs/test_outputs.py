"""Classes by name, and log-odds, of models of people's own frames."""

import numpy as np
from sklearn.linear_model import LogisticRegression

from tests.inputs.examples import explain, five_columns, labels, pipeline, target


def test_classes_are_explained_by_name_and_one_shape_rule_holds():
    frame = five_columns()
    three = pipeline(LogisticRegression()).fit(frame, np.digitize(target(frame), [0.0, 4.0]))
    every, one, listed = (
        explain(three, frame[:10], frame[:2], outputs=o) for o in (None, "1", ["1"])
    )
    assert every.values.shape == (2, 5, 3)
    assert one.values.shape == (2, 5)
    assert listed.values.shape == (2, 5, 1)
    np.testing.assert_allclose(every.values[..., 1], one.values, atol=1e-12)
    np.testing.assert_array_equal(listed.values[..., 0], one.values)
    assert every.output_names == ("0", "1", "2")


def test_log_odds_of_a_linear_classifier_are_additive():
    frame = five_columns()
    model = pipeline(LogisticRegression()).fit(frame, labels(frame))
    explanation = explain(model, frame[:10], frame[:2], link="logit")
    np.testing.assert_allclose(
        explanation.predictions, model.decision_function(frame[:2]), rtol=1e-8
    )
    assert np.ptp(explanation.contributions, axis=1).max() < 1e-8  # the same at every size
