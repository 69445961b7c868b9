"""Small faults of weights, curves, selection and utilities that `make mutants` found alive; each
test names its own."""

import numpy as np
import pytest
from sklearn.tree import DecisionTreeRegressor

import weightedshap as ws
from tests.oracles import normal_rows, product_model, three_outputs
from weightedshap import curves, utilities, weights
from weightedshap.games import FunctionGame
from weightedshap.selection import best_weight, careful_weight, paired
from weightedshap.weights import WeightFamily


def test_the_grid_of_beta_weights_is_of_powers_of_two():
    """Another default, or an empty or negative value that is let through."""
    powers = (1, 2, 4, 8, 16, 32)
    expected = {f"Beta({a},{b})" for a in powers for b in powers}
    assert set(weights.beta_grid(40).labels) == expected
    for values in ([], [1, -1], [0]):
        with pytest.raises(ValueError, match="`values` must be positive numbers"):
            weights.beta_grid(3, values)


def test_weights_of_many_players_do_not_overflow():
    """exp without the largest subtracted."""
    steep = weights.beta(10_000, 1, 200).vectors[0]
    assert np.isfinite(steep).all()
    assert steep.argmax() == 9_999


def test_families_of_several_games_and_what_equals_them():
    """Vectors told too often, a family that equals all, a vector below all others that is found."""
    family = weights.paper(3)
    pairs = family.of_games(["a", "b"])
    assert pairs.vectors.shape == (2 * len(family), 3)
    np.testing.assert_array_equal(pairs.vectors[len(family) :], family.vectors)
    assert not family.equals("paper")
    assert not family.equals(weights.sizes(3))
    assert family.equals(weights.paper(3))
    assert family.index(np.zeros(3)) is None


def test_the_share_of_the_area_that_is_the_judges_own():
    """Any other mean, or another end."""
    assert curves.misfit(np.array([[9.0, 2.0, 1.0], [9.0, 4.0, 1.0]])) == pytest.approx(1 / 2)
    assert curves.misfit(np.array([[9.0, 0.25, 0.25]])) == 1.0
    assert curves.misfit(np.zeros((2, 3))) == 0.0


def test_the_interval_of_two_rows():
    """An interval that begins with three."""
    mean, half = curves.mean_interval(np.array([0.0, 2.0]))
    assert (mean, half) == (1.0, pytest.approx(12.7062047))
    assert np.isnan(curves.mean_interval(np.array([1.0]))[1])


def test_one_row_without_a_score_is_told_and_two_rows_have_an_error():
    """An error only where all rows lack a score; a standard error from three rows on."""
    family = WeightFamily(("last", "Shapley"), np.array([[0.0, 1.0], [0.5, 0.5]]))
    with pytest.raises(ValueError, match="No weight of the family has a score"):
        best_weight(np.array([[np.nan, np.nan], [1.0, 2.0]]), family)
    assert careful_weight(np.array([[0.0, -1.0], [0.0, -1.0]]), family) == 0


def test_references_are_those_of_the_first_game():
    """Those of the second."""
    first = np.arange(4.0).reshape(1, 4)
    second = np.arange(10.0, 14.0).reshape(1, 4)
    np.testing.assert_array_equal(paired([first, second], 3), [[0, 1, 2, 10, 11, 12, 3]])


def small_area(game, f_x):
    """`aup` as a person would write it."""

    def score(phi):
        found = [
            np.abs(f_x - game.along(order[None])[0, 1:]).sum()
            for order in np.argsort(-np.abs(phi), kind="stable")
        ]
        return -np.array(found)

    assert game(np.ones((2, game.d), dtype=bool)).shape == (2,)
    return score


def test_a_persons_utility_sees_one_row_and_output_at_a_time():
    """All rows of a block at once, or outputs that are still there."""
    X = normal_rows(60, 4)
    model = DecisionTreeRegressor(max_depth=3, random_state=0).fit(X, product_model(X))
    chosen = {"game": "tree_path", "progress": False}
    own = ws.Explainer(model, X, utility=small_area, **chosen)(X[:3])
    np.testing.assert_allclose(
        own.scores, ws.Explainer(model, X, utility="aup", **chosen)(X[:3]).scores, atol=1e-9
    )


def test_a_utility_that_is_none_for_one_output_is_told():
    """All that are no functions, or phi of another width."""
    asked = []

    def first_only(game, f_x):
        asked.append(f_x)
        return (lambda phi: np.zeros(len(phi))) if len(asked) == 1 else None

    X = normal_rows(9, 4)
    with pytest.raises(TypeError, match="must return a function of phi"):
        ws.Explainer(three_outputs, X, game="baseline", utility=first_only, progress=False)(X[:1])
    game = FunctionGame(lambda coalitions: coalitions.sum(axis=1), 4)
    for phi in (np.ones((2, 3)), np.ones(4)):
        with pytest.raises(ValueError, match=r"`phi` must have shape \(m, 4\)"):
            utilities.aup(game, 1.0)(phi)


@pytest.mark.parametrize(
    ("shape", "axis"), [((3,), 1), ((3,), -2), ((2, 0), 1), ((2, 3), "x"), ((2, 3), 0.5)]
)
def test_an_axis_that_is_not_there_is_told(shape, axis):
    """Refused only where all is wrong at once."""
    for function in (curves.order_of, curves.area):
        with pytest.raises(ValueError, match="`axis` must be an axis of"):
            function(np.ones(shape), axis)


def test_hostile_calls_that_were_not_told_by_us(tmp_path):
    """No name for a file, ragged positions, a setting that is neither yes nor no."""
    explanation = ws.explain(FunctionGame(lambda coalitions: coalitions.sum(axis=1), 4))
    with pytest.raises(ValueError, match="A file needs a name"):
        explanation.save("")
    with pytest.raises(TypeError, match="must be numbers"):
        explanation[:, [[1], [1, 2]]]
    with pytest.raises(ValueError, match="`standardise` must be True or False"):
        ws.games.NeuralSurrogate(standardise=np.ones(3)).fit(product_model, normal_rows(50, 4), 0)
