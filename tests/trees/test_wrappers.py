"""Trees inside other estimators: read through exactly, or refused with a reason that the default
tells in a note."""

import functools
import pickle

import catboost
import lightgbm
import numpy as np
import pandas as pd
import pytest
import xgboost
from scipy.special import expit, logit
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor, make_column_transformer
from sklearn.ensemble import (
    AdaBoostRegressor,
    BaggingRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    IsolationForest,
    RandomForestClassifier,
    RandomForestRegressor,
    StackingRegressor,
    VotingRegressor,
)
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.feature_selection import SelectFromModel
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import (
    FixedThresholdClassifier,
    GridSearchCV,
    HalvingGridSearchCV,
    RandomizedSearchCV,
)
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputRegressor, RegressorChain
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    PowerTransformer,
    RobustScaler,
    StandardScaler,
)
from sklearn.tree import DecisionTreeClassifier

import weightedshap as ws
from tests.trees.random_ensembles import assert_matches_own_values
from weightedshap.coalitions import all_coalitions
from weightedshap.games import Marginal, TreeModel
from weightedshap.trees.readers import UnreadableModelError
from weightedshap.trees.wrappers import find_trees

RNG = np.random.default_rng(0)
X = RNG.normal(size=(160, 4))
Y = 30 + 7 * (X[:, 0] * X[:, 1] + np.sin(2 * X[:, 2]))
TWO = (np.median(Y) < Y).astype(int)
THREE = np.array(["low", "mid", "high"])[np.digitize(Y, np.quantile(Y, [0.3, 0.7]))]
BOTH = np.c_[Y, -(Y**2)]
LABELS = np.c_[TWO, X[:, 2] > 0, X[:, 0] > 0.3].astype(int)
FRAME = pd.DataFrame(X, columns=list("abcd")).assign(
    town=RNG.choice(["Ulm", "Hof", "Bonn"], len(X))
)
S = all_coalitions(4)

boosted = functools.partial(GradientBoostingRegressor, n_estimators=8, random_state=0)
boosted_classes = functools.partial(GradientBoostingClassifier, n_estimators=6, random_state=0)
forest = functools.partial(RandomForestRegressor, 4, max_depth=4, random_state=0)
light = functools.partial(
    lightgbm.LGBMRegressor, n_estimators=8, num_leaves=7, n_jobs=1, verbose=-1
)
light_classes = functools.partial(
    lightgbm.LGBMClassifier, n_estimators=6, num_leaves=7, n_jobs=1, verbose=-1
)
xgboosted = functools.partial(xgboost.XGBRegressor, n_estimators=8, max_depth=3, n_jobs=1)
cats = functools.partial(
    catboost.CatBoostRegressor,
    iterations=8,
    depth=4,
    verbose=0,
    allow_writing_files=False,
    thread_count=1,
)


def pipe(model):
    towns = make_column_transformer(
        (OneHotEncoder(), ["town"]), (StandardScaler(), list("ab")), remainder="passthrough"
    )
    return make_pipeline(towns, model)


def search(kind, model, name, **more):
    return kind(model, {name: [2, 3]}, cv=2, **more)


SEARCHES = {
    "grid": lambda: search(GridSearchCV, boosted(), "max_depth").fit(X, Y),
    "random": lambda: search(
        RandomizedSearchCV, light(), "max_depth", n_iter=2, random_state=0
    ).fit(X, Y),
    "halving": lambda: search(HalvingGridSearchCV, forest(), "max_depth", random_state=0).fit(X, Y),
    "random, over a pipeline": lambda: search(
        RandomizedSearchCV, pipe(xgboosted()), "xgbregressor__max_depth", n_iter=2, random_state=0
    ).fit(FRAME, Y),
}


def rows_for(model):
    return FRAME if "town" in getattr(model, "feature_names_in_", ()) else X


def part(rows, where):
    return rows.iloc[where] if isinstance(rows, pd.DataFrame) else rows[where]


def assert_enumerated(model, rows, f, **settings):
    """The interventional game of the model is that of `f`, enumerated, at rows that the background
    lacks."""
    background = part(rows, slice(0, 25))
    read = TreeModel("interventional").fit(model, background)
    enumerated = Marginal().fit(f, background)
    coalitions = all_coalitions(rows.shape[1])
    for r in (40, 41, 42):
        row = part(rows, slice(r, r + 1))
        np.testing.assert_allclose(
            read.at(row)(coalitions), enumerated.at(row)(coalitions), **settings
        )


@pytest.mark.parametrize("name", SEARCHES)
def test_a_search_is_read_as_the_estimator_that_it_found(name):
    model = SEARCHES[name]()
    rows = rows_for(model)
    assert_enumerated(model, rows, model.predict, rtol=1e-5)
    found, expected = (
        ws.Explainer(one, rows[:60], progress=False)(rows[60:66])
        for one in (model, model.best_estimator_)
    )
    assert found.game_info["game"] == "tree_path"
    assert not any("explain it" in note for note in found.notes)
    np.testing.assert_array_equal(found.contributions, expected.contributions)
    np.testing.assert_allclose(found.predictions, model.predict(rows[60:66]), rtol=1e-5)


def test_a_threshold_leaves_the_probabilities_as_they_are():
    inner = RandomForestClassifier(4, max_depth=4, random_state=0)
    model = FixedThresholdClassifier(inner, threshold=0.2).fit(X, TWO)
    assert_enumerated(model, X, lambda rows: model.estimator_.predict_proba(rows)[:, 1], rtol=1e-9)


def test_a_frozen_estimator_is_read_as_what_it_holds():
    frozen = pytest.importorskip("sklearn.frozen").FrozenEstimator(boosted().fit(X, Y))
    assert_enumerated(frozen, X, frozen.predict, rtol=1e-9)


@pytest.mark.parametrize(
    "make", [boosted, forest, light, xgboosted, cats, HistGradientBoostingRegressor]
)
def test_the_regressors_of_several_outputs_are_outputs(make):
    model = MultiOutputRegressor(make()).fit(X, BOTH)
    assert_enumerated(model, X, model.predict, rtol=1e-5, atol=1e-4)
    explanation = ws.Explainer(model, X[:60], progress=False)(X[60:66])
    assert explanation.game_info["game"] == "tree_path"
    np.testing.assert_allclose(explanation.predictions, model.predict(X[60:66]), rtol=1e-5)
    for o, inner in enumerate(model.estimators_):
        alone = ws.Explainer(inner, X[:60], game="tree_path", progress=False)(X[60:66])
        np.testing.assert_allclose(
            explanation.contributions[..., o], alone.contributions, rtol=1e-9, atol=1e-9
        )
        one = ws.Explainer(model, X[:60], game="tree_path", outputs=o, progress=False)(X[60:66])
        np.testing.assert_allclose(one.contributions, alone.contributions, rtol=1e-9, atol=1e-9)


def test_pipelines_of_several_outputs_each_transform_the_rows():
    model = MultiOutputRegressor(pipe(boosted())).fit(FRAME, BOTH)
    assert_enumerated(model, FRAME, model.predict, rtol=1e-6)
    assert_matches_own_values(TreeModel("path").fit(model, FRAME[:20]).at(FRAME[30:31]))


def test_a_pipeline_may_end_in_a_wrapper():
    inner = TransformedTargetRegressor(
        MultiOutputRegressor(boosted()), transformer=StandardScaler()
    )
    model = pipe(inner).fit(FRAME, BOTH)
    assert_enumerated(model, FRAME, model.predict, rtol=1e-6)


def test_cells_that_a_sparse_step_leaves_out_are_missing_to_xgboost_inside_a_wrapper_too():
    front = make_column_transformer(
        (OneHotEncoder(sparse_output=True), ["town"]), remainder="drop", sparse_threshold=1
    )
    model = make_pipeline(front, search(GridSearchCV, xgboosted(), "max_depth")).fit(
        FRAME, Y + 9 * (FRAME.town == "Ulm")
    )
    assert_enumerated(model, FRAME, model.predict, rtol=1e-5)


LINEAR = {
    "nothing": {},
    "a function left out": {"transformer": FunctionTransformer()},
    "StandardScaler": {"transformer": StandardScaler()},
    "StandardScaler, mean alone": {"transformer": StandardScaler(with_std=False)},
    "MinMaxScaler": {"transformer": MinMaxScaler((-1, 3))},
    "MaxAbsScaler": {"transformer": MaxAbsScaler()},
    "RobustScaler": {"transformer": RobustScaler(with_centering=False)},
    "a pipeline": {"transformer": make_pipeline(StandardScaler(), "passthrough", MinMaxScaler())},
}


@pytest.mark.parametrize("name", LINEAR)
@pytest.mark.parametrize("target", [Y, BOTH], ids=["one target", "two targets"])
def test_values_of_a_scaled_target_are_scaled_back(name, target):
    model = TransformedTargetRegressor(forest(), **LINEAR[name]).fit(X, target)
    assert_enumerated(model, X, model.predict, rtol=1e-9)
    path = TreeModel("path").fit(model, X[:20])
    values = path.at(X[30])(S)
    inner = TreeModel("path").fit(model.regressor_, X[:20]).at(X[30])(S)
    expected = model.transformer_.inverse_transform(inner.reshape(len(S), -1)).reshape(inner.shape)
    np.testing.assert_allclose(values, expected, rtol=1e-9)
    assert path.info["space"] == "value"


@pytest.mark.parametrize(
    "transform",
    [
        {"func": np.log, "inverse_func": np.exp},
        {"transformer": PowerTransformer()},
        {"transformer": make_pipeline(StandardScaler(), PowerTransformer())},
    ],
)
def test_a_target_that_is_not_scaled_linearly_is_refused(transform):
    model = TransformedTargetRegressor(boosted(), **transform).fit(X, Y)
    with pytest.raises(
        UnreadableModelError, match=r"its target is transformed by a .*, not linearly"
    ):
        TreeModel().fit(model, X[:20])


def test_a_regressor_with_a_link_of_its_own_is_not_scaled():
    inner = xgboosted(objective="count:poisson")
    model = TransformedTargetRegressor(inner, transformer=MinMaxScaler((1, 2))).fit(X, Y)
    for background in (X[:1], X[:20]):
        with pytest.raises(UnreadableModelError, match="something else than the sum of its trees"):
            TreeModel().fit(model, background)


def test_one_class_against_the_rest_of_two_is_the_classifier_itself():
    model = OneVsRestClassifier(boosted_classes()).fit(X, TWO)
    assert_enumerated(
        model, X, lambda rows: logit(model.predict_proba(rows)[:, 1]), rtol=1e-6, atol=1e-9
    )


@pytest.mark.parametrize("make", [boosted_classes, light_classes, HistGradientBoostingClassifier])
def test_classes_against_the_rest_are_margins_that_share_out_the_probability(make):
    model = OneVsRestClassifier(make()).fit(X, THREE)

    def margins(rows):
        return np.stack([logit(one.predict_proba(rows)[:, 1]) for one in model.estimators_], axis=1)

    assert_enumerated(model, X, margins, rtol=1e-6, atol=1e-8)
    explanation = ws.Explainer(model, X[:90], progress=False)(X[90:96])
    assert (explanation.game_info["game"], explanation.game_info["space"]) == (
        "tree_path",
        "margin",
    )
    np.testing.assert_allclose(
        explanation.judge_predictions, model.predict_proba(X[90:96]), rtol=1e-6
    )
    shares = expit(explanation.predictions) / expit(explanation.predictions).sum(
        axis=1, keepdims=True
    )
    np.testing.assert_allclose(shares, explanation.judge_predictions, rtol=1e-6)


def test_an_explainer_of_classes_against_the_rest_is_kept_in_files(tmp_path):
    model = OneVsRestClassifier(boosted_classes()).fit(X, THREE)
    explainer = ws.Explainer(model, X[:90], outputs=["mid"], progress=False)
    explainer.save(tmp_path / "explainer")
    again = ws.Explainer.load(tmp_path / "explainer", model)
    np.testing.assert_array_equal(again(X[90:96]).values, explainer(X[90:96]).values)


@pytest.mark.parametrize(
    "make", [boosted_classes, functools.partial(DecisionTreeClassifier, max_depth=3)]
)
def test_labels_are_outputs_each_by_itself(make):
    model = OneVsRestClassifier(make()).fit(X, LABELS)
    raw = logit if make is boosted_classes else np.asarray
    assert_enumerated(model, X, lambda rows: raw(model.predict_proba(rows)), rtol=1e-6, atol=1e-9)


def test_probabilities_that_are_divided_by_their_sum_are_refused():
    model = OneVsRestClassifier(RandomForestClassifier(3, max_depth=3, random_state=0)).fit(
        X, THREE
    )
    with pytest.raises(
        UnreadableModelError, match="divides the probability of each class by the sum of all"
    ):
        TreeModel().fit(model, X[:20])


# categories of histogram boosting -----------------------------------------------------------------


def categories(rows):
    """A frame, and an array with codes; some cells are missing."""
    rng = np.random.default_rng(1)
    numbers = rng.normal(size=(rows, 2))
    numbers[rng.random(numbers.shape) < 0.1] = np.nan
    frame = pd.DataFrame(numbers, columns=["a", "b"])
    frame.insert(
        1, "town", pd.Categorical(rng.choice(["Ulm", "Hof", "Bonn", "Köln", "Jena", None], rows))
    )
    frame["floor"] = pd.Categorical(rng.choice([3.0, 7.0, 40.0, 41.0], rows))
    codes = frame.assign(
        town=frame["town"].cat.codes.replace(-1, np.nan) * 3, floor=frame["floor"].astype(float)
    )
    return frame, codes.to_numpy(dtype=float)


TABLES = dict(zip(("frame", "array"), categories(300), strict=True))
SUM = np.nan_to_num(TABLES["array"]) @ [1, 0.2, 1, 0.1] + 2 * np.isin(
    TABLES["array"][:, 1], [0.0, 9.0]
)


def histograms(kind, table, target):
    chosen = "from_dtype" if isinstance(table, pd.DataFrame) else [1, 3]
    return kind(max_iter=12, min_samples_leaf=4, categorical_features=chosen, random_state=0).fit(
        table, target
    )


@pytest.mark.parametrize("name", TABLES)
def test_categories_of_histogram_boosting_are_splits_like_any_other(name):
    table = TABLES[name]
    model = histograms(HistGradientBoostingRegressor, table, SUM)
    fitted = TreeModel("path").fit(model, table[:30])
    assert (fitted.reading.ensembles[0].cat_slot >= 0).any()
    assert_enumerated(model, table, model.predict, rtol=1e-9)
    assert_matches_own_values(fitted.at(table[60:61]))
    explanation = ws.Explainer(model, table[:90], progress=False)(table[90:99])
    assert explanation.game_info["game"] == "tree_path"
    np.testing.assert_allclose(explanation.endpoint_gaps["full"], 0, atol=1e-9)


@pytest.mark.parametrize("name", TABLES)
def test_unknown_and_missing_categories_go_where_the_library_sends_them(name):
    table = TABLES[name]
    model = histograms(HistGradientBoostingRegressor, table[:200], SUM[:200])
    rows = table[200:230].copy()
    if name == "frame":
        rows["town"] = pd.Categorical(["Bern"] * 10 + [None] * 10 + ["Ulm"] * 10)
    else:
        rows[:, 1] = [99.0, -1.0, 1.0, 0.5, 300.0] * 2 + [np.nan] * 10 + [3.0] * 10
    read = TreeModel().fit(model, rows).reading
    np.testing.assert_allclose(
        read.ensembles[0].predict(read.encode(rows)), model.predict(rows), rtol=1e-12
    )


@pytest.mark.parametrize("name", TABLES)
def test_categories_of_classes_are_read_too_and_behind_a_step(name):
    table = TABLES[name]
    model = histograms(HistGradientBoostingClassifier, table, np.digitize(SUM, [3.0, 8.0]))
    assert_enumerated(model, table, model.decision_function, rtol=1e-9, atol=1e-12)
    inner = HistGradientBoostingClassifier(max_iter=5, categorical_features=[0], random_state=0)
    front = make_column_transformer(("passthrough", [1]), remainder="passthrough")
    behind = make_pipeline(front, inner).fit(TABLES["array"], SUM > 4)
    assert_enumerated(behind, TABLES["array"], behind.decision_function, rtol=1e-9, atol=1e-12)


# CatBoost -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("target", "space"), [(Y, "value"), (TWO, "margin"), (THREE, "margin")])
def test_a_sum_of_catboost_models_is_read(target, space):
    kind = catboost.CatBoostRegressor if space == "value" else catboost.CatBoostClassifier
    quiet = {"verbose": 0, "allow_writing_files": False, "thread_count": 1, "iterations": 5}
    models = [kind(depth=depth, **quiet).fit(X, target) for depth in (2, 4)]
    total = catboost.sum_models(models, weights=[0.5, 2.0])
    assert_enumerated(
        total,
        X,
        lambda rows: total.predict(rows, prediction_type="RawFormulaVal"),
        rtol=1e-9,
        atol=1e-9,
    )
    explanation = ws.Explainer(total, X[:60], progress=False)(X[60:64])
    assert (explanation.game_info["game"], explanation.game_info["space"]) == ("tree_path", space)


def with_text():
    frame = FRAME.assign(
        words=RNG.choice(["good view", "bad view", "quiet", "loud but good"], len(X))
    )
    pool = catboost.Pool(frame.drop(columns="town"), Y, text_features=["words"])
    return cats().fit(pool), frame.drop(columns="town")


def test_catboost_with_text_is_explained_by_the_games_for_other_models():
    model, frame = with_text()
    explanation = ws.Explainer(model, frame[:60], judge="baseline", progress=False)(frame[60:62])
    assert explanation.game_labels is not None
    (note,) = [note for note in explanation.notes if "explain it" in note]
    assert "text features" in note
    assert ".cpp" not in note
    with pytest.raises(UnreadableModelError, match="saves these trees in no format to read"):
        TreeModel().fit(model, frame[:60])


# notes --------------------------------------------------------------------------------------------


class Own(RegressorMixin, BaseEstimator):
    """A user's own estimator around a model."""

    def __init__(self, inner):
        self.inner = {"models": [("first", inner)]}

    def fit(self, rows, y):
        self.inner["models"][0][1].fit(rows, y)
        self.fitted_ = True
        return self

    def predict(self, rows):
        return np.abs(self.inner["models"][0][1].predict(rows))


class Clipped(lightgbm.LGBMRegressor):
    """A user's own subclass that predicts otherwise."""

    def predict(self, rows, **more):
        return np.clip(super().predict(rows, **more), None, 34)


class Renamed(lightgbm.LGBMRegressor):
    """A user's own subclass that predicts as its base does."""


UNREAD = {
    "calibrated": (
        lambda: CalibratedClassifierCV(boosted_classes(), cv=2).fit(X, TWO),
        "CalibratedClassifierCV cannot",
    ),
    "isolation": (
        lambda: IsolationForest(n_estimators=5, random_state=0).fit(X),
        "curve of a row's mean depth",
    ),
    "stacking": (
        lambda: StackingRegressor([("a", boosted())], LinearRegression(), cv=2).fit(X, Y),
        "another model makes",
    ),
    "voting": (
        lambda: VotingRegressor([("a", LinearRegression()), ("b", forest())]).fit(X, Y),
        "mean of several",
    ),
    "bagging": (
        lambda: BaggingRegressor(n_estimators=3, random_state=0).fit(X, Y),
        "mean of several",
    ),
    "adaboost": (
        lambda: AdaBoostRegressor(n_estimators=3, random_state=0).fit(X, Y),
        "weighted median",
    ),
    "chain": (lambda: RegressorChain(boosted()).fit(X, BOTH), "predicted from earlier ones"),
    "logarithm": (
        lambda: TransformedTargetRegressor(boosted(), func=np.log, inverse_func=np.exp).fit(X, Y),
        "not linearly",
    ),
    "a wrapper in a wrapper": (
        lambda: search(
            GridSearchCV,
            TransformedTargetRegressor(boosted(), transformer=PowerTransformer()),
            "regressor__max_depth",
        ).fit(X, Y),
        "TransformedTargetRegressor cannot be read exactly",
    ),
    "linear trees": (lambda: light(linear_tree=True).fit(X, Y), "LightGBM's linear trees"),
    "own wrapper": (
        lambda: Own(boosted()).fit(X, Y),
        "The trees inside Own cannot be read exactly",
    ),
    "own subclass": (
        lambda: Clipped(n_estimators=5, n_jobs=1, verbose=-1).fit(X, Y),
        "`predict` of its own",
    ),
    "behind a pipeline": (
        lambda: make_pipeline(StandardScaler(), Own(boosted())).fit(X, Y),
        "The trees inside Own",
    ),
}


def auto(model, rows=X, **choices):
    """The default on a few rows, judged by a game that takes no time."""
    return ws.Explainer(model, rows[:40], judge="baseline", progress=False, **choices)


@pytest.mark.parametrize("name", UNREAD)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_trees_that_cannot_be_read_are_named_in_a_note(name):
    make, reason = UNREAD[name]
    explainer = auto(make())
    assert [game.info["game"] for game in explainer.games] == ["marginal", "distilled_trees"]
    (note,) = [note for note in explainer(X[50:52]).notes if "explain it" in note]
    assert reason in note
    assert "'marginal'" in note
    assert "'distilled_trees'" in note
    assert "tree_surrogate" not in note  # what to choose instead is for those who asked for trees


@pytest.mark.parametrize("name", UNREAD)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_tree_game_of_trees_that_cannot_be_read_is_refused_with_the_reason(name):
    make, reason = UNREAD[name]
    with pytest.raises(UnreadableModelError) as refused:
        ws.Explainer(make(), X[:40], game="tree_path", progress=False)
    assert reason in str(refused.value)
    assert "work with any model" in str(refused.value)
    again = pickle.loads(pickle.dumps(refused.value))
    assert (str(again), again.reason) == (str(refused.value), refused.value.reason)


def test_trees_that_a_function_overrides_are_named_in_a_note():
    model = light().fit(X, Y)
    explainer = auto(model, predict=lambda rows: model.predict(rows) ** 2)
    assert any("cannot follow `predict=`" in note for note in explainer(X[50:52]).notes)


def test_categories_of_catboost_are_named_in_a_note():
    frame = FRAME.assign(town=FRAME["town"].where(X[:, 0] > 0, "Köln"))
    model = cats(cat_features=["town"], one_hot_max_size=1).fit(
        frame, Y + 20 * (frame["town"] == "Ulm")
    )
    (note,) = [note for note in auto(model, frame)(frame[50:52]).notes if "explain it" in note]
    assert "categories" in note


@pytest.mark.parametrize(
    "make",
    [
        lambda: LinearRegression().fit(X, Y),
        lambda: MultiOutputRegressor(LinearRegression()).fit(X, BOTH),
        lambda: VotingRegressor([("a", LinearRegression())]).fit(X, Y),
        lambda: make_pipeline(SelectFromModel(forest()), LinearRegression()).fit(X, Y),
        lambda: GridSearchCV(
            make_pipeline(LinearRegression()),
            {"linearregression": [boosted(), LinearRegression()]},
            cv=2,
        ).fit(X, X @ np.arange(4.0)),
        lambda: light().fit(X, Y).predict,
        lambda: lambda rows: rows[:, 0],
    ],
    ids=[
        "linear",
        "linear outputs",
        "linear votes",
        "trees that only select",
        "trees that were tried",
        "method",
        "function",
    ],
)
def test_models_that_predict_without_trees_have_no_note(make):
    assert not any("explain it" in note for note in auto(make())(X[50:52]).notes)


def test_a_game_that_is_named_has_no_note():
    model = IsolationForest(n_estimators=5, random_state=0).fit(X)
    explanation = ws.Explainer(model, X[:40], game="marginal", progress=False)(X[50:52])
    assert not any("explain it" in note for note in explanation.notes)


def test_a_subclass_that_predicts_as_its_base_does_is_read():
    model = Renamed(n_estimators=5, n_jobs=1, verbose=-1).fit(X, Y)
    assert_enumerated(model, X, model.predict, rtol=1e-9)


def test_trees_are_looked_for_without_end_or_error_in_whatever_people_pass():
    circle = Own(boosted())
    circle.inner["models"].append(("itself", circle))
    assert find_trees(circle) is None  # the boosting is not fitted
    circle.fit(X, Y)
    assert isinstance(find_trees(circle), GradientBoostingRegressor)
    for nothing in (None, 3, "text", print, object(), type, np.array(5), [light().fit(X, Y)]):
        assert find_trees(nothing) is None
