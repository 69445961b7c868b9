"""Games of shap and shapiq as ours."""

import sys
import warnings

import numpy as np
import pandas as pd
import pytest

import weightedshap as ws
from tests.oracles import normal_rows, product_model, three_outputs

with warnings.catch_warnings():
    warnings.filterwarnings(
        "ignore", "The set_(bad|over|under) function", PendingDeprecationWarning
    )
    shap = pytest.importorskip("shap")
    shapiq = pytest.importorskip("shapiq")

BACKGROUND = normal_rows(9)
X = normal_rows(3, seed=1)
EVERY = (np.arange(16)[:, None] >> np.arange(4) & 1).astype(bool)


@pytest.mark.parametrize("model", [product_model, three_outputs])
def test_a_masker_with_a_model_is_the_marginal_game(model):
    ours = ws.games.Marginal().fit(model, BACKGROUND).at(X[0])
    for masker in (shap.maskers.Independent(BACKGROUND), BACKGROUND):
        theirs = ws.games.from_shap(model, masker, X[0])
        np.testing.assert_allclose(theirs(EVERY), ours(EVERY), atol=1e-12)
        assert theirs(EVERY[:0]).shape == (0, *ours(EVERY).shape[1:])
    assert theirs.d == 4


def test_batches_of_coalitions_change_nothing(monkeypatch):
    game = ws.games.from_shap(product_model, BACKGROUND, X[0])
    whole = game(EVERY)
    monkeypatch.setattr("weightedshap.games.adapters.BATCH_ROWS", 30)
    np.testing.assert_allclose(game(EVERY), whole, atol=1e-12)


def test_a_masked_model_is_explained_row_by_row():
    theirs = ws.Explainer(
        None, BACKGROUND, game=lambda row: ws.games.from_shap(product_model, BACKGROUND, row)
    )(X)
    ours = ws.Explainer(product_model, BACKGROUND, game="marginal")(X)
    np.testing.assert_allclose(theirs.values, ours.values, atol=1e-12)
    np.testing.assert_allclose(theirs.predictions, ours.predictions, atol=1e-12)


@pytest.mark.parametrize(
    "row", [lambda x: x.iloc[0], lambda x: x[:1], lambda x: x.iloc[0].tolist()]
)
def test_names_of_a_frame_are_kept_and_a_row_may_have_any_form(row):
    frame = pd.DataFrame(BACKGROUND, columns=list("abcd"))
    game = ws.games.from_shap(product_model, shap.maskers.Independent(frame), row(frame))
    explanation = ws.explain(game)
    assert explanation.feature_names == tuple("abcd")
    assert explanation.predictions[0] == pytest.approx(product_model(BACKGROUND)[0])


def test_a_masker_may_be_a_function():
    game = ws.games.from_shap(product_model, lambda mask, x: (x * mask)[None], X[0])
    np.testing.assert_allclose(game(EVERY), product_model(X[0] * EVERY))


def test_a_text_is_a_game_of_its_words():
    masker = shap.maskers.Text(r"\W")
    game = ws.games.from_shap(
        lambda texts: np.array(["good" in text for text in texts], dtype=float),
        masker,
        "a good day",
    )
    explanation = ws.explain(game)
    assert explanation.feature_names == ("a", "good", "day")
    np.testing.assert_allclose(explanation.shapley, [[0, 1, 0]], atol=1e-12)


def test_a_model_must_be_a_function():
    with pytest.raises(TypeError, match=r"model\.predict"):
        ws.games.from_shap(object(), BACKGROUND, X[0])


class Squares(shapiq.Game):
    def __init__(self, names=None):
        super().__init__(3, normalize=True, normalization_value=2.0, player_names=names)

    def value_function(self, coalitions):
        return 2.0 + coalitions.sum(axis=1) ** 2.0


@pytest.mark.parametrize("make", [Squares, lambda: ws.games.from_shapiq(Squares())])
def test_a_shapiq_game_is_explained_on_its_own_scale(make):
    explanation = ws.explain(make())
    assert explanation.base_values.tolist() == [2.0]
    assert explanation.predictions.tolist() == [11.0]
    np.testing.assert_allclose(explanation.shapley, [[3, 3, 3]])


def test_names_of_players_are_kept():
    assert ws.explain(Squares(["a", "b", "c"])).feature_names == ("a", "b", "c")
    assert ws.explain(Squares()).feature_names == ("x0", "x1", "x2")


def test_our_shapley_value_is_theirs():
    exact = shapiq.ExactComputer(n_players=3, game=Squares())("SV", 1)
    assert ws.explain(Squares()).shapley[0].tolist() == pytest.approx(
        [exact[(i,)] for i in range(3)]
    )


def test_a_shapiq_imputer_is_a_game():
    imputer = shapiq.BaselineImputer(model=product_model, data=BACKGROUND, x=X[0])
    explanation = ws.explain(imputer)
    assert explanation.predictions[0] == pytest.approx(product_model(X[:1])[0])
    ours = ws.games.Baseline(BACKGROUND.mean(axis=0)).fit(product_model, BACKGROUND).at(X[0])
    np.testing.assert_allclose(explanation.shapley, ws.explain(ours).shapley, atol=1e-9)


def test_shapiq_games_serve_an_explainer_too():
    explanation = ws.Explainer(None, normal_rows(5, 3), game=lambda row: Squares())(
        normal_rows(2, 3)
    )
    np.testing.assert_allclose(explanation.shapley, 3)


def test_no_coalitions_have_no_values():
    assert ws.games.from_shapiq(Squares())(np.zeros((0, 3), dtype=bool)).shape == (0,)


def test_what_is_no_shapiq_game_is_refused():
    with pytest.raises(TypeError, match="n_players"):
        ws.games.from_shapiq(lambda coalitions: coalitions)


def test_the_error_of_an_object_without_players_names_the_adapters():
    with pytest.raises(TypeError, match="from_shap"):
        ws.explain(shap.maskers.Independent(BACKGROUND))


def test_a_missing_library_is_named_with_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "shap", None)
    with pytest.raises(ImportError, match=r"weightedshap\[shap\]"):
        ws.games.from_shap(product_model, BACKGROUND, X[0])
