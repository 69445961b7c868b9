"""Tree games through scikit-learn pipelines: players are the columns that people pass, exactly."""

import itertools
import re

import numpy as np
import pandas as pd
import pytest
from lightgbm import LGBMClassifier, LGBMRegressor
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer, make_column_selector, make_column_transformer
from sklearn.decomposition import PCA
from sklearn.ensemble import (
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    RandomForestRegressor,
)
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.feature_selection import SelectKBest
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    SplineTransformer,
    StandardScaler,
    TargetEncoder,
)
from sklearn.tree import DecisionTreeRegressor

import weightedshap as ws
from weightedshap.coalitions import all_coalitions
from weightedshap.games import Marginal, TreeModel
from weightedshap.trees.origins import source_columns
from weightedshap.trees.pipelines import MixedColumnsError
from weightedshap.trees.readers import UnreadableModelError

N = 240
RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(
    {
        "age": RNG.normal(40, 10, N),
        "income": RNG.normal(size=N),
        "city": RNG.choice(["Bonn", "Köln", "Ulm"], N),
        "size": RNG.choice(["s", "m", "l"], N),
        "rooms": RNG.integers(1, 6, N).astype(float),
    }
)
FRAME.loc[::7, "income"] = np.nan
TARGET = (
    FRAME["age"] / 20
    + FRAME["income"].fillna(1) * (FRAME["city"] == "Ulm")
    + (FRAME["size"] == "l") * FRAME["rooms"]
    - FRAME["income"].isna() * FRAME["rooms"]
)
MIXED_UP = ["rooms", "city", "age", "size", "income"]
CLASS = np.where(TARGET.median() < TARGET, "dear", "cheap")
NUMBERS = ["age", "income", "rooms"]


def columns(sparse=True):
    numbers = make_pipeline(SimpleImputer(add_indicator=True), StandardScaler())
    towns = OneHotEncoder(sparse_output=sparse, handle_unknown="ignore")
    parts = (numbers, ["age", "income"]), (towns, ["city"]), (OrdinalEncoder(), ["size"])
    return make_column_transformer(*parts, remainder="passthrough")


def boosted_trees():
    return GradientBoostingRegressor(n_estimators=15, random_state=0)


def light(kind=LGBMRegressor):
    return kind(n_estimators=12, num_leaves=6, n_jobs=1, verbose=-1)


def forest():
    return RandomForestRegressor(8, max_depth=5, random_state=0)


def xgboost_trees():
    return pytest.importorskip("xgboost").XGBRegressor(n_estimators=12, max_depth=4, n_jobs=1)


PIPELINES = {
    "boosting": lambda: make_pipeline(columns(), boosted_trees()).fit(FRAME, TARGET),
    "forest": lambda: make_pipeline(columns(), forest()).fit(FRAME, TARGET),
    "lightgbm": lambda: make_pipeline(columns(), light()).fit(FRAME, TARGET),
    "frames": lambda: (
        make_pipeline(columns(False), light()).set_output(transform="pandas").fit(FRAME, TARGET)
    ),
    "xgboost, sparse": lambda: make_pipeline(columns(), xgboost_trees()).fit(FRAME, TARGET),
    "classes": lambda: make_pipeline(columns(), light(LGBMClassifier)).fit(FRAME, CLASS),
    "histograms": lambda: make_pipeline(
        columns(False), HistGradientBoostingClassifier(max_iter=9)
    ).fit(FRAME, CLASS),
    "one step": lambda: make_pipeline(boosted_trees()).fit(FRAME[NUMBERS].fillna(0.0), TARGET),
}


def table_of(pipeline):
    return (
        FRAME[list(pipeline.feature_names_in_)].fillna(0.0)
        if pipeline.steps[0][0].startswith("grad")
        else FRAME
    )


@pytest.mark.parametrize("name", PIPELINES)
def test_the_interventional_game_is_that_of_the_pipeline_on_its_raw_columns(name):
    pipeline = PIPELINES[name]()
    table = table_of(pipeline)
    if name in ("classes", "histograms"):  # on the scale on which trees add up
        front = pipeline[:-1]
        trees = pipeline[-1]
        raw = (
            (lambda Z: trees.predict(Z, raw_score=True))
            if name == "classes"
            else trees.decision_function
        )
        whole = lambda rows: raw(front.transform(rows))
    else:
        whole = pipeline.predict
    read = TreeModel("interventional").fit(pipeline, table[:30])
    enumerated = Marginal().fit(whole, table[:30])
    S = all_coalitions(read.background.d)
    for r in (40, 49, 56):  # with and without a hole
        row = table[r : r + 1]
        np.testing.assert_allclose(read.at(row)(S), enumerated.at(row)(S), rtol=1e-5, atol=1e-6)


def by_hand(tree, z, origin, known, node=0):
    """v(S) of one scikit-learn tree at transformed values z: splits on inputs outside S are
    averaged by cover."""
    left = tree.children_left[node]
    right = tree.children_right[node]
    cover = tree.weighted_n_node_samples
    if left < 0:
        return tree.value[node, 0, 0]
    below = (by_hand(tree, z, origin, known, child) for child in (left, right))
    column = tree.feature[node]
    if origin[column] in known:
        return list(below)[0 if np.float32(z[column]) <= tree.threshold[node] else 1]
    return sum(cover[child] * value for child, value in zip((left, right), below)) / cover[node]


def test_the_path_dependent_game_averages_splits_on_hidden_inputs():
    pipeline = make_pipeline(columns(), DecisionTreeRegressor(max_depth=6, random_state=0)).fit(
        FRAME, TARGET
    )
    game = TreeModel("path").fit(pipeline, FRAME[:20])
    inputs = [
        "age",
        "income",
        "income",
        "city",
        "city",
        "city",
        "size",
        "rooms",
    ]  # the hole of income is one of them
    origin = [FRAME.columns.get_loc(name) for name in inputs]
    for r in (35, 36):
        row = FRAME[r : r + 1]
        z = np.asarray(pipeline[:-1].transform(row)).reshape(-1)
        for size in range(6):
            for known in itertools.combinations(range(5), size):
                mask = np.isin(np.arange(5), known)[None]
                assert game.at(row)(mask)[0] == pytest.approx(
                    by_hand(pipeline[-1].tree_, z, origin, set(known))
                )


@pytest.mark.parametrize("game", ["tree_path", "tree_interventional"])
def test_several_columns_of_one_input_are_one_player(game):
    pipeline = PIPELINES["boosting"]()
    Z = np.asarray(pipeline[:-1].transform(FRAME))
    inner = ws.Explainer(
        pipeline[-1], Z[:100], game=game, groups=[["x1", "x2"], ["x3", "x4", "x5"]]
    )
    outer = ws.Explainer(pipeline, FRAME[:100], game=game)
    expected = inner(Z[100:105])
    found = outer(FRAME[100:105])
    assert found.feature_names == tuple(FRAME.columns)
    np.testing.assert_allclose(found.values, expected.values, rtol=1e-9)
    np.testing.assert_allclose(found.contributions, expected.contributions, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(found.predictions, pipeline.predict(FRAME[100:105]))


def test_by_default_a_pipeline_is_explained_by_its_trees_and_kept_in_files(tmp_path):
    pipeline = PIPELINES["lightgbm"]()
    explainer = ws.Explainer(pipeline, FRAME[:150][MIXED_UP], progress=False)
    explanation = explainer(FRAME[150:160])
    assert explanation.game_info["game"] == "tree_path"
    assert explanation.notes == ("The model makes no use of 1 feature in these rows: 'city'.",)
    np.testing.assert_allclose(explanation.predictions, pipeline.predict(FRAME[150:160]))
    explainer.save(tmp_path / "pipeline")
    again = ws.Explainer.load(tmp_path / "pipeline", pipeline)(FRAME[150:160])
    np.testing.assert_array_equal(again.values, explanation.values)


def test_columns_that_are_dropped_get_nothing():
    front = make_column_transformer((StandardScaler(), ["age"]), ("passthrough", ["rooms"]))
    pipeline = make_pipeline(front, boosted_trees()).fit(FRAME, TARGET)
    explanation = ws.Explainer(pipeline, FRAME[:120], game="tree_path")(FRAME[:4])
    assert not explanation.contributions[:, :, [1, 2, 3]].any()
    assert explanation.contributions[:, :, [0, 4]].any()


def mixed():
    front = make_column_transformer(
        (PCA(2), ["age", "rooms"]), (OrdinalEncoder(), ["city", "size"])
    )
    return make_pipeline(front, boosted_trees()).fit(FRAME, TARGET)


def test_columns_that_are_mixed_are_learned_unless_they_are_one_player():
    explainer = ws.Explainer(mixed(), FRAME[:150], progress=False)
    assert [game.info["game"] for game in explainer.games] == ["marginal", "distilled_trees"]
    (note,) = [note for note in explainer(FRAME[150:152]).notes if "pipeline" in note]
    assert "makes one column out of 'age', 'rooms'" in note
    assert "by groups={'age + rooms': ['age', 'rooms']}." in note
    together = ws.Explainer(mixed(), FRAME[:150], groups=[["age", "rooms"]], progress=False)
    assert together.game.info["game"] == "tree_path"
    assert not any("pipeline" in note for note in together(FRAME[150:152]).notes)
    with pytest.raises(MixedColumnsError, match="one column out of 'age', 'rooms'"):
        ws.Explainer(mixed(), FRAME[:150], game="tree_path")
    grouped = TreeModel("interventional").fit(
        mixed(), ws.inputs.as_table(FRAME[:30], groups=[["age", "rooms"]])
    )
    enumerated = Marginal().fit(
        mixed().predict, ws.inputs.as_table(FRAME[:30], groups=[["age", "rooms"]])
    )
    S = all_coalitions(4)
    np.testing.assert_allclose(grouped.at(FRAME[40:41])(S), enumerated.at(FRAME[40:41])(S))


WIDE = pd.DataFrame(
    RNG.normal(size=(N, 30)), columns=[f"mean of {chr(97 + c % 26)}{c}'s" for c in range(30)]
)


def proposed(model, X, groups=None):
    """The groups that are proposed for a pipeline with mixed columns: the code as it stands there,
    run with `X`."""
    with pytest.raises(MixedColumnsError, match="one player, exactly") as error:
        ws.Explainer(model, X, groups=groups, game="tree_path")
    found = {"X": X}
    exec(re.search(r"by (groups=\{.*\})\.$", str(error.value))[1], found)
    return found["groups"]


def exact(model, X, groups):
    """How many players there are once the trees of a pipeline are read, in which every row's values
    are exact."""
    explanation = ws.Explainer(
        model, X, groups=groups, game="tree_path", judge="game", family="shapley"
    )(X[:5])
    np.testing.assert_allclose(explanation.predictions, model.predict(X[:5]))
    np.testing.assert_allclose(explanation.efficiency_gap, 0, atol=1e-9)
    return explanation.values.shape[1]


@pytest.mark.parametrize("form", [pd.DataFrame, np.asarray])
def test_the_groups_proposed_for_mixed_columns_make_trees_exact_where_all_are_mixed(form):
    X = form(WIDE)
    pipeline = make_pipeline(PCA(2), boosted_trees()).fit(X, TARGET)
    assert exact(pipeline, X, proposed(pipeline, X)) == 1


def test_the_groups_proposed_for_mixed_columns_name_each_of_them_where_others_are_not():
    front = ColumnTransformer([("pca", PCA(3), list(WIDE.columns[3:28]))], remainder="passthrough")
    pipeline = make_pipeline(front, boosted_trees()).fit(WIDE, TARGET)
    groups = proposed(pipeline, WIDE)
    assert list(groups.values()) == [list(WIDE.columns[3:28])]
    assert exact(pipeline, WIDE, groups) == 6


def test_groups_proposed_for_mixed_columns_keep_those_there_are():
    parts = [
        (name, PCA(2), list(WIDE.columns[at]))
        for name, at in (("a", slice(2, 5)), ("b", slice(10, 30)))
    ]
    pipeline = make_pipeline(
        ColumnTransformer(parts, remainder="passthrough"), boosted_trees()
    ).fit(WIDE, TARGET)
    own = {"mine": list(WIDE.columns[4:6]), "yours": list(WIDE.columns[7:9])}
    first = proposed(pipeline, WIDE, own)
    second = proposed(pipeline, WIDE, first)
    assert sorted(map(len, second.values())) == [2, 4, 20]
    assert exact(pipeline, WIDE, second) == 7


def test_a_pipeline_without_trees_has_no_note_on_mixing():
    linear = make_pipeline(PCA(2), LinearRegression()).fit(FRAME[["age", "rooms"]], TARGET)
    assert (
        ws.Explainer(
            linear, FRAME[["age", "rooms"]], game="auto", judge="marginal"
        ).background.notes
        == ()
    )


FILLED = FRAME[NUMBERS].fillna(0.0)


def origins_of(step, table=FILLED):
    step.fit(table, CLASS)
    return [sorted(of) for of in source_columns(step, table.shape[1])]


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        (FunctionTransformer(np.tanh), [[0], [1], [2]]),
        (FunctionTransformer(), [[0], [1], [2]]),
        (SelectKBest(k=2), [[0], [1]]),
        (KBinsDiscretizer(2, strategy="uniform"), [[0], [0], [1], [1], [2], [2]]),
        (SplineTransformer(n_knots=2, degree=1), [[0], [0], [1], [1], [2], [2]]),
        (PolynomialFeatures(2, interaction_only=True), [[], [0], [1], [2], [0, 1], [0, 2], [1, 2]]),
        (FeatureUnion([("a", StandardScaler()), ("b", PCA(1))]), [[0], [1], [2], [0, 1, 2]]),
        (Normalizer(), [[0, 1, 2]] * 3),
        (KNNImputer(), [[0, 1, 2]] * 3),
        (
            ColumnTransformer([("a", PCA(1), [2]), ("b", "drop", [0])], remainder="passthrough"),
            [[2], [1]],
        ),
        (ColumnTransformer([("a", StandardScaler(), slice("income", "rooms"))]), [[1], [2]]),
        (
            ColumnTransformer([("a", PCA(1), [True, False, True]), ("b", "passthrough", [-2])]),
            [[0, 2], [1]],
        ),
        (ColumnTransformer([("a", StandardScaler(), make_column_selector("o"))]), [[1], [2]]),
    ],
    ids=lambda one: type(one).__name__,
)
def test_every_transformed_column_knows_its_inputs(step, expected):
    assert origins_of(step) == expected
    made = csr_array(step.transform(FILLED)).toarray()
    for c in range(3):  # what does not come from a column does not change with it
        changed = FILLED.copy()
        changed.iloc[:, c] = np.roll(changed.iloc[:, c], 5)
        other = csr_array(step.transform(changed)).toarray()
        stays = [j for j, of in enumerate(expected) if c not in of]
        np.testing.assert_array_equal(other[:, stays], made[:, stays])


def test_text_and_targets_of_one_column_belong_to_it():
    words = make_column_transformer((CountVectorizer(), "city"), (TargetEncoder(), ["size"]))
    assert origins_of(words, FRAME) == [[2], [2], [2], [3]]


def test_a_function_of_ones_own_may_mix():
    def crossed(rows):
        return np.asarray(rows) @ np.ones((3, 3))

    step = FunctionTransformer(crossed, feature_names_out="one-to-one")
    assert origins_of(step) == [[0, 1, 2]] * 3
    silent = make_pipeline(FunctionTransformer(crossed), boosted_trees()).fit(
        FRAME[NUMBERS].fillna(0.0), TARGET
    )
    with pytest.raises(ValueError, match="does not tell the columns"):
        ws.Explainer(silent, FRAME[NUMBERS].fillna(0.0), game="tree_path")


def test_values_that_become_infinite_are_refused():
    with np.errstate(divide="ignore"):
        front = make_column_transformer(
            (FunctionTransformer(np.reciprocal), ["rooms"]), ("passthrough", ["age"])
        )
        pipeline = make_pipeline(front, light()).fit(FRAME[["rooms", "age"]], TARGET)
        explainer = ws.Explainer(pipeline, FRAME[:100][["rooms", "age"]], game="tree_path")
        with pytest.raises(ValueError, match="infinite"):
            explainer(pd.DataFrame({"rooms": [0.0], "age": [1.0]}))


# names that say nothing, or something else
# ----------------------------------------------------------


def combined(column, category):
    """A name of a one-hot column that leaves its input out."""
    return f"is_{category}"


def misleading(column, category):
    """A name that is the token of the first input."""
    return f"\ue0000\ue001{category}"


HOSTILE = FRAME.assign(
    city=FRAME["city"].map({"Bonn": "\ue0000\ue001", "Köln": "\ue0009\ue001", "Ulm": "Ulm"}),
    size=FRAME["size"],
)


@pytest.mark.parametrize("combiner", ["concat", combined, misleading])
@pytest.mark.parametrize("table", [FRAME, HOSTILE], ids=["plain", "hostile categories"])
def test_one_hot_columns_belong_to_their_input_whatever_they_are_called(combiner, table):
    towns = OneHotEncoder(feature_name_combiner=combiner)
    front = make_column_transformer(("passthrough", ["age", "rooms"]), (towns, ["size", "city"]))
    pipeline = make_pipeline(front, boosted_trees()).fit(table, TARGET)
    read = TreeModel().fit(pipeline, table[:30])
    enumerated = Marginal().fit(pipeline.predict, table[:30])
    S = all_coalitions(5)
    for r in (40, 49):
        row = table[r : r + 1]
        np.testing.assert_allclose(read.at(row)(S), enumerated.at(row)(S), rtol=1e-9)
    values = ws.Explainer(pipeline, table[:60], game="tree_path", progress=False)(
        table[60:70]
    ).values
    assert not values[:, 1].any()  # income is not passed on
    assert values[:, 3].any()


@pytest.mark.parametrize(
    "choices",
    [
        {},
        {"drop": "first"},
        {"drop": "if_binary"},
        {"drop": ["a", "x", "u"]},
        {"max_categories": 3},
        {"min_frequency": 40, "drop": "first"},
        {"min_frequency": 40, "handle_unknown": "infrequent_if_exist"},
        {"min_frequency": 60, "drop": "if_binary"},
    ],
    ids=str,
)
def test_one_hot_columns_are_counted_as_they_are_made(choices):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "many": rng.choice(list("abcde"), 200, p=[0.5, 0.2, 0.15, 0.1, 0.05]),
            "two": rng.choice(list("xy"), 200),
            "few": rng.choice(["u", "v", None], 200),
        }
    )
    step = OneHotEncoder(
        feature_name_combiner=lambda column, category: "same", sparse_output=False, **choices
    ).fit(table)
    made = [next(iter(of)) for of in source_columns(step, 3)]
    before = step.transform(table)
    assert len(made) == before.shape[1]
    for c in range(3):
        changed = table.copy()
        changed.iloc[:, c] = np.roll(changed.iloc[:, c], 5)
        differs = (step.transform(changed) != before).any(axis=0)
        np.testing.assert_array_equal(differs, np.array(made) == c)


def test_targets_of_several_classes_belong_to_their_input_whatever_classes_are_called():
    classes = np.array(["\ue0001\ue001", "\ue0000\ue001", "c"])[np.digitize(TARGET, [1.5, 4])]
    encoder = TargetEncoder(random_state=0).fit(FRAME[["size", "city"]], classes)
    assert source_columns(encoder, 2) == [{0}] * 3 + [{1}] * 3


def test_only_a_constant_belongs_to_no_input():
    step = PolynomialFeatures(3).fit(FILLED)
    made = source_columns(step, 3)
    for of, values in zip(made, step.transform(FILLED).T, strict=True):
        assert (of == frozenset()) == (np.ptp(values) == 0)


class OfOnesOwn(TransformerMixin, BaseEstimator):
    """A user's step of a function, which gives its columns names at will."""

    def __init__(self, function, names):
        self.function, self.names = function, names

    def fit(self, rows, y=None):
        self.fitted_ = True
        return self

    def transform(self, rows):
        return self.function(np.asarray(rows, dtype=float))

    def get_feature_names_out(self, inputs=None):
        return self.names(inputs)


def assert_refused(front, match):
    pipeline = make_pipeline(front, boosted_trees()).fit(FILLED, TARGET)
    with pytest.raises(UnreadableModelError, match=match):
        ws.Explainer(pipeline, FILLED[:100], game="tree_path", progress=False)


def squares(rows):
    return np.concatenate([rows, rows**2], axis=1)


@pytest.mark.parametrize("names", [["a"], ["a"] * 3, ["a"] * 9], ids=len)
def test_a_step_that_names_another_number_of_columns_than_it_makes_is_refused(names):
    own = OfOnesOwn(squares, lambda inputs: names)
    assert_refused(own, "makes 6 columns but names|one column out of")
    assert_refused(
        make_column_transformer((own, ["age"]), ("passthrough", ["income", "rooms"])),
        "makes 2 columns but names",
    )
    union = FeatureUnion([("own", own), ("rest", StandardScaler())])
    assert_refused(union, "columns but names|one column out of")


def test_steps_that_name_too_many_and_too_few_columns_are_noticed_where_columns_move():
    long, short = (
        OfOnesOwn(function, lambda inputs, n=n: ["a"] * n)
        for function, n in ((squares, 3), (squares, 1))
    )
    parts = [("a", make_column_transformer((long, ["age"])))]
    with pytest.raises(UnreadableModelError, match="makes 2 columns but names 3"):
        source_columns(FeatureUnion(parts).fit(FILLED), 3)
    own = make_pipeline(
        FunctionTransformer(lambda rows: rows[["age"]], feature_names_out=lambda *_: ["age"]), short
    )
    assert [len(of) for of in source_columns(own.fit(FILLED), 3)] == [3]


def test_a_step_that_fails_to_name_its_columns_is_refused():
    def broken(inputs):
        raise NotImplementedError("later")

    assert_refused(
        OfOnesOwn(np.tanh, broken), "OfOnesOwn does not tell the columns that it makes: later"
    )


class Neighbour(StandardScaler):
    """A scaler whose first column is made of the second, and which passes for one of
    scikit-learn's."""

    def transform(self, rows):
        return super().transform(rows)[:, [1, 1, 2]]


def test_a_step_that_takes_other_columns_than_it_says_is_noticed(monkeypatch):
    assert_refused(
        Neighbour(), "one column out of"
    )  # of a class that is not known, every column may come from all
    monkeypatch.setattr(Neighbour, "__module__", "sklearn.preprocessing._data")
    assert_refused(Neighbour(), "changes with other columns than those that its step names")


def test_a_column_without_input_must_not_change(monkeypatch):
    monkeypatch.setattr(
        "weightedshap.trees.pipelines.source_columns",
        lambda step, n: [frozenset([0]), frozenset(), frozenset([2])],
    )
    assert_refused(StandardScaler(), "changes with other columns than those that its step names")


@pytest.mark.parametrize("kind", [StandardScaler, OneHotEncoder])
def test_a_subclass_of_ones_own_may_mix(kind):
    own = type("Own", (kind,), {})()
    assert origins_of(
        own, FRAME[["rooms"]].assign(size=FRAME["size"].map({"s": 0.0, "m": 1.0, "l": 2.0}))
    )[0] == [0, 1]


def test_a_step_called_like_one_of_scikit_learns_may_mix():
    step = type("FunctionTransformer", (OfOnesOwn,), {})(np.tanh, lambda inputs: ["a", "b", "c"])
    assert origins_of(step) == [[0, 1, 2]] * 3


def test_a_pipeline_that_predicts_a_constant_asks_about_no_column():
    pipeline = make_pipeline(PCA(2), DecisionTreeRegressor()).fit(FILLED, np.ones(N))
    explanation = ws.Explainer(pipeline, FILLED[:30], game="tree_path", progress=False)(FILLED[:2])
    assert not explanation.values.any()


def test_columns_on_which_no_tree_splits_may_be_mixed():
    front = FeatureUnion([("own", StandardScaler()), ("all", PCA(1))])
    pipeline = make_pipeline(front, DecisionTreeRegressor(max_depth=2, random_state=0)).fit(
        FILLED, FILLED["rooms"]
    )
    assert set(pipeline[-1].tree_.feature) == {-2, 2}
    read = TreeModel().fit(pipeline, FILLED[:20])
    enumerated = Marginal().fit(pipeline.predict, FILLED[:20])
    row = FILLED[40:41]
    S = all_coalitions(3)
    np.testing.assert_allclose(read.at(row)(S), enumerated.at(row)(S))


def test_values_that_become_too_large_are_refused_as_those_of_the_pipeline():
    front = make_column_transformer(
        (OneHotEncoder(), ["size"]), (FunctionTransformer(np.exp2), ["rooms"])
    )
    pipeline = make_pipeline(front, light()).fit(FRAME, TARGET)
    explainer = ws.Explainer(pipeline, FRAME[:100], game="tree_path", progress=False)
    with pytest.raises(ValueError, match="The pipeline turns a value into"):
        explainer(FRAME[:1].assign(rooms=600.0))
