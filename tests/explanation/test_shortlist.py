"""Which few features suffice: a list that says what the judge predicts after each."""

import numpy as np
import pytest

import weightedshap as ws

X = np.random.default_rng(0).normal(size=(300, 4))


def model(rows):
    return 3 * rows[:, 2] + rows[:, 0] + 0.01 * rows[:, 1]


@pytest.fixture(scope="module")
def explanation():
    return ws.Explainer(model, X[:200], game="marginal", progress=False)(X[200:205])


def test_it_stops_at_the_first_features_that_come_near_enough(explanation):
    found = explanation.shortlist(0)
    assert set(found.features) == {"x2", "x0"}
    assert found.enough
    assert found.errors[-1] <= found.tolerance < found.errors[:-1].min()
    assert found.predictions[0] == pytest.approx(explanation.base_values[0])
    assert found.prediction == pytest.approx(model(X[200:201])[0])
    assert found.tolerance == pytest.approx(0.1 * model(X[:200]).std(), rel=1e-6)
    assert len(found) == 2


def test_a_wide_tolerance_needs_no_feature_and_a_tight_one_needs_all(explanation):
    none = explanation.shortlist(0, tolerance=50)
    every = explanation.shortlist(0, tolerance=1e-9)
    assert none.features == ()
    assert "no feature is needed" in repr(none)
    assert set(every.features) <= {"x0", "x1", "x2", "x3"}
    assert len(every) >= 3


def test_it_prints_a_sentence_and_a_table_that_lines_up(explanation):
    sentence, *table = repr(explanation.shortlist(0)).splitlines()
    assert sentence.startswith("Row 0: 2 features suffice to come within")
    assert sentence.endswith(", ".join(explanation.shortlist(0).features) + ".")
    assert len({len(line) for line in table}) == 1
    assert len(table) == 4


def test_a_judge_that_never_comes_near_lists_all_features():
    trees = ws.games.TreeSurrogate(trees=1, masks=2)
    found = ws.Explainer(model, X[:200], game=trees, progress=False)(X[200:201]).shortlist(
        0, tolerance=0.01
    )
    assert not found.enough
    assert len(found) == 4
    assert "all 4 features are needed" in repr(found)


def test_rows_and_outputs_are_named():
    two = ws.Explainer(
        lambda rows: np.stack([rows[:, 0], model(rows)], axis=1),
        X[:200],
        game="marginal",
        progress=False,
    )
    explanation = two(X[200:203])
    assert explanation.shortlist(-1, output=0).features == ("x0",)
    assert explanation.shortlist(-1, output=1).row == 2
    assert explanation.shortlist(2, output=1).output == "output 1"


@pytest.mark.parametrize(
    ("asked", "message"), [({"row": 7}, "`row`"), ({"row": 0, "tolerance": 0}, "`tolerance`")]
)
def test_what_makes_no_sense_is_refused(explanation, asked, message):
    with pytest.raises(ValueError, match=message):
        explanation.shortlist(**asked)


def test_one_bound_game_has_a_shortlist_too():
    vote = ws.games.FunctionGame(
        lambda coalitions: (coalitions[:, :2].all(axis=1)).astype(float), d=4
    )
    assert ws.explain(vote).shortlist(0).features == ("x0", "x1")
