"""Small changes to the code that other tests would not notice; each test names the change that it
notices."""

import numpy as np
import pytest
import xgboost
from lightgbm import LGBMClassifier
from sklearn.tree import DecisionTreeRegressor

import weightedshap as ws
from tests.games.trees import random_ensemble
from tests.oracles import normal_rows
from weightedshap.contributions import Chains, Contributions
from weightedshap.estimators.noise import with_noise
from weightedshap.evaluation.evaluate import halves
from weightedshap.games.tree_batch import leaf_games, path_games
from weightedshap.inputs import as_table
from weightedshap.selection import careful_weight
from weightedshap.trees import readers
from weightedshap.trees.ensembles import Tree, pack
from weightedshap.weights import WeightFamily, shapley

X = normal_rows(200, 4)


def test_the_offset_changes_its_sign_with_the_class():
    """Trees of the first class of two without the sign of what is added to them."""
    lopsided = X[:, 0] + X[:, 1] > 1.2
    for model in (
        xgboost.XGBClassifier(n_estimators=5, base_score=0.2),
        LGBMClassifier(n_estimators=5, verbose=-1),
    ):
        model.fit(X, lopsided)
        explainer = ws.Explainer(
            model, X[:20], game="tree_interventional", outputs=0, progress=False
        )
        explanation = explainer(X[:5])
        np.testing.assert_allclose(explanation.endpoint_gaps["full"], 0, atol=1e-5)
        p = model.predict_proba(X[:5])[:, 0]
        np.testing.assert_allclose(explanation.predictions, np.log(p / (1 - p)), atol=1e-5)


@pytest.mark.parametrize("make", [xgboost.XGBRegressor, DecisionTreeRegressor])
def test_values_are_rounded_to_single_precision_where_the_library_does(make):
    """A comparison in double precision: a value just above a threshold that rounds to it goes the
    other way."""
    x = np.float32([[0.1], [0.2], [0.3], [0.7]])
    model = make(max_depth=2).fit(x, [0.0, 1.0, 5.0, 9.0])
    found = readers.read_model(model, x.astype(np.float64))
    (ensemble,) = found.ensembles
    for t in np.unique(ensemble.threshold):
        near = np.array(
            [
                [t + side * gap]
                for gap in (0, 1e-12, 1e-10, 1e-9, 3e-9, 1e-8, 3e-8, 1e-6)
                for side in (-1, 1)
            ]
        )
        np.testing.assert_allclose(
            ensemble.predict(found.encode(near)), found.predict(near)[:, 0], atol=1e-5
        )
        rounded = near.astype(np.float32).astype(np.float64)
        np.testing.assert_array_equal(ensemble.predict(near), ensemble.predict(rounded))
        assert len(np.unique(ensemble.predict(near))) == 2


@pytest.mark.parametrize(("behind", "chosen"), [(0.9, 1), (1.1, 0), (1.9, 0)])
def test_one_standard_error_is_one(behind, chosen):
    """Two standard errors, or the deviation in their place."""
    rng = np.random.default_rng(0)
    gap = rng.normal(size=50)
    gap = (gap - gap.mean()) / gap.std(ddof=1)  # mean 0, deviation 1
    error = 1 / np.sqrt(50)
    scores = np.stack(
        [np.zeros(50), -behind * error - gap], axis=1
    )  # the second is so many errors behind
    family = WeightFamily(("last", "Shapley"), np.array([[0.0, 1.0], [0.5, 0.5]]))
    assert careful_weight(scores, family) == chosen


def test_halves_are_drawn_at_random():
    """The first half of the sorted rows, or the same for every seed."""
    table = as_table(np.arange(200.0)[:, None])
    firsts = [
        np.sort(halves(table, np.random.default_rng(seed))[0].data[:, 0]) for seed in range(5)
    ]
    assert all(len(first) == 100 for first in firsts)
    assert all(
        60 < first.mean() < 140 and first.max() > 150 and first.min() < 50 for first in firsts
    )
    assert len({first.tobytes() for first in firsts}) == 5


def adjusted(draws, error, seed):
    """A table of so many draws in every cell, whose error is told."""
    cells = np.full((2, 3, 3), draws / 2)
    mean = np.random.default_rng(seed).normal(size=(2, 3, 3))
    nothing = np.full((3, 3), np.nan)
    return Contributions.sampled(
        Chains(cells, mean, mean**2),
        nothing,
        9,
        "told",
        frozenset([str(seed)]),
        np.full((3, 3), error),
    )


def test_pooled_errors_weigh_each_table_by_its_own_draws():
    """n and m swapped."""
    pooled = adjusted(10, 1.0, 0) + adjusted(30, 2.0, 1)
    np.testing.assert_allclose(pooled.standard_error, np.hypot(10 * 1.0, 30 * 2.0) / 40)
    expected = (10 * adjusted(10, 1.0, 0).mean + 30 * adjusted(30, 2.0, 1).mean) / 40
    np.testing.assert_allclose(pooled.mean, expected)


@pytest.mark.parametrize(("apart", "kept"), [(1e-3, 2), (1e-9, 2), (1e-14, 1)])
def test_vectors_are_equal_only_up_to_rounding(apart, kept):
    """A tolerance of a hundredth."""
    near = WeightFamily(("near",), np.array([[0.5 + apart, 0.5 - apart]]))
    assert len(shapley(2) | near) == kept


@pytest.mark.parametrize("d", [11, 13, 30, 63, 64, 65, 90])
def test_leaves_of_many_players(d):
    """Patterns of more than 12 players, which are sorted, and of more than 64, which fit into no
    word."""
    rng = np.random.default_rng(d)
    ensemble = random_ensemble(rng, d, depth=5, trees=2)
    chain = deep_chain(d)
    background = rng.integers(-1, 5, size=(40, d)).astype(float)
    x = rng.integers(-1, 5, size=(1, d)).astype(float)
    coalitions = rng.random((25, d)) < rng.random((25, 1))
    for one in (ensemble, chain):
        mixed = np.where(coalitions[:, None, :], x, background[None])  # (m, B, d)
        expected = one.predict(mixed.reshape(-1, d)).reshape(25, 40).mean(axis=1)
        block = leaf_games((one,), background, np.full(40, 1 / 40), d)(x)
        np.testing.assert_allclose(block.values(coalitions)[0, :, 0], expected, atol=1e-9)
        order = rng.permutation(d)[None, None]
        walked = block.along(order)[0, 0, :, 0]
        prefix = np.array([np.isin(np.arange(d), order[0, 0, :j]) for j in range(d + 1)])
        np.testing.assert_allclose(walked, block.values(prefix)[0, :, 0], atol=1e-9)
        path = path_games((one,), d)(x)
        np.testing.assert_allclose(
            path.along(order)[0, 0, :, 0], path.values(prefix)[0, :, 0], atol=1e-9
        )


def deep_chain(d):
    """One path that asks every player once."""
    from tests.games.trees import deepest

    return deepest(d, 1)


def test_the_error_of_a_difference_of_two_noisy_values():
    """√2 left out: Δ_1 and Δ_d are differences of two values with the variance of one each."""
    exact = Contributions.known(np.ones((3, 3)))
    with pytest.warns(UserWarning, match="different values for the same coalition"):
        widened = with_noise(exact, np.array(0.09))
    np.testing.assert_allclose(widened.standard_error, np.sqrt(2 * 0.09))
    np.testing.assert_allclose(widened.standard_error_of([1.0, 0.0, 0.0]), np.sqrt(2 * 0.09))


def test_groups_of_leaves_with_more_than_64_players():
    """Leaves of 14 and of 60 other players in one group, whose words have 64 bits."""
    d = 74
    rng = np.random.default_rng(0)
    ensemble = pack([leaning(np.arange(14)), leaning(np.arange(14, d))])
    background = rng.random((40, d))
    x = rng.random((1, d))
    x[:, rng.random(d) < 0.9] = 0.2  # rows that go far along the chains
    background[:, rng.random(d) < 0.9] = 0.3
    coalitions = rng.random((25, d)) < 0.5
    mixed = np.where(coalitions[:, None, :], x, background[None])
    expected = ensemble.predict(mixed.reshape(-1, d)).reshape(25, 40).mean(axis=1)
    block = leaf_games((ensemble,), background, np.full(40, 1 / 40), d)(x)
    np.testing.assert_allclose(block.values(coalitions)[0, :, 0], expected, atol=1e-9)


def leaning(columns):
    """A chain that asks each column once, its deepest leaf first."""
    n = len(columns)
    left = [*range(1, n + 1)] + [-1] * (n + 1)
    right = [2 * n - i for i in range(n)] + [-1] * (n + 1)
    column = [*columns] + [0] * (n + 1)
    threshold = [0.97] * n + [0.0] * (n + 1)
    value = [0.0] * n + [5.0, *np.cos(np.arange(n))]
    cover = [1.0 - i / (2 * n) for i in range(n)] + [0.5] + [1 / (2 * n)] * n
    return Tree(left, right, column, threshold, [False] * len(left), value, cover)
