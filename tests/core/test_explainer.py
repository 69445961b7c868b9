"""The whole method: choices, rows, workers, seeds, and what is refused."""

import functools
import hashlib
import tracemalloc

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

import weightedshap as ws
from tests.oracles import (
    CountingGame,
    additive,
    linear_model,
    normal_rows,
    product_model,
    random_game,
    three_outputs,
)
from weightedshap._checks import UnknownNameError
from weightedshap.explainer import _row_ids
from weightedshap.explanation import field_names
from weightedshap.games import Baseline, FunctionGame, Marginal
from weightedshap.weights import WeightFamily, paper

BACKGROUND = normal_rows(9)
X = normal_rows(5, seed=1)
NAMES = list("abcd")
FRAME = pd.DataFrame(BACKGROUND, columns=NAMES)


def explainer(model=product_model, background=BACKGROUND, **choices):
    return ws.Explainer(model, background, **{"game": "marginal", **choices})


def sampling(**choices):
    return explainer(estimator="permutation", evaluations=40, **choices)


def same(one, other, rows=slice(None)):
    """Every number of two explanations, bit for bit, on some rows of the first."""
    for name in (
        "values",
        "shapley",
        "scores",
        "curves",
        "orders",
        "weight_labels",
        "contributions",
        "predictions",
    ):
        np.testing.assert_array_equal(getattr(one, name)[rows], getattr(other, name), err_msg=name)
    if one.standard_errors is not None:
        np.testing.assert_array_equal(one.standard_errors[rows], other.standard_errors)


@pytest.mark.parametrize(
    "choices", [{}, {"select": "shared"}, {"estimator": "permutation", "evaluations": 40}]
)
@pytest.mark.parametrize("model", [product_model, three_outputs])
def test_results_do_not_depend_on_the_number_of_workers(model, choices):
    same(explainer(model, n_jobs=1, **choices)(X), explainer(model, n_jobs=2, **choices)(X))


@pytest.mark.parametrize("batch_bytes", [1, 200, 2**20])
def test_results_do_not_depend_on_the_games_batches(batch_bytes):
    same(explainer()(X), explainer(game=Marginal(batch_bytes))(X))


def test_results_do_not_depend_on_how_often_the_explainer_was_called():
    explain = sampling()
    same(explain(X), explain(X))


def test_a_row_keeps_its_numbers_as_long_as_it_keeps_its_place():
    same(sampling()(X), sampling()(X[:2]), slice(0, 2))
    changed = X.copy()
    changed[0] += 1
    np.testing.assert_array_equal(sampling()(X).values[1:], sampling()(changed).values[1:])


@pytest.mark.parametrize(
    "ids", [range(100, 105), list("abcde"), np.array([7, -2, 0, 2**70, 3], dtype=object)]
)
def test_rows_with_ids_keep_their_numbers_however_the_table_is_cut(ids):
    explain = sampling()
    ids = list(ids)
    whole = explain(X, row_ids=ids)
    same(whole, explain(X[3:], row_ids=ids[3:]), slice(3, 5))
    same(whole, explain(X[::-1], row_ids=ids[::-1])[::-1])
    assert not np.array_equal(whole.values, explain(X).values)


def test_the_id_of_a_row_is_its_position_where_none_is_given():
    same(sampling()(X), sampling()(X, row_ids=np.arange(5)))


def test_an_id_does_not_depend_on_the_ids_of_other_rows():
    mixed = sampling()(X, row_ids=[7, "a", 8, "b", "c"])
    same(mixed, sampling()(X[:1], row_ids=[7]), slice(0, 1))
    same(mixed, sampling()(X[1:2], row_ids=np.array(["a"])), slice(1, 2))


def test_ids_take_the_memory_of_their_texts_and_not_of_the_longest_for_each():
    ids = ["k" * 300_000, *map(str, range(9_999))]
    tracemalloc.start()
    try:
        assert _row_ids(ids, 10_000) == tuple(ids)
        assert tracemalloc.get_traced_memory()[1] < 2e6
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "ids",
    [[1, 2], 3, [0.5] * 5, [None] * 5, "abcde", [[1], [1, 2], 3, 4, 5], set(range(5)), b"abcde"],
)
def test_ids_must_be_one_integer_or_text_for_each_row(ids):
    with pytest.raises(
        ValueError, match="`row_ids` must hold one integer or text for each of the 5 rows"
    ):
        sampling()(X, row_ids=ids)


def test_a_changed_copy_shares_the_game_and_nothing_else_changes():
    one = explainer()
    other = one.but(select="shared", family="wide")
    assert other.game is one.game
    assert (other.config.select, one.config.select) == ("shared", "per_row")
    same(other(X), explainer(select="shared", family="wide")(X))


def test_a_changed_copy_is_checked():
    with pytest.raises(UnknownNameError, match=r"Unknown choice 'slect'\. Did you mean 'select'"):
        explainer().but(slect="shared")
    with pytest.raises(UnknownNameError, match="Did you mean 'shared'"):
        explainer().but(select="shred")
    with pytest.raises(
        ValueError, match=r"The fitted games depend on `link`\. Make a new Explainer for it"
    ):
        explainer().but(link="logit")


def test_equal_rows_in_different_places_draw_different_numbers():
    twice = sampling()(X[[0, 0]]).contributions
    assert not np.array_equal(twice[0], twice[1])


def test_exact_rows_keep_their_numbers_in_any_place():
    same(explainer()(X), explainer()(X[[3, 1]]), [3, 1])


def test_another_seed_draws_other_numbers():
    assert not np.array_equal(
        sampling()(X).contributions, sampling(random_state=1)(X).contributions
    )


def test_rows_background_and_model_are_left_as_they_were():
    X_frame = pd.DataFrame(X, columns=NAMES)[NAMES[::-1]]
    background = FRAME.copy()
    model = LogisticRegression().fit(BACKGROUND, BACKGROUND[:, 0] > 0)
    before = fingerprints(X_frame, background, model)
    explainer(model, background)(X_frame)
    explainer(model, BACKGROUND)(X)
    assert fingerprints(X_frame, background, model) == before


def fingerprints(X_frame, background, model):
    arrays = [
        X_frame.to_numpy(),
        background.to_numpy(),
        X,
        BACKGROUND,
        model.coef_,
        model.intercept_,
    ]
    names = [*X_frame.columns, *background.columns]
    return names + [
        hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest() for array in arrays
    ]


@pytest.mark.parametrize(
    "game", ["marginal", Marginal(), Marginal().fit(product_model, BACKGROUND)]
)
def test_a_game_is_taken_by_name_as_recipe_or_fitted(game):
    same(explainer(game=game)(X), explainer()(X))


def test_a_function_of_rows_is_taken_as_game():
    fitted = Marginal().fit(product_model, BACKGROUND)
    explanation = explainer(None, game=lambda row: fitted.at(row))(X)
    np.testing.assert_array_equal(explanation.contributions, explainer()(X).contributions)
    np.testing.assert_allclose(explanation.predictions, product_model(X))
    assert explanation.game_info == {"game": "given"}


def test_a_function_of_rows_is_given_a_frame_where_the_background_is_one():
    seen = []

    def game(row):
        seen.append(list(row.columns))
        return additive(row.to_numpy()[0]).game

    explanation = explainer(None, FRAME, game=game)(X)
    np.testing.assert_allclose(explanation.values, X, atol=1e-12)
    assert all(columns == NAMES for columns in seen)


def test_a_game_of_other_players_than_the_background_is_refused():
    with pytest.raises(ValueError, match="game at row 0 has 3 players but the background has 4"):
        explainer(None, game=lambda row: random_game(3))(X)


@pytest.mark.parametrize(
    "estimator", ["exact", ws.estimators.exact, functools.partial(ws.estimators.exact)]
)
def test_an_estimator_is_taken_by_name_or_as_a_function(estimator):
    same(explainer(estimator=estimator)(X), explainer()(X))


@pytest.mark.parametrize("family", ["paper", paper, paper(4)])
def test_a_family_is_taken_by_name_function_or_object(family):
    same(explainer(family=family)(X), explainer()(X))


def test_a_budget_holds_for_every_row():
    explanation = sampling()(X)
    assert (explanation.n_evaluations <= 40).all()
    assert all("budget of 40 evaluations" in reason for reason in explanation.stopped)


def test_linear_models_are_explained_by_their_terms_whatever_the_weights():
    weights = np.array([1.0, -2.0, 0.5, 0.0])
    explanation = explainer(linear_model(weights), family="wide")(X)
    np.testing.assert_allclose(
        explanation.values, weights * (X - BACKGROUND.mean(axis=0)), atol=1e-12
    )


def test_a_constant_model_is_explained_by_zeros_and_the_uniform_weight():
    explanation = explainer(lambda rows: np.full(len(rows), 0.1))(X)
    np.testing.assert_array_equal(explanation.values, 0)
    assert set(explanation.weight_labels) == {"Beta(1,1)"}


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("game", ["marginal", "baseline"])
def test_one_two_and_three_columns_are_explained(d, game):
    explanation = explainer(lambda rows: rows.prod(axis=1), BACKGROUND[:, :d], game=game)(X[:, :d])
    assert explanation.values.shape == (5, d)
    gain = explanation.predictions - explanation.base_values
    np.testing.assert_allclose(explanation.shapley.sum(axis=1), gain, atol=1e-12)


def test_outputs_by_position_have_no_axis_and_a_list_of_one_has():
    assert explainer(three_outputs, outputs=1)(X).values.shape == (5, 4)
    assert explainer(three_outputs, outputs=[1])(X).values.shape == (5, 4, 1)
    assert explainer(three_outputs, outputs=[1])(X).output_names == ("output 1",)


@pytest.mark.parametrize("outputs", [None, "True", 1, -1])
def test_the_second_of_two_classes_is_explained_by_default(outputs):
    model = LogisticRegression().fit(BACKGROUND, BACKGROUND[:, 0] > 0)
    explanation = explainer(model, outputs=outputs)(X)
    np.testing.assert_allclose(explanation.predictions, model.predict_proba(X)[:, 1])
    assert explanation.values.shape == (5, 4)
    assert explanation.output_names == ("True",)


def test_named_columns_in_another_order_give_the_same_explanation():
    explain = explainer(background=FRAME)
    frame = pd.DataFrame(X, columns=NAMES)
    same(explain(frame), explain(frame[["c", "a", "d", "b"]]))
    assert explain(frame).feature_names == tuple(NAMES)
    assert list(explain(frame[["c", "a", "d", "b"]]).data.columns) == NAMES


def test_arrays_and_frames_give_the_same_explanation():
    same(explainer(background=FRAME)(pd.DataFrame(X, columns=NAMES)), explainer()(X))


def test_a_single_row_is_a_table_of_one_row():
    same(explainer()(X[0]), explainer()(X[:1]))


def test_groups_are_players():
    explanation = explainer(background=FRAME, groups={"pair": ["a", "b"]})(X)
    assert explanation.feature_names == ("pair", "c", "d")
    assert explanation.values.shape == (5, 3)
    np.testing.assert_allclose(
        explanation.shapley.sum(axis=1),
        explanation.predictions - explanation.base_values,
        atol=1e-12,
    )


def test_background_weights_are_used():
    weights = np.arange(9.0)
    base = explainer(background_weights=weights)(X).base_values
    np.testing.assert_allclose(base, np.average(product_model(BACKGROUND), weights=weights))


def test_predict_overrides_how_the_model_is_called():
    assert (
        explainer(object(), predict=product_model)(X).predictions.tolist()
        == product_model(X).tolist()
    )


def test_a_shared_weight_is_one_for_all_rows_and_one_for_each_output():
    explanation = explainer(three_outputs, select="shared")(X)
    for o in range(3):
        assert len(set(explanation.weight_labels[:, o])) == 1
    alone = [
        explainer(three_outputs, outputs=o, select="shared")(X).weight_labels[0] for o in range(3)
    ]
    assert explanation.weight_labels[0].tolist() == alone


@pytest.mark.parametrize(
    ("choice", "near"),
    [
        ({"game": "margnal"}, "marginal"),
        ({"estimator": "exakt"}, "exact"),
        ({"family": "papr"}, "paper"),
        ({"utility": "aups"}, "aup"),
        ({"select": "share"}, "shared"),
    ],
)
@pytest.mark.parametrize("kind", [ValueError, KeyError, UnknownNameError])
def test_unknown_names_are_refused_before_anything_is_fitted(choice, near, kind):
    with pytest.raises(kind, match=rf"Did you mean '{near}'\? Known: "):
        explainer(**choice)


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ({"game": 3}, "`game` must be a name"),
        ({"estimator": 3}, "`estimator` must be a name"),
        ({"family": 3}, "`family` must be a name"),
        ({"utility": 3}, "`utility` must be a name"),
    ],
)
def test_parts_that_are_no_parts_are_refused(choice, message):
    with pytest.raises(TypeError, match=message):
        explainer(**choice)


@pytest.mark.parametrize(
    "choice", [{"evaluations": 0}, {"evaluations": 2.5}, {"keep_contributions": "maybe"}]
)
def test_choices_that_make_no_sense_are_refused(choice):
    (name,) = choice
    with pytest.raises(ValueError, match=f"`{name}` must be"):
        explainer(**choice)


@pytest.mark.parametrize("vector", [[1.5, -0.5, 0, 0], [0.5, 0.5, 0.5, 0.5]])
def test_a_family_that_is_no_family_of_weights_is_refused(vector):
    with pytest.raises(ValueError, match="Weights must"):
        explainer(family=lambda d: WeightFamily(("mine",), np.array([vector])))


@pytest.mark.parametrize(
    ("bad", "message"), [(np.nan, "NaN"), ([0.0], "one score for each attribution")]
)
def test_a_utility_that_returns_no_scores_is_refused(bad, message):
    utility = lambda game, f_x: (
        lambda phi: np.broadcast_to(bad, (1,) if isinstance(bad, list) else len(phi))
    )
    with pytest.raises(ValueError, match=message):
        explainer(utility=utility)(X)


@pytest.mark.parametrize("rows", [np.empty((0, 4)), FRAME.iloc[:0]])
def test_no_rows_are_refused(rows):
    with pytest.raises(ValueError, match="`X` has no rows"):
        explainer(background=FRAME)(rows)


def test_an_empty_background_is_refused():
    with pytest.raises(ValueError, match="background needs at least one row"):
        explainer(background=np.empty((0, 4)))


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (FRAME.drop(columns="b"), "`X` lacks 1 of the background's columns: 'b'"),
        (FRAME.assign(z=0.0), "`X` has 1 columns the background does not have: 'z'"),
        (np.zeros((2, 3)), "`X` has 3 columns but the background has 4"),
        (np.zeros((2, 5)), "`X` has 5 columns but the background has 4"),
    ],
)
def test_rows_with_missing_or_extra_columns_are_refused(rows, message):
    with pytest.raises(ValueError, match=message):
        explainer(background=FRAME)(rows)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("where", ["row", "mix"])
def test_a_model_that_returns_no_finite_number_is_refused(bad, where):
    known = (
        (lambda rows: rows[:, 0] == X[0, 0])
        if where == "mix"
        else (lambda rows: (rows == X[0]).all(axis=1))
    )
    with pytest.raises(ValueError, match=r"The model returned .* NaN or infinite"):
        explainer(lambda rows: np.where(known(rows), bad, 1.0))(X)


def test_a_model_that_returns_another_length_is_refused():
    with pytest.raises(ValueError, match="The model must return one value"):
        explainer(lambda rows: np.zeros(min(len(rows), 4)))(X)


def test_a_model_that_changes_its_number_of_outputs_is_refused():
    with pytest.raises(ValueError, match="returned 3 outputs where it returned 2 before"):
        explainer(lambda rows: np.zeros((len(rows), 2 if len(rows) < 6 else 3)))(X)


def test_too_small_a_budget_names_the_least_that_works():
    with pytest.raises(ValueError, match="at d = 4 permutation sampling needs at least 14"):
        explainer(estimator="permutation", evaluations=13)(X)


def test_sizes_never_visited_are_an_error_that_names_them_and_the_least_budget():
    walks = functools.partial(ws.estimators.permutation, orders="independent", evaluations=11)
    with pytest.raises(ValueError, match=r"at sizes \[2, 3\].*Raise `evaluations`: 14 "):
        explainer(estimator=walks)(X)


def test_masked_inclusion_needs_a_model():
    with pytest.raises(
        ValueError, match="looks at the baseline game, which needs a model and a background"
    ):
        ws.explain(random_game(4), utility="masked_inclusion")


def test_one_bound_game_is_explained_with_its_whole_as_prediction():
    game = random_game(4)
    explanation = ws.explain(game)
    assert explanation.predictions.tolist() == [game.values[-1]]
    assert explanation.base_values.tolist() == [game.values[0]]
    assert explanation.feature_names == ("x0", "x1", "x2", "x3")
    assert explanation.data is None
    np.testing.assert_allclose(explanation.contributions[0], ws.estimators.exact(game).mean)


def test_a_bound_game_of_several_outputs_has_their_axis():
    assert ws.explain(random_game(4, outputs=(2,))).values.shape == (1, 4, 2)
    assert ws.explain(random_game(4, outputs=(1,))).values.shape == (1, 4, 1)


def test_a_bound_game_may_name_its_players():
    game = FunctionGame(lambda coalitions: coalitions.sum(axis=1), 2, ("Ada", "Bob"))
    assert ws.explain(game).feature_names == ("Ada", "Bob")


def test_a_bound_game_keeps_to_its_budget_up_to_the_curves():
    game = CountingGame(random_game(8))
    explanation = ws.explain(game, family="shapley", evaluations=100)
    assert explanation.n_evaluations[0] <= 100
    assert len(game.asked) <= 100 + 3 + 3 * 9  # f(x), both ends, and three curves


def test_a_bound_game_is_seeded():
    one, same_seed, other = (
        ws.explain(random_game(8), evaluations=100, random_state=s) for s in (0, 0, 1)
    )
    np.testing.assert_array_equal(one.values, same_seed.values)
    assert not np.array_equal(one.contributions, other.contributions)


def test_a_bare_function_is_no_game():
    with pytest.raises(TypeError, match="FunctionGame"):
        ws.explain(lambda coalitions: coalitions.sum(axis=1))


def test_the_baseline_game_is_explained_against_its_values():
    fixed = np.array([1.0, 2.0, 3.0, 4.0])
    explanation = explainer(game=Baseline(fixed))(X)
    np.testing.assert_allclose(explanation.base_values, product_model(fixed[None])[0])
    assert explanation.game_info["game"] == "baseline"


def test_every_public_field_of_an_explanation_is_filled():
    explanation = explainer()(X)
    empty = [name for name in field_names() if getattr(explanation, name) is None]
    assert empty == ["shapley_errors", "standard_errors", "replicates"]


def test_a_budget_that_an_estimator_of_ones_own_cannot_take_is_refused():
    def mine(game, *, rng):
        return ws.estimators.exact(game)

    with pytest.raises(ValueError, match="'mine' takes no `evaluations`"):
        ws.Explainer(lambda X: X[:, 0], np.eye(3), game="marginal", estimator=mine, evaluations=50)


def test_a_margin_is_called_log_odds_only_where_it_is_one():
    from lightgbm import LGBMClassifier, LGBMRegressor

    rows = normal_rows(80)
    few = {"n_estimators": 3, "n_jobs": 1, "verbose": -1}
    two = rows[:, 0] > 0
    three = np.digitize(rows[:, 0], [-0.5, 0.5])
    logistic = LogisticRegression().fit(rows, two)
    shares = LGBMClassifier(**few).fit(rows, three)
    cases = [
        (LGBMClassifier(**few).fit(rows, two), {"game": "tree_path"}, "log-odds"),
        (logistic, {"game": "baseline", "link": "logit"}, "log-odds"),
        (logistic, {"game": "baseline"}, "probability"),
        (shares, {"game": "tree_path"}, "margin"),
        (
            LGBMRegressor(objective="poisson", **few).fit(rows, three),
            {"game": "tree_path"},
            "logarithm of the prediction",
        ),
        (product_model, {"game": "baseline"}, "prediction"),
    ]
    for model, choices, words in cases:
        assert f"({words})" in repr(ws.Explainer(model, rows, **choices)(rows[:2]))
