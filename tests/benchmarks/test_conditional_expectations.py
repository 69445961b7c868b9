"""The benchmarks' truth: conditional expectations against integrals of the joint density, and
against drawn rows."""

import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import multivariate_normal, multivariate_t, norm
from scipy.stats import t as student

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import conditionals
import truths
from conditionals import Distribution, Trees, Truth, mean
from truths import REAL, SETTINGS, Setting, make, make_real, real_half, target, value_of
from weightedshap.coalitions import all_coalitions, empty_and_full, prefixes

pytest.importorskip("scipy", "1.15")  # benchmarks/truths.py needs it

COVARIANCES = np.array(
    [[[1, 0.6, 0.2], [0.6, 1, 0.5], [0.2, 0.5, 1]], [[1, -0.5, 0], [-0.5, 0.8, 0.3], [0, 0.3, 0.6]]]
)
ALONE = np.ones(1), np.zeros((1, 3)), COVARIANCES[:1]
DISTRIBUTIONS = {
    "gaussian": Distribution(np.ones(1), np.array([[0.5, 0, -1]]), COVARIANCES[:1]),
    "mixture": Distribution(np.array([0.6, 0.4]), np.array([[0, 1, 0], [1, -1, 0.5]]), COVARIANCES),
    "normal copula": Distribution(*ALONE, conditionals.FREEDOM, "normal"),
    "lognormal copula": Distribution(*ALONE, conditionals.FREEDOM, "lognormal"),
}
LATENTS = np.array([0.7, -0.4, 1.2])
everywhere = pytest.mark.parametrize("name", DISTRIBUTIONS)


def curved(X):
    a, b, c = X.T
    return a * b + np.abs(c) + np.sin(2 * a + c)


def straight(X):
    return X @ [1.0, -2.0, 0.5] + 3.0


def game_of(distribution, f, pairs=2**12, of_none=0.0):
    value = lambda z, known, draws: f(distribution.features(draws.T))
    return Truth(distribution, value, f, of_none, 0, pairs)(distribution.features(LATENTS))


def density(distribution, z):
    if distribution.freedom:
        return multivariate_t(
            distribution.means[0], distribution.covariances[0], distribution.freedom
        ).pdf(z)
    components = zip(
        distribution.weights, distribution.means, distribution.covariances, strict=True
    )
    return sum(w * multivariate_normal(m, C).pdf(z) for w, m, C in components)


def integral(distribution, f, known):
    """E[f(X) | X_S = x_S] by the joint density alone, on a grid of hidden latents that grows wider
    outwards."""
    u = np.linspace(-7, 7, 401)
    grids = [np.atleast_1d(LATENTS[i]) if known[i] else np.sinh(u) for i in range(3)]
    steps = [np.ones(1) if known[i] else np.cosh(u) for i in range(3)]
    z = np.stack(np.meshgrid(*grids, indexing="ij"), axis=-1).reshape(-1, 3)
    weights = density(distribution, z) * np.prod(np.meshgrid(*steps, indexing="ij"), axis=0).ravel()
    return weights @ f(distribution.features(z)) / weights.sum()


@everywhere
def test_a_coalition_is_worth_the_integral_over_the_hidden_features(name):
    distribution = DISTRIBUTIONS[name]
    coalitions = all_coalitions(3)[1:-1]
    expected = [integral(distribution, curved, known) for known in coalitions]
    np.testing.assert_allclose(game_of(distribution, curved)(coalitions), expected, atol=0.005)


@pytest.mark.parametrize("name", ["gaussian", "mixture"])
def test_a_linear_model_needs_no_draws(name):
    distribution = DISTRIBUTIONS[name]
    coalitions = all_coalitions(3)[1:-1]
    expected = [integral(distribution, straight, known) for known in coalitions]
    np.testing.assert_allclose(
        game_of(distribution, straight, pairs=0)(coalitions), expected, atol=1e-9
    )


def test_the_conditional_mean_of_a_gaussian_is_a_regression():
    (m,) = DISTRIBUTIONS["gaussian"].means
    (C,) = DISTRIBUTIONS["gaussian"].covariances
    hidden = m[2] + C[2, :2] @ np.linalg.solve(C[:2, :2], LATENTS[:2] - m[:2])
    game = game_of(DISTRIBUTIONS["gaussian"], straight)
    expected = straight(np.array([[*LATENTS[:2], hidden]]))
    np.testing.assert_allclose(
        game(np.array([[True, True, False]])), expected, atol=1e-5
    )  # float32, but exact by pairs


@everywhere
def test_draws_agree_with_rows_that_happen_to_be_near(name):
    distribution = DISTRIBUTIONS[name]
    X = distribution.rows(400_000, np.random.default_rng(0))
    near = X[np.abs(distribution.latents(X[:, 1]) - LATENTS[1]) < 0.05]
    near[:, 1] = distribution.features(LATENTS[1])
    error = curved(near).std() / np.sqrt(len(near))
    assert len(near) > 5_000
    assert (
        abs(
            game_of(distribution, curved)(np.array([[False, True, False]]))[0] - curved(near).mean()
        )
        < 4 * error
    )


@everywhere
def test_nothing_known_is_the_mean(name):
    distribution = DISTRIBUTIONS[name]
    value = lambda z, known, draws: curved(DISTRIBUTIONS[name].features(draws.T))
    predictions = curved(distribution.rows(200_000, np.random.default_rng(0)))
    noise = distribution.noise(2**14, np.random.default_rng(0))
    of_none = mean(distribution, value, LATENTS, np.zeros(3, dtype=bool), noise)
    assert abs(of_none - predictions.mean()) < 4 * predictions.std() / np.sqrt(200_000)


@everywhere
def test_the_ends_are_given(name):
    game = game_of(DISTRIBUTIONS[name], curved, of_none=0.25)
    f_x = curved(DISTRIBUTIONS[name].features(LATENTS)[None])[0]
    assert game(empty_and_full(3)).tolist() == [0.25, f_x]


@everywhere
def test_latents_and_features_are_one_to_one(name):
    z = np.linspace(-8, 8, 33)
    np.testing.assert_allclose(
        DISTRIBUTIONS[name].latents(DISTRIBUTIONS[name].features(z)), z, atol=1e-8
    )


def test_a_component_out_of_reach_leaves_the_game_of_the_other_one():
    far = Distribution(np.array([0.5, 0.5]), np.array([[0, 0, 0], [900, 900, 900]]), COVARIANCES)
    near = Distribution(np.ones(1), np.zeros((1, 3)), COVARIANCES[:1])
    coalitions = all_coalitions(3)[1:-1]
    alone, both = (
        game_of(distribution, straight, pairs=0)(coalitions) for distribution in (near, far)
    )
    np.testing.assert_allclose(both, alone, atol=1e-9)


def test_scores_are_those_of_a_t_distribution_with_four_degrees_of_freedom():
    z = np.array([-1e3, -2.5, -0.1, 0, 0.3, 4.0])
    np.testing.assert_allclose(
        conditionals.scores(z), norm.ppf(student(4).cdf(z)), rtol=1e-9, atol=1e-12
    )


def test_each_coalition_is_evaluated_once():
    asked = []

    def value(z, known, draws):
        asked.append(tuple(known))
        return curved(draws.T)

    game = Truth(DISTRIBUTIONS["gaussian"], value, curved, 0.0, 0, 8)(LATENTS)
    orders = np.array([[0, 1, 2], [1, 0, 2], [0, 2, 1]])
    curves = game.along(orders)
    np.testing.assert_array_equal(curves, game(prefixes(orders).reshape(-1, 3)).reshape(3, 4))
    assert Counter(asked) == {(1, 0, 0): 1, (0, 1, 0): 1, (1, 1, 0): 1, (1, 0, 1): 1}


def test_the_errors_of_two_rows_have_nothing_in_common():
    truth = Truth(DISTRIBUTIONS["gaussian"], None, curved, 0.0, 0, 8)
    one, same, other = (truth(row).noise.normal for row in (LATENTS, LATENTS.copy(), -LATENTS))
    np.testing.assert_array_equal(one, same)
    assert np.abs(one - other).min() > 0


@pytest.mark.parametrize(
    "distribution", ["gaussian", "mixture", "normal copula", "lognormal copula"]
)
@pytest.mark.parametrize("kind", ["boosting", "boosted classifier"])
def test_trees_of_words_predict_as_the_model(distribution, kind):
    setting = Setting("", distribution, 8, 0.6, kind, "")
    rng = np.random.default_rng(0)
    features = truths.distribution_of(setting, rng)
    X = features.rows(600, rng)
    model = (
        truths.MODELS[kind](setting, 0).set_params(n_estimators=20).fit(X, target(X, setting, rng))
    )
    value = value_of(model, features, X)
    noise = features.noise(64, rng)
    assert isinstance(value, Trees)
    for size in range(9):
        z = features.latents(X[size])
        known = rng.permutation(8) < size
        draws = features.given(z, known, noise)[0]
        rows = np.where(known, X[size], features.features(draws.T.astype(np.float64)))
        expected = truths.predictions(model, truths.method_of(model), rows)
        np.testing.assert_allclose(value(z, known, draws), expected, atol=1e-9)


def test_the_halves_are_balanced():
    trees = [setting.model.startswith("boost") for setting in SETTINGS]
    families = [
        "copula" if "copula" in setting.distribution else setting.distribution
        for setting in SETTINGS
    ]
    halves = [setting.half for setting in SETTINGS]
    assert len({setting.name for setting in SETTINGS}) == 12
    assert Counter(zip(halves, trees, strict=True)) == dict.fromkeys(
        [("pick", True), ("pick", False), ("report", True), ("report", False)], 3
    )
    assert set(Counter(zip(halves, families, strict=True)).values()) == {2}
    assert Counter(map(real_half, REAL)) == {"pick": 6, "report": 6}


@pytest.mark.parametrize("number", [5, 6, 10])
def test_a_seed_determines_a_setting(number):
    setting = SETTINGS[number]
    case = make(setting, 3)
    again = make(setting, 3)
    assert case.background.shape == (4_000, setting.d)
    assert case.rows.shape == (100, setting.d)
    game = case.truth(case.rows[1])
    orders = np.arange(setting.d)[None]
    np.testing.assert_array_equal(game.along(orders), again.truth(again.rows[1]).along(orders))
    assert game(empty_and_full(setting.d))[1] == case.predict(case.rows[1:2])[0]
    predictions = case.predict(case.background)
    assert abs(
        game(empty_and_full(setting.d))[0] - predictions.mean()
    ) < 4 * predictions.std() / np.sqrt(4_000)


@pytest.mark.parametrize("kind", ["linear", "network"])
def test_a_table_of_the_paper_has_no_truth(kind):
    case = make_real("gaussian", kind, 0)
    assert case.background.shape == (4_000, 30)
    assert case.rows.shape == (100, 30)
    assert case.predict_name == "predict_proba"
    assert case.truth(case.rows[0]) is None
    assert ((case.predict(case.rows) > 0) & (case.predict(case.rows) < 1)).all()
