"""`evaluate`: every ranking on the game that made it and on an independent one."""

import re
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import sklearn
from lightgbm import LGBMClassifier, LGBMRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import roc_auc_score

import weightedshap as ws
from weightedshap._checks import UnknownNameError
from weightedshap.curves import area
from weightedshap.evaluation import Evaluation, halves
from weightedshap.evaluation.halves import HalfBackground
from weightedshap.evaluation.rankings import METHODS
from weightedshap.evaluation.summary import verdict
from weightedshap.inputs.rows import Rows
from weightedshap.parallel import progress_bar

D = 5
RNG = np.random.default_rng(0)
X = RNG.normal(size=(260, D)) + RNG.normal(size=(260, 1))
Y = X[:, 0] * X[:, 1] + X[:, 2]
BACKGROUND = X[:200]
ROWS = X[200:220]
ANSWERS = Y[200:220]


def model(rows):
    return rows[:, 0] * rows[:, 1] + rows[:, 2]


@pytest.fixture(scope="module")
def explainer():
    return ws.Explainer(model, BACKGROUND, game=ws.games.TreeSurrogate(masks=4), progress=False)


@pytest.fixture(scope="module")
def evaluation(explainer):
    return ws.evaluate(explainer, ROWS, ANSWERS, judges="independent")


@pytest.fixture(scope="module")
def own(explainer):
    return ws.evaluate(explainer, ROWS, ANSWERS, against="own")


def column(evaluation, method):
    return evaluation.methods.index(method)


def test_all_methods_that_apply_are_compared(evaluation):
    assert evaluation.methods == tuple(
        method for method in METHODS if not method.startswith("TreeSHAP")
    )
    assert evaluation.metrics == ("recovery", "inclusion_mse", "exclusion", "masked_inclusion")
    assert evaluation.judges == ("independent", "own")
    assert "TreeSHAP is left out" in evaluation.notes[0]


def test_on_the_game_that_chose_weighted_shap_is_never_worse_than_shapley(evaluation):
    areas = evaluation.areas("own")
    assert (
        areas[:, column(evaluation, "WeightedSHAP")]
        <= areas[:, column(evaluation, "Shapley")] + 1e-12
    ).all()


def test_on_the_game_that_chose_nothing_beats_the_optimum(evaluation):
    areas = evaluation.areas("own")
    assert (areas[:, [column(evaluation, "optimum")]] <= areas + 1e-12).all()


def test_the_judge_of_the_explainer_gives_the_curves_of_the_explanation(explainer, own):
    explanation = explainer(ROWS)
    np.testing.assert_allclose(own.curves("own")["WeightedSHAP"], explanation.curves)
    for method, name in (("Shapley", "shapley"), ("first", "first"), ("last", "last")):
        np.testing.assert_allclose(own.curves("own")[method], explanation.reference_curves[name])


def test_a_shared_weight_is_the_one_that_select_shared_takes(explainer, own):
    for method, select in (
        ("WeightedSHAP shared", "shared"),
        ("WeightedSHAP one-SE", "one_standard_error"),
    ):
        chosen = explainer.but(select=select)(ROWS)
        np.testing.assert_allclose(own.curves("own")[method], chosen.curves)


def test_the_independent_judge_is_the_game_of_the_other_half(explainer, evaluation):
    one, other = halves(explainer.background, np.random.default_rng([0, 1]))
    first, second = (
        ws.Explainer._from_fitted(*explainer.setup.refit(half)) for half in (one, other)
    )
    expected = []
    for side, judge in ((first, second), (second, first)):
        orders = side(ROWS).orders
        games = [judge.game.at(row[None]) for row in ROWS]
        curves = [
            np.abs(model(r[None]) - g.along(o[None]))[0]
            for r, g, o in zip(ROWS, games, orders, strict=True)
        ]
        expected.append(curves)
    np.testing.assert_allclose(
        evaluation.curves("independent")["WeightedSHAP"], np.mean(expected, axis=0)
    )


def test_with_all_features_the_error_is_that_of_the_game(explainer, own):
    games = [explainer.game.at(row[None]) for row in ROWS]
    full = np.array([game(np.ones((1, D), dtype=bool))[0] for game in games])
    curve = own.curves("own", "inclusion_mse")["Shapley"][:, -1]
    np.testing.assert_allclose(curve, (full - ANSWERS) ** 2)


def test_masked_inclusion_ends_at_the_prediction(own):
    np.testing.assert_allclose(
        own.curves("own", "masked_inclusion")["Shapley"][:, -1], 0, atol=1e-12
    )


def test_intervals_are_those_of_the_rows(own):
    areas = own.areas("own")
    spread = areas.std(axis=0, ddof=1) / np.sqrt(len(ROWS))
    np.testing.assert_allclose(own.mean("own")[:, 0], areas.mean(axis=0))
    np.testing.assert_allclose(own.margin("own")[:, 0], 2.093024 * spread, rtol=1e-6)
    np.testing.assert_allclose(areas, area(np.stack(list(own.curves("own").values()), axis=1)))


def test_the_difference_is_paired(own):
    areas = own.areas("own")
    pairs = areas[:, column(own, "WeightedSHAP")] - areas[:, column(own, "Shapley")]
    mean, margin = own.difference()
    assert mean == pytest.approx(pairs.mean())
    assert margin == pytest.approx(2.093024 * pairs.std(ddof=1) / np.sqrt(len(ROWS)), rel=1e-6)


def test_the_print_leads_with_a_verdict_and_a_small_table(evaluation):
    first, _, head, titles, *lines = repr(evaluation).splitlines()
    assert first.startswith(
        "On games that did not choose it, WeightedSHAP recovers predictions with "
    )
    assert (
        head
        == "recovery error in % of Shapley's, smaller is better; ± half of the 95 % interval over"
        " 20 rows"
    )
    assert titles.split() == ["independent", "own"]
    methods = evaluation.methods
    assert [line.split("  ")[0].strip() for line in lines[: len(methods)]] == list(methods)
    assert len({len(line) for line in lines[: len(methods)]}) == 1
    attributions = [m for m in methods if m not in ("refined", "greedy", "optimum")]
    for judge in evaluation.judges:
        means = dict(zip(methods, evaluation.areas(judge).mean(axis=0), strict=True))
        best = min(attributions, key=means.get)
        at = titles.index(judge) + len(judge)
        assert lines[methods.index(best)][at - 1] == "*" or means[best] == pytest.approx(
            means["WeightedSHAP"]
        )
    assert "exclusion in % of Shapley's, larger is better" in evaluation.summary("exclusion")
    with pytest.raises(
        UnknownNameError, match=r"Unknown metric 'recvery'\. Did you mean 'recovery'"
    ):
        evaluation.summary("recvery")


def make_evaluation(
    areas, judges=("anchored",), methods=("WeightedSHAP", "Shapley", "TreeSHAP path")
):
    """An evaluation of one feature whose areas (n, methods) are given."""
    points = np.stack([np.zeros_like(areas), areas], axis=-1)
    return Evaluation(
        methods, ("recovery",), judges, {judge: {"recovery": points} for judge in judges}
    )


def test_the_verdict_names_the_difference_the_other_method_and_what_is_noise():
    rng = np.random.default_rng(0)
    base = rng.uniform(1, 3, size=400)
    areas = np.stack([0.9 * base + rng.normal(0, 0.2, 400), base, 0.95 * base], axis=1)
    evaluation = make_evaluation(areas)
    ratio = areas[:, 0].sum() / base.sum()
    again = [
        areas[pick, 0].sum() / base[pick].sum() for pick in rng.integers(400, size=(4000, 400))
    ]
    found = re.fullmatch(
        r"On games that did not choose it, WeightedSHAP recovers predictions with ([\d.]+) % less"
        r" error than Shapley "
        r"\(95 % interval ([\d.]+) to ([\d.]+)\) and [\d.]+ % less error than TreeSHAP path "
        r"\(95 % interval [\d.]+ to [\d.]+\); "
        r"differences below (\d+) % are noise here.",
        verdict(evaluation),
    )
    change, low, high, noise = map(float, found.groups())
    assert change == pytest.approx(100 * (1 - ratio), abs=0.06)
    np.testing.assert_allclose(
        [low, high], 100 - 100 * np.quantile(again, [0.975, 0.025]), atol=0.25
    )  # bootstrap
    assert noise == round((high - low) / 2)
    assert "which flatters it" in verdict(make_evaluation(areas, ("own",)))
    assert "% more error than Shapley" in verdict(make_evaluation(areas[:, [1, 0, 2]]))
    unclear = verdict(
        make_evaluation(np.stack([base + rng.normal(0, 0.5, 400), base, base], axis=1))
    )
    assert "so they cannot be told apart" in unclear
    assert "TreeSHAP" not in unclear  # which is Shapley here
    assert verdict(make_evaluation(np.zeros((3, 3)))).endswith("there is nothing to compare.")


def test_the_print_of_a_difference_has_its_interval():
    evaluation = make_evaluation(np.array([[1.0, 2.0, 2.0], [2.0, 3.0, 3.0], [1.5, 2.0, 2.0]]))
    where = "in recovery, judged by 'anchored' games of rows that chose nothing"
    assert (
        repr(evaluation.difference())
        == f"WeightedSHAP − Shapley: −0.83 ± 0.72 (35.7 % smaller, better) {where}"
    )
    worse = evaluation.difference("Shapley", "WeightedSHAP")
    assert str(worse) == f"Shapley − WeightedSHAP: 0.83 ± 0.72 (55.6 % larger, worse) {where}"
    assert worse == pytest.approx((0.83333, 0.71703), abs=1e-4)
    assert "the same" in str(evaluation.difference("Shapley", "TreeSHAP path"))
    near = make_evaluation(np.array([[1.0, 1.5, 2.0], [2.0, 1.8, 2.0], [1.5, 1.7, 2.0]]))
    assert "−0.17 ± 0.87 (10.0 % smaller, better, within noise)" in repr(near.difference())


def test_a_search_is_never_marked_as_the_best_attribution():
    areas = np.array([[1.0, 2.0, 3.0], [1.5, 2.5, 3.0]])
    *_, greedy, shapley, first, _ = (
        make_evaluation(areas, methods=("greedy", "Shapley", "WeightedSHAP")).summary().splitlines()
    )
    assert (greedy.count("*"), shapley.count("*"), first.count("*")) == (0, 1, 0)
    assert "*" not in make_evaluation(areas, methods=("greedy", "refined", "optimum")).summary()


def test_the_frame_has_a_line_for_each_judge_method_and_metric(evaluation):
    frame = evaluation.to_frame()
    assert len(frame) == 2 * len(evaluation.methods) * 4
    assert (frame["low"] <= frame["mean"]).all()
    assert (frame["mean"] <= frame["high"]).all()


def test_the_frame_is_of_polars_on_request(evaluation):
    pl = pytest.importorskip("polars")
    with sklearn.config_context(transform_output="polars"):
        asked = evaluation.to_frame()
    assert asked.equals(pl.from_pandas(evaluation.to_frame()))
    assert asked.equals(evaluation.to_frame("polars"))


def test_the_same_call_gives_the_same_numbers(explainer, evaluation):
    again = ws.evaluate(explainer, ROWS, ANSWERS, judges="independent")
    for judge in evaluation.judges:
        for metric in evaluation.metrics:
            np.testing.assert_array_equal(
                again.areas(judge, metric), evaluation.areas(judge, metric)
            )


def test_methods_can_be_picked(explainer):
    found = ws.evaluate(explainer, ROWS[:3], methods=["Shapley", "greedy"], against="own")
    assert found.methods == ("Shapley", "greedy")
    assert "inclusion_mse" not in found.metrics


def test_costly_metrics_can_be_left_out(explainer, own):
    found = ws.evaluate(explainer, ROWS, ANSWERS, methods=["Shapley"], metrics=[], against="own")
    assert found.metrics == ("recovery", "inclusion_mse")
    np.testing.assert_array_equal(
        found.areas("own")[:, 0], own.areas("own")[:, column(own, "Shapley")]
    )


def test_performance_of_exclusion_and_masking_ends_where_all_is_known(explainer):
    costly = ["exclusion", "masked_inclusion", "performance"]
    found = ws.evaluate(
        explainer, ROWS, ANSWERS, methods=["Shapley"], metrics=costly, against="own"
    )
    assert found.metrics[2:] == ("exclusion", "exclusion_mse", "masked_inclusion", "masked_mse")
    curves = {metric: found.curves("own", metric)["Shapley"] for metric in found.metrics}
    np.testing.assert_allclose(curves["exclusion_mse"][:, 0], curves["inclusion_mse"][:, -1])
    np.testing.assert_allclose(curves["exclusion_mse"][:, -1], curves["inclusion_mse"][:, 0])
    np.testing.assert_allclose(
        curves["masked_mse"][:, -1], (model(ROWS) - ANSWERS) ** 2, atol=1e-12
    )


def test_the_wide_family_never_does_worse_where_it_chose(own):
    areas = own.areas("own")
    assert (
        areas[:, column(own, "WeightedSHAP wide")] <= areas[:, column(own, "Shapley")] + 1e-12
    ).all()


@pytest.mark.parametrize("as_frame", [False, True])
def test_a_tree_classifier_with_named_classes(as_frame):
    labels = np.where(Y > 0, "yes", "no")
    table = pd.DataFrame(X, columns=list("abcde")) if as_frame else X
    trained = LGBMClassifier(n_estimators=10, n_jobs=1, verbose=-1).fit(table[:200], labels[:200])
    explainer = ws.Explainer(trained, table[:200], game="tree_path", progress=False)
    found = ws.evaluate(
        explainer,
        table[200:240],
        labels[200:240],
        methods=["Shapley", "TreeSHAP path"],
        against="own",
    )
    np.testing.assert_allclose(found.areas("own")[:, 0], found.areas("own")[:, 1])
    margin = trained.predict(table[200:240], raw_score=True)
    expected = roc_auc_score(labels[200:240] == "yes", margin)
    assert found.curves("own", "inclusion_auc")["Shapley"][:, -1].mean() == pytest.approx(expected)


def test_several_outputs_are_averaged():
    classes = np.digitize(Y, np.quantile(Y, [0.33, 0.66]))
    trained = LogisticRegression().fit(X[:200], classes[:200])
    explainer = ws.Explainer(trained, X[:30], game="marginal", progress=False)
    found = ws.evaluate(
        explainer,
        X[200:215],
        classes[200:215],
        methods=["WeightedSHAP", "Shapley", "MCI", "greedy"],
    )
    explanation = explainer(X[200:215])
    assert explanation.values.shape == (15, D, 3)
    alone = ws.evaluate(explainer, X[200:215], against="own", methods=["Shapley"])
    np.testing.assert_allclose(
        alone.areas("own")[:, 0], area(explanation.reference_curves["shapley"].mean(axis=-1))
    )
    assert found.points["anchored"]["inclusion_auc"].shape == (15, 4, D + 1)


def test_a_game_given_as_a_function_is_judged_on_itself_only():
    linear = LinearRegression().fit(BACKGROUND, Y[:200])
    recipe = ws.games.Baseline().fit(linear, BACKGROUND)
    explainer = ws.Explainer(None, BACKGROUND, game=lambda row: recipe.at(row), progress=False)
    with pytest.raises(ValueError, match="cannot be fitted on other rows"):
        ws.evaluate(explainer, ROWS[:4])
    found = ws.evaluate(explainer, ROWS[:4], against="own", methods=["Shapley", "MCI global"])
    assert found.metrics == ("recovery", "exclusion")


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"y": ANSWERS[:-1]}, "one label for each of the 20 rows; got 19"),
        ({"y": np.full(20, np.nan)}, "1 finite numbers"),
        ({"against": "others"}, "Unknown judge 'others'"),
        ({"methods": ["Shaply"]}, "Did you mean 'Shapley'"),
        ({"methods": "Shapley"}, "a list of names"),
        ({"walks": 0}, "walks"),
        ({"metrics": ["recovry"]}, "Unknown metric 'recovry'"),
    ],
)
def test_bad_arguments_are_named(explainer, change, sentence):
    with pytest.raises(ValueError, match=sentence):
        ws.evaluate(explainer, ROWS, **change)


def test_labels_of_one_class_cannot_be_compared():
    trained = LogisticRegression().fit(X[:200], Y[:200] > 0)
    explainer = ws.Explainer(trained, X[:20], game="marginal", progress=False)
    with pytest.raises(ValueError, match="rows of every class explained and of others"):
        ws.evaluate(explainer, ROWS, np.ones(20, dtype=bool), against="own")


def test_the_optimum_is_refused_above_15_features():
    wide = np.random.default_rng(0).normal(size=(30, 16))
    explainer = ws.Explainer(
        lambda rows: rows.sum(axis=1), wide, game="baseline", evaluations=2_000, progress=False
    )
    with pytest.raises(ValueError, match="at most 15 features; there are 16"):
        ws.evaluate(explainer, wide[:2], methods=["optimum"])


def test_an_evaluation_survives_a_file(evaluation, tmp_path):
    evaluation.save(tmp_path / "evaluation.npz")
    loaded = ws.Evaluation.load(tmp_path / "evaluation.npz")
    assert repr(loaded) == repr(evaluation)
    np.testing.assert_array_equal(loaded.areas("independent"), evaluation.areas("independent"))


@pytest.mark.parametrize(
    "change", [{"methods": ("one",)}, {"points": {}}, {"judges": ("own", "no")}, {"notes": (3,)}]
)
def test_a_file_whose_parts_do_not_fit_is_refused(evaluation, tmp_path, change):
    replace(evaluation, **change).save(tmp_path / "evaluation.npz")
    with pytest.raises(ValueError, match="cannot be loaded"):
        ws.Evaluation.load(tmp_path / "evaluation.npz")


def test_by_default_judges_are_right_when_everything_is_known(explainer):
    found = ws.evaluate(
        explainer, ROWS[:6], ANSWERS[:6], methods=["WeightedSHAP", "Shapley"], metrics=[]
    )
    assert found.judges == ("anchored", "own")
    np.testing.assert_allclose(found.curves("anchored")["Shapley"][:, -1], 0, atol=1e-9)
    assert found.misfit("anchored") == pytest.approx(0, abs=1e-9)
    assert found.misfit("own") > 0.05
    assert re.search(r"the judge itself makes: anchored 0 %, own \d+ %\n", repr(found))


def test_several_kinds_of_judges_and_the_truth_are_compared_in_one_call(explainer):
    truth = ws.games.Marginal().fit(model, BACKGROUND)
    asked = {"methods": ["WeightedSHAP", "Shapley"], "metrics": []}
    judges = {
        "anchored": "anchored",
        "network": "network",
        "surrogate": "surrogate",
        "truth": truth.at,
    }
    found = ws.evaluate(explainer, ROWS[:4], judges=judges, **asked)
    assert found.judges == ("anchored", "network", "surrogate", "truth", "own")
    one, other = halves(explainer.background, np.random.default_rng([0, 1]))
    orders = [
        ws.Explainer._from_fitted(*explainer.setup.refit(half))(ROWS[:1]).orders[0]
        for half in (one, other)
    ]
    walked = ws.curves.along(truth.at(ROWS[0]), np.stack(orders))
    expected = np.abs(model(ROWS[:1]) - walked).mean(axis=0)
    np.testing.assert_allclose(found.curves("truth")["WeightedSHAP"][0], expected)
    for kind in ("network", "truth"):
        assert found.misfit(kind) < 1e-6
    assert "the given judge 'truth'" in str(found.difference(judge="truth"))


def test_several_explainers_are_compared_in_one_call(explainer):
    marginal = ws.Explainer(model, BACKGROUND, game="marginal", progress=False)
    asked = {
        "methods": ["WeightedSHAP", "Shapley"],
        "metrics": [],
        "judges": ["surrogate", "anchored"],
    }
    both = ws.evaluate({"trees": explainer, "marginal": marginal}, ROWS[:4], **asked)
    assert both.methods == ("trees", "marginal", "Shapley")
    assert both.judges == ("surrogate", "anchored")
    alone = ws.evaluate(explainer, ROWS[:4], **asked)
    for judge in both.judges:
        np.testing.assert_allclose(both.curves(judge)["trees"], alone.curves(judge)["WeightedSHAP"])
        np.testing.assert_allclose(both.curves(judge)["Shapley"], alone.curves(judge)["Shapley"])
    mean, _ = both.difference("trees", "marginal")
    assert np.isfinite(mean)


def test_explainers_of_different_backgrounds_are_not_compared(explainer):
    other = ws.Explainer(model, BACKGROUND[:100], game="marginal", progress=False)
    with pytest.raises(ValueError, match="'other' has another background"):
        ws.evaluate({"one": explainer, "other": other}, ROWS)
    with pytest.raises(ValueError, match="no explainer"):
        ws.evaluate({}, ROWS)


def test_an_unknown_kind_of_judge_is_refused(explainer):
    with pytest.raises(ValueError, match="Did you mean 'anchored'"):
        ws.evaluate(explainer, ROWS, judges="ancored", methods=["Shapley"], metrics=[])


def test_the_refined_ranking_is_better_than_the_one_it_starts_from(own):
    areas = own.areas("own")
    assert (areas[:, column(own, "refined")] <= areas[:, column(own, "WeightedSHAP")] + 1e-12).all()


def tree_explainer():
    trained = LGBMRegressor(n_estimators=10, n_jobs=1, verbose=-1).fit(X[:200], Y[:200])
    return ws.Explainer(trained, X[:100], progress=True)


def test_trees_that_the_explainer_has_read_are_not_read_again(monkeypatch):
    explainer = tree_explainer()
    expected = ws.evaluate(explainer.setup, X[200:206])
    monkeypatch.setattr(
        "weightedshap.games.tree_model._read_explained_outputs",
        lambda *given: pytest.fail("read again"),
    )
    found = ws.evaluate(explainer, X[200:206])
    np.testing.assert_allclose(
        found.points["anchored"]["recovery"], expected.points["anchored"]["recovery"], atol=1e-9
    )


def test_interventional_treeshap_draws_fewer_rows_for_large_forests(monkeypatch):
    monkeypatch.setattr("weightedshap.evaluation.rankings.TREESHAP_CELLS", 1)
    evaluation = ws.evaluate(
        tree_explainer(), X[200:203], methods=["Shapley", "TreeSHAP interventional"]
    )
    assert evaluation.notes == (
        "TreeSHAP interventional looks at 20 background rows drawn at random.",
    )


def test_all_of_an_evaluation_is_one_bar_that_comes_to_its_end(monkeypatch):
    explainer = tree_explainer()
    shown = []
    ends = []

    class Bar:
        """A bar that nobody sees."""

        def __init__(self, total):
            self.total, self.n = total, 0

        def __enter__(self):
            return self

        def __exit__(self, *error):
            ends.append((self.n, self.total))

        def update(self, n=1):
            self.n += n

    def noted(total, description, progress, unit="row"):
        shown.append((description, progress))
        return Bar(total) if progress else progress_bar(total, description, False, unit)

    monkeypatch.setattr(sys.modules["weightedshap.evaluation.evaluate"], "progress_bar", noted)
    monkeypatch.setattr("weightedshap.parallel.progress_bar", noted)
    ws.evaluate(explainer, X[200:204])
    assert [description for description, progress in shown if progress] == ["evaluating"]
    ((n, total),) = ends
    assert n == total


def test_shared_weights_are_those_that_reweighing_finds():
    setup = tree_explainer().setup
    walks = np.zeros((1, setup.background.d), dtype=np.intp)
    rows = Rows(setup.background.align(X[200:206]))
    half = HalfBackground.build(setup, setup.fit(), rows, walks, setup.background)
    for how, name in (
        ("shared", "WeightedSHAP shared"),
        ("one_standard_error", "WeightedSHAP one-SE"),
    ):
        expected = half.explanation.reweight(None, "aup", how).orders
        assert METHODS[name](half)[..., 0].tolist() == expected.tolist()


def test_the_global_mci_is_the_largest_fall_of_the_error():
    """Of 2ab + c at a baseline of zero: a and b say nothing alone, and most together."""
    rows = np.random.default_rng(0).normal(size=(40, 3))
    game = ws.games.Baseline(values=np.zeros(3))
    explainer = ws.Explainer(
        lambda X: 2 * X[:, 0] * X[:, 1] + X[:, 2], rows, game=game, progress=False
    )
    found = ws.evaluate(explainer, rows[:20], against="own", methods=["MCI global"])
    f = (2 * rows[:, 0] * rows[:, 1] + rows[:, 2])[:20]
    c = rows[:20, 2]
    expected = np.abs(np.stack([f, f, c, 0 * f], axis=1))
    np.testing.assert_allclose(found.curves("own")["MCI global"], expected, atol=1e-12)


def test_the_global_mci_does_not_depend_on_the_methods_before_it():
    """A model that is asked block by block has been asked by none of them yet."""
    trained = LGBMRegressor(n_estimators=10, n_jobs=1, verbose=-1).fit(X[:200], Y[:200])
    explainer = ws.Explainer(trained, X[:100], game="tree_surrogate", progress=False)
    orders = (["MCI global", "WeightedSHAP"], ["WeightedSHAP", "MCI global"])
    first, last = (ws.evaluate(explainer, ROWS, methods=names, metrics=[]) for names in orders)
    np.testing.assert_array_equal(
        first.curves("own")["MCI global"], last.curves("own")["MCI global"]
    )
