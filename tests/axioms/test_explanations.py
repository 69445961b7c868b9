"""Tests that explanations do not depend on what must not matter, for several games.

Such are the order of columns, constant columns, copies of background rows, the scale of the model,
names of categories, and the order and split of rows.
"""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lightgbm import LGBMRegressor

import weightedshap as ws
from tests.oracles import normal_rows

X = normal_rows(60, 4)
NEW = normal_rows(6, 4, seed=1)
EXACT = ("marginal", "baseline")
TREE_GAMES = ("tree_path", "tree_interventional")
TREES = LGBMRegressor(n_estimators=6, num_leaves=6, n_jobs=1, verbose=-1, min_child_samples=5).fit(
    X, X[:, 0] * X[:, 1] + X[:, 2]
)


def f(rows):
    x = np.asarray(rows, dtype=float)
    return np.sin(x[:, 0]) * x[:, 1] + x[:, 2] ** 2 - x[:, 3]


def explained(model, background, rows, **choices):
    return ws.Explainer(model, background, **{"game": "marginal", "progress": False, **choices})(
        rows
    )


@settings(max_examples=15, deadline=None)
@given(order=st.permutations(range(4)), game=st.sampled_from(EXACT))
def test_permuting_columns_permutes_results(order, game):
    order = list(order)
    back = np.argsort(order)
    one = explained(f, X, NEW, game=game)
    other = explained(lambda rows: f(rows[:, back]), X[:, order], NEW[:, order], game=game)
    np.testing.assert_allclose(other.shapley, one.shapley[:, order], atol=1e-8)
    np.testing.assert_allclose(other.contributions, one.contributions[:, :, order], atol=1e-8)
    np.testing.assert_allclose(other.scores, one.scores, atol=1e-8)


@pytest.mark.parametrize("game", [*EXACT, *TREE_GAMES])
def test_a_constant_column_changes_nothing(game):
    reads_trees = game in TREE_GAMES
    more, new = (np.column_stack([rows, np.full(len(rows), 7.0)]) for rows in (X, NEW))
    wider = LGBMRegressor(
        n_estimators=6, num_leaves=6, n_jobs=1, verbose=-1, min_child_samples=5
    ).fit(more, X[:, 0] * X[:, 1] + X[:, 2])
    one = explained(TREES if reads_trees else f, X, NEW, game=game, family="shapley")
    other = explained(
        wider if reads_trees else lambda rows: f(rows[:, :4]),
        more,
        new,
        game=game,
        family="shapley",
    )
    np.testing.assert_allclose(other.values[:, :4], one.values, atol=1e-9)
    np.testing.assert_allclose(other.values[:, 4], 0.0, atol=1e-12)
    np.testing.assert_allclose(other.predictions, one.predictions)


@pytest.mark.parametrize("copies", [2, 3])
@pytest.mark.parametrize("game", ["marginal", "baseline", *TREE_GAMES])
def test_copies_of_all_background_rows_change_nothing(game, copies):
    model = TREES if game in TREE_GAMES else f
    one, other = (
        explained(model, background, NEW, game=game) for background in (X, np.tile(X, (copies, 1)))
    )
    np.testing.assert_allclose(other.values, one.values, atol=1e-9)
    np.testing.assert_allclose(other.contributions, one.contributions, atol=1e-9)
    assert other.weight_labels.tolist() == one.weight_labels.tolist()


@settings(max_examples=15, deadline=None)
@given(
    factor=st.sampled_from([-3.0, -1.0, 0.25, 2.0, 1e-4, 1e4]),
    shift=st.floats(-5, 5),
    game=st.sampled_from([*EXACT, "gaussian"]),
)
def test_scaling_f_scales_phi_and_a_constant_moves_only_the_base(factor, shift, game):
    one = explained(f, X, NEW, game=game)
    other = explained(lambda rows: factor * f(rows) + shift, X, NEW, game=game)
    size = abs(factor) * np.abs(one.values).max()
    np.testing.assert_allclose(
        other.shapley, factor * one.shapley, atol=1e-7 * size + 1e-10 * abs(shift)
    )
    np.testing.assert_allclose(
        other.base_values, factor * one.base_values + shift, atol=1e-7 * size + 1e-9
    )
    np.testing.assert_allclose(other.scores, abs(factor) * one.scores, atol=1e-6 * size + 1e-9)


@pytest.mark.parametrize(
    "game", ["marginal", "baseline", ws.games.TreeSurrogate(masks=4, trees=10)]
)
def test_a_relabelling_of_categories_that_keeps_their_order_changes_nothing(game):
    rng = np.random.default_rng(3)
    codes = rng.integers(3, size=90)
    number = rng.normal(size=90)

    def table(names):
        return pd.DataFrame({"size": np.array(names, dtype=object)[codes], "number": number})

    def model(names):
        return lambda rows: (
            np.array([names.index(name) for name in rows["size"]]) * 2.0 + rows["number"].to_numpy()
        )

    first = ["a", "b", "c"]
    second = ["aa", "bbb", "cc"]
    one, other = (
        explained(model(names), table(names)[:80], table(names)[80:], game=game)
        for names in (first, second)
    )
    np.testing.assert_array_equal(other.values, one.values)
    assert other.weight_labels.tolist() == one.weight_labels.tolist()


@pytest.mark.parametrize(
    "choices",
    [
        {"game": "marginal"},
        {"game": "marginal", "estimator": "permutation", "evaluations": 60},
        {"game": ws.games.TreeSurrogate(masks=2, trees=8)},
        {"game": ws.games.NeuralSurrogate(epochs=1, units=8), "evaluations": 60},
        {"game": "tree_path"},
        {"game": "auto", "judge": ws.games.Anchored(masks=2, fits=1)},
    ],
    ids=str,
)
def test_rows_in_any_split_and_order_give_the_same_bits(choices):
    explainer = ws.Explainer(TREES, X, progress=False, **choices)
    ids = [f"row {r}" for r in range(len(NEW))]
    whole = explainer(NEW, row_ids=ids)
    rng = np.random.default_rng(0)
    for _ in range(3):
        order = rng.permutation(len(NEW))
        cuts = np.sort(rng.choice(np.arange(1, len(NEW)), size=2, replace=False))
        parts = [
            explainer(NEW[rows], row_ids=[ids[r] for r in rows]) for rows in np.split(order, cuts)
        ]
        again = ws.Explanation.concatenate(parts)[np.argsort(order)]
        for name in (
            "values",
            "shapley",
            "weights",
            "scores",
            "contributions",
            "curves",
            "n_evaluations",
        ):
            np.testing.assert_array_equal(getattr(again, name), getattr(whole, name), err_msg=name)
