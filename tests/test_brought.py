"""What people bring: shap's backgrounds, sparse matrices, dicts, classes, rankers, many labels,
numbers of any size."""

import numpy as np
import pandas as pd
import pytest
from lightgbm import LGBMRanker, LGBMRegressor
from scipy import sparse
from sklearn.linear_model import LinearRegression

import weightedshap as ws
from weightedshap.games import DistilledTrees, TreeSurrogate

RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(
    RNG.normal(size=(300, 4)), columns=list("abcd"), index=[f"row {r}" for r in range(300)]
)
TARGET = FRAME["a"] * FRAME["b"] + FRAME["c"]
MODEL = LGBMRegressor(n_estimators=15, n_jobs=1, verbose=-1).fit(FRAME, TARGET)
ARRAY = FRAME.to_numpy()
ON_ARRAY = LinearRegression().fit(ARRAY, TARGET)


def explained(model, background, rows=FRAME[:3], **choices):
    return ws.Explainer(model, background, progress=False, **{"game": "marginal", **choices})(rows)


@pytest.fixture(scope="module")
def shap():
    return pytest.importorskip("shap")


def test_samples_and_maskers_of_shap_are_backgrounds(shap):
    expected = explained(MODEL, FRAME[:90])
    for masker in (shap.maskers.Independent(FRAME[:90]), shap.maskers.Partition(FRAME[:90])):
        found = explained(MODEL, masker)
        assert found.feature_names == tuple("abcd")
        np.testing.assert_allclose(found.values, expected.values)
    assert explained(MODEL, shap.sample(FRAME, 20)).game_info["background_rows"] == 20
    np.testing.assert_array_equal(
        explained(ON_ARRAY, ARRAY, shap.maskers.Independent(ARRAY[:5])).data, ARRAY[:5]
    )


@pytest.mark.parametrize(
    ("model", "table"), [(MODEL, FRAME), (ON_ARRAY, ARRAY)], ids=["frame", "array"]
)
def test_centres_of_kmeans_keep_their_weights(shap, model, table):
    centres = shap.kmeans(table, 7)
    explainer = ws.Explainer(model, centres, game="marginal")
    np.testing.assert_allclose(
        explainer.background.weights, centres.weights / centres.weights.sum()
    )
    assert len(set(explainer.background.weights)) > 1
    rows = pd.DataFrame(centres.data, columns=FRAME.columns) if model is MODEL else centres.data
    values = explainer(table[:3]).base_values
    np.testing.assert_allclose(
        values, (centres.weights / centres.weights.sum()) @ model.predict(rows)
    )
    given = ws.Explainer(model, centres, game="marginal", background_weights=np.ones(7))
    assert len(set(given.background.weights)) == 1


def test_a_masker_without_a_table_is_told_what_to_do(shap):
    with pytest.raises(
        TypeError, match=r"Text of shap holds no table. Pass the background rows .*from_shap"
    ):
        ws.Explainer(MODEL, shap.maskers.Text())


def test_sparse_matrices_are_refused_with_what_to_pass():
    with pytest.raises(TypeError, match=r"Pass `\.toarray\(\)` of it; for XGBoost"):
        ws.Explainer(ON_ARRAY, sparse.csr_matrix(ARRAY))
    with pytest.raises(TypeError, match=r"Pass `\.toarray\(\)` of it"):
        explained(ON_ARRAY, ARRAY, sparse.csr_array(ARRAY[:3]))


def test_dicts_are_rows():
    records = FRAME.to_dict("records")
    expected = explained(MODEL, FRAME)
    for found in (explained(MODEL, FRAME, records[:3]), explained(MODEL, records)):
        np.testing.assert_allclose(found.values, expected.values)
    with pytest.raises(ValueError, match=r"Some rows lack 'd'\. Give every row the same names"):
        explained(MODEL, FRAME, [records[0], {"a": 1.0, "b": 1.0, "c": 1.0}])


@pytest.mark.parametrize("kind", [LGBMRegressor, LinearRegression])
def test_a_class_is_no_model(kind):
    with pytest.raises(TypeError, match=rf"{kind.__name__} is a class. Pass a fitted model of it"):
        ws.Explainer(kind, FRAME)


def test_rankers_are_explained_by_their_scores():
    labels = (TARGET > 0).astype(int)
    queries = np.full(30, 10)
    ranker = LGBMRanker(n_estimators=8, min_child_samples=5, n_jobs=1, verbose=-1).fit(
        FRAME, labels, group=queries
    )
    explanation = explained(ranker, FRAME, FRAME[:20], game="auto")
    assert explanation.game_info["game"] == "tree_path"
    np.testing.assert_allclose(explanation.predictions, ranker.predict(FRAME[:20]))
    np.testing.assert_allclose(
        explanation.shapley.sum(axis=1), explanation.predictions - explanation.base_values
    )


def test_every_label_of_an_xgboost_classifier_is_an_output():
    xgboost = pytest.importorskip("xgboost")
    labels = np.stack([TARGET > 0, FRAME["a"] > 0, FRAME["b"] > 0], axis=1).astype(int)
    model = xgboost.XGBClassifier(n_estimators=5, n_jobs=1).fit(FRAME, labels)
    explanation = explained(model, FRAME, game="auto")
    margins = model.predict(FRAME[:3], output_margin=True)
    np.testing.assert_allclose(explanation.predictions, margins, rtol=1e-5)
    np.testing.assert_allclose(
        explanation.judge_predictions, model.predict_proba(FRAME[:3]), rtol=1e-5
    )
    assert np.abs(explanation.values[:, 0, 1]).min() > 1  # the second label is that of a


GAMES = [TreeSurrogate(trees=20, masks=8), DistilledTrees(), "marginal"]


@pytest.mark.parametrize("game", GAMES, ids=["surrogate", "distilled", "marginal"])
@pytest.mark.parametrize(
    ("scale", "offset"), [(5.0, 1.7e9), (1e20, 0.0), (1e-20, 0.0), (1e20, 1e24)]
)
def test_offsets_and_units_of_predictions_do_not_matter(game, scale, offset):
    plain = explained(lambda X: X[:, 0], ARRAY, ARRAY[:5], game=game)
    far = explained(lambda X: offset + scale * X[:, 0], ARRAY, ARRAY[:5], game=game)
    assert np.abs(plain.values[:, 0]).mean() > 0.3
    np.testing.assert_allclose(far.values / scale, plain.values, atol=1e-3 if offset else 1e-5)


@pytest.mark.parametrize("scale", [1e40, 1e-40])
@pytest.mark.parametrize("game", [*GAMES[:2], "auto"], ids=["surrogate", "distilled", "auto"])
def test_predictions_of_a_size_that_boosted_trees_lose_are_refused(game, scale):
    with pytest.raises(ValueError, match=r"differ by \de[+-](40|41) .* in another unit"):
        explained(lambda X: scale * X[:, 0], ARRAY, game=game)
    plain, far = (
        explained(lambda X, by=by: by * X[:, 0], ARRAY, ARRAY[:5]) for by in (1, scale)
    )  # nothing is learned
    np.testing.assert_allclose(far.values / scale, plain.values)


def test_a_large_offset_leaves_the_default_as_it_is():
    explanation = explained(lambda X: 1.7e9 + 5 * X[:, 0], ARRAY, ARRAY[:5], game="auto")
    np.testing.assert_allclose(explanation.values[:, 0], 5 * ARRAY[:5, 0], atol=0.6)
    assert np.abs(explanation.values[:, 1:]).max() < 0.2


def test_numbers_that_cannot_be_squared_are_refused():
    with pytest.raises(
        ValueError, match=r"returned \de\+\d+, and squares of numbers beyond 1e\+150 overflow"
    ):
        explained(lambda X: 1e300 * X[:, 0], ARRAY)
    with pytest.raises(
        ValueError,
        match=r"Column 'x1' of the background holds numbers beyond 1e\+150.* larger unit",
    ):
        explained(lambda X: X[:, 0], ARRAY * [1.0, 1e300, 1.0, 1.0])
    for game in ("tree_surrogate", "gaussian", "auto"):
        with pytest.raises(ValueError, match="Column 'x1' holds an infinite value, or one beyond"):
            explained(lambda X: X[:, 0], ARRAY, [[0.0, 1e300, 0.0, 0.0]], game=game)


def test_frames_keep_the_index_and_carry_values():
    explanation = explained(MODEL, FRAME, FRAME[5:8])
    wide = explanation.to_frame("wide")
    assert list(wide.index) == ["row 5", "row 6", "row 7"]
    tidy = explanation.to_frame(data=True)
    assert list(tidy.index[:5]) == ["row 5"] * 4 + ["row 6"]
    assert tidy["row"].tolist() == np.repeat([0, 1, 2], 4).tolist()
    np.testing.assert_array_equal(tidy["data"].to_numpy(float), FRAME[5:8].to_numpy().ravel())
    both = explanation.to_frame("wide", data=True)
    np.testing.assert_array_equal(both["attribution"], wide)
    pd.testing.assert_frame_equal(both["data"], FRAME[5:8], check_names=False)
    with pytest.raises(ValueError, match="Features are no columns of the rows explained"):
        explained(MODEL, FRAME, groups=[["a", "b"]]).to_frame(data=True)


def test_frames_of_several_outputs_keep_the_index_too():
    explanation = explained(lambda X: X.to_numpy()[:, :2], FRAME, FRAME[5:8])
    wide = explanation.to_frame("wide", data=True)
    assert list(wide.index) == [(f"row {r}", f"output {o}") for r in (5, 6, 7) for o in (0, 1)]
    np.testing.assert_array_equal(wide["attribution"].to_numpy()[1::2], explanation.values[..., 1])
    np.testing.assert_array_equal(wide["data"].to_numpy()[::2], FRAME[5:8].to_numpy())


@pytest.mark.parametrize(
    ("name", "instead"), [("abs", "importance"), ("mean", "importance"), ("cohorts", "mask")]
)
def test_names_of_shap_say_what_to_use(name, instead):
    explanation = explained(MODEL, FRAME)
    with pytest.raises(AttributeError, match=rf"no attribute '{name}'.*{instead}"):
        getattr(explanation, name)
    assert not hasattr(explanation, "unheard_of")
    assert explanation[2].values.shape == (1, 4)
