"""An explainer whose contributions come from one game, or from several in competition, and whose
judge is another."""

import numpy as np
import pytest
from lightgbm import LGBMClassifier, LGBMRegressor

import weightedshap as ws
from weightedshap.curves import area, order_of

D = 5
RNG = np.random.default_rng(0)
X = RNG.normal(size=(260, D)) + 0.5 * RNG.normal(size=(260, 1))
Y = X[:, 0] * X[:, 1] + X[:, 2]
MODEL = LGBMRegressor(n_estimators=20, num_leaves=7, n_jobs=1, verbose=-1).fit(X, Y)
JUDGE = ws.games.TreeSurrogate(masks=8, trees=30)
GAMES = ["tree_path", "tree_interventional"]
ROWS = X[200:220]


@pytest.fixture(scope="module")
def explainer():
    return ws.Explainer(MODEL, X[:200], game=GAMES, judge=JUDGE, progress=False)


@pytest.fixture(scope="module")
def explanation(explainer):
    return explainer(ROWS)


def explain_with(game):
    return ws.Explainer(MODEL, X[:200], game=game, judge=JUDGE, progress=False)(ROWS)


def test_pairs_compete_and_the_best_wins_each_row(explanation):
    both = [explain_with(game) for game in GAMES]
    assert explanation.family.labels == tuple(
        f"{g} · {w}" for g in GAMES for w in both[0].family.labels
    )
    np.testing.assert_allclose(
        explanation.scores, np.concatenate([one.scores for one in both], axis=1)
    )
    np.testing.assert_allclose(explanation.scores.max(axis=1), -area(explanation.curves))
    for row, (game, label) in enumerate(
        zip(explanation.game_labels, explanation.weight_labels, strict=True)
    ):
        won = both[GAMES.index(game)]
        assert label.startswith(f"{game} · ")
        assert (explanation.scores[row].max() - 1e-9 <= won.scores[row]).any()
        np.testing.assert_allclose(explanation.contributions[row], won.contributions[row])
        np.testing.assert_allclose(
            explanation.values[row], explanation.weights[row] @ won.contributions[row]
        )
        np.testing.assert_allclose(explanation.base_values[row], won.base_values[row])
        for end in ("empty", "full"):
            np.testing.assert_allclose(
                explanation.endpoint_gaps[end][row], won.endpoint_gaps[end][row], atol=1e-12
            )
    assert set(explanation.game_labels) == set(GAMES)


def test_shapley_and_reference_curves_belong_to_the_first_game(explanation):
    first = explain_with(GAMES[0])
    np.testing.assert_allclose(explanation.shapley, first.shapley)
    for name, curve in first.reference_curves.items():
        np.testing.assert_allclose(explanation.reference_curves[name], curve)


def test_curves_and_scores_are_the_judges(explainer, explanation):
    for row in range(3):
        game = explainer.judge.at(ROWS[row : row + 1])
        walked = game.along(explanation.orders[row][None])[0]
        np.testing.assert_allclose(
            explanation.curves[row], np.abs(explanation.judge_predictions[row] - walked)
        )
    assert explanation.judge_info["game"] == "tree_surrogate"
    assert set(explanation.game_info["games"]) == set(GAMES)


def test_one_weight_for_all_rows_is_one_pair(explainer):
    shared = explainer.but(select="shared")(ROWS)
    assert len(set(shared.weight_labels)) == len(set(shared.game_labels)) == 1
    best = shared.scores.mean(axis=0).argmax()
    assert shared.weight_labels[0] == shared.family.labels[best]


def test_reweighting_keeps_the_judge_and_all_games(explainer, explanation):
    wide = explanation.reweight("wide")
    afresh = explainer.but(family="wide")(ROWS)
    assert wide.family.labels == afresh.family.labels
    for name in ("values", "scores", "curves", "contributions", "base_values", "shapley"):
        np.testing.assert_allclose(getattr(wide, name), getattr(afresh, name), atol=1e-12)
    np.testing.assert_array_equal(wide.game_labels, afresh.game_labels)
    again = wide.reweight("paper")
    np.testing.assert_array_equal(again.weight_labels, explanation.weight_labels)
    assert wide.reweight().family.labels == wide.family.labels


def test_slices_and_joined_parts_can_be_reweighted(explanation):
    wide = explanation.reweight("wide")
    assert explanation[3:9].reweight("wide").equals(wide[3:9])
    joined = ws.Explanation.concatenate([explanation[:7], explanation[7:]])
    assert joined.equals(explanation)
    assert joined.reweight("wide").equals(wide)


def test_both_games_are_saved_and_loaded(tmp_path, explainer, explanation):
    explanation.save(tmp_path / "explained.npz")
    assert ws.Explanation.load(tmp_path / "explained.npz").equals(explanation)
    explainer.save(tmp_path / "explainer")
    loaded = ws.Explainer.load(tmp_path / "explainer", MODEL)
    assert loaded(ROWS).equals(explanation)
    assert len(loaded.games) == 2
    other = ws.Explainer.load(tmp_path / "explainer", MODEL, judge="tree_interventional")
    assert other(ROWS).judge_info["game"] == "tree_interventional"


def test_workers_and_blocks_change_nothing(explainer, explanation):
    assert explainer.but(n_jobs=2)(ROWS).equals(explanation)
    parts = [explainer(ROWS[:3]), explainer(ROWS[3:])]
    assert ws.Explanation.concatenate(parts).equals(explanation)


def test_the_print_names_both_games_and_their_scales():
    model = LGBMClassifier(n_estimators=10, n_jobs=1, verbose=-1).fit(X, Y > 0)
    explanation = ws.Explainer(model, X[:200], progress=False)(ROWS)
    assert "explained: tree_path (log-odds)" in repr(explanation)
    assert "judged by: anchored (probability)" in repr(explanation)
    np.testing.assert_allclose(explanation.judge_predictions, model.predict_proba(ROWS)[:, 1])
    np.testing.assert_allclose(explanation.predictions, model.predict(ROWS, raw_score=True))
    assert explanation.curves[:, -1].max() < 1e-12


def test_a_sampled_game_has_errors_where_an_exact_one_has_none():
    wide = np.random.default_rng(1).normal(size=(120, 14))
    model = LGBMRegressor(n_estimators=10, n_jobs=1, verbose=-1).fit(wide, wide[:, 0] * wide[:, 1])
    games = [ws.games.Marginal(), "tree_interventional"]
    options = {"judge": JUDGE, "estimator": "permutation", "evaluations": 600, "progress": False}
    sampled = ws.Explainer(model, wide[:40], game=games, **options)(wide[100:104])
    assert sampled.shapley_errors.shape == (4, 14)
    assert (sampled.shapley_errors > 0).any()
    assert sampled.replicates.shape == (4, 10, 14, 14)
    assert sampled.reweight("wide").standard_errors.shape == (4, 14)


@pytest.mark.parametrize("classes", [2, 3])
def test_several_classes_are_judged_each_by_its_probability(classes):
    labels = np.digitize(Y, np.quantile(Y, np.arange(1, classes) / classes))
    model = LGBMClassifier(n_estimators=8, n_jobs=1, verbose=-1).fit(X, labels)
    explanation = ws.Explainer(model, X[:200], outputs=list(range(classes)), progress=False)(ROWS)
    assert explanation.values.shape == (20, D, classes)
    np.testing.assert_allclose(explanation.judge_predictions, model.predict_proba(ROWS), atol=1e-6)
    assert explanation.judge_info["space"] == "probability"
    assert explanation[..., 1].shortlist(0).row == 0


@pytest.mark.filterwarnings("ignore")
def test_the_default_gives_shap_s_own_tree_shap_and_nothing_to_unused_features():
    import shap

    used = np.column_stack([X, np.random.default_rng(2).normal(size=len(X))])
    wide = LGBMRegressor(n_estimators=30, n_jobs=1, verbose=-1)
    wide.fit(np.column_stack([X, np.zeros(len(X))]), Y)  # a column that no split can use
    explanation = ws.Explainer(wide, used[:200], progress=False)(used[200:220])
    expected = shap.TreeExplainer(wide, feature_perturbation="tree_path_dependent").shap_values(
        used[200:220]
    )
    np.testing.assert_allclose(explanation.shapley, expected, atol=1e-6)
    assert (explanation.values[:, -1] == 0).all()


def test_refined_orders_are_never_worse_on_the_judge(explainer, explanation):
    refined = explanation.refined_orders()
    np.testing.assert_array_equal(np.sort(refined, axis=1), np.tile(np.arange(D), (20, 1)))
    better = []
    for row, order in enumerate(refined):
        walked = explainer.judge.at(ROWS[row : row + 1]).along(
            np.stack([order, explanation.orders[row]])
        )
        better.append(area(np.abs(explanation.judge_predictions[row] - walked)) @ [-1, 1])
    assert min(better) > -1e-12
    assert max(better) > 0
    with pytest.raises(ValueError, match="Refine before that"):
        explanation[:, [0, 1]].refined_orders()


def test_one_word_gives_the_recipe_of_the_paper():
    pytest.importorskip("torch")
    config = ws.Explainer.paper(MODEL, X[:60], progress=False).config
    assert config.game == ws.games.NeuralSurrogate.paper()
    assert (config.judge, config.family, config.estimator) == (
        "game",
        "paper",
        ws.estimators.authors,
    )
    assert (
        ws.Explainer.paper(MODEL, X[:60], game=JUDGE, progress=False).judge.info["game"]
        == "tree_surrogate"
    )


def test_a_utility_with_a_game_of_its_own_scores_there_and_curves_stay_the_judges(explainer):
    explanation = explainer.but(utility="masked_inclusion")(ROWS)
    baseline = ws.games.Baseline().fit(MODEL, X[:200])
    walked = ws.curves.along(baseline.at(ROWS[:1]), explanation.orders[:1])
    assert explanation.scores[0].max() == pytest.approx(
        -area(np.abs(MODEL.predict(ROWS[:1]) - walked[0]))
    )
    game = explainer.judge.at(ROWS[:1])
    curve = np.abs(explanation.judge_predictions[0] - game.along(explanation.orders[:1])[0])
    np.testing.assert_allclose(explanation.curves[0], curve)


def test_orders_follow_the_chosen_values(explanation):
    np.testing.assert_array_equal(explanation.orders, order_of(explanation.values, axis=1))
