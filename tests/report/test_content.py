"""The HTML page: what it holds, what it forbids, how large it is. How it behaves is in
test_report_browser."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
import sys
from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import weightedshap as ws
from tests.oracles import random_game
from tests.plots.examples import classifier, two_games
from weightedshap.curves import area, mean_interval
from weightedshap.explanation import aggregates as sums
from weightedshap.jobs import cli
from weightedshap.plots import data as reading
from weightedshap.report import content, page
from weightedshap.report.content import contents

D = 5


@cache
def make_explanation(n=6, outputs=0, estimator="exact", groups=None):
    rng = np.random.default_rng(3)
    background = rng.normal(size=(8, D))
    X = rng.normal(size=(n, D))
    slopes = rng.normal(size=(D, max(outputs, 1)))

    def smooth(rows):
        values = np.tanh(rows @ slopes) + rows[:, :1] * rows[:, -1:]
        return values if outputs else values[:, 0]

    return ws.Explainer(
        smooth,
        background,
        game="marginal",
        estimator=estimator,
        groups=None if groups is None else dict(groups),
    )(X)


def unpack(html, name):
    found = re.search(rf'<script type="text/plain" id="data-{name}">([^<]*)</script>', html)
    return gzip.decompress(base64.b64decode(found[1]))


def head_of(explanation, evaluation=None):
    return json.loads(json.dumps(contents(explanation, evaluation)[0], allow_nan=False))


def array_of(explanation, name):
    """One of the arrays that the explorer reads, (rows, outputs, …)."""
    head, packed = contents(explanation)
    start, size = head["arrays"][name]
    count = len(head["rows"]) * len(head["outputs"]) * size
    numbers = np.frombuffer(packed, dtype="<f4")[start : start + count]
    return numbers.reshape(len(head["rows"]), len(head["outputs"]), size)


class Evaluation:
    """The part of an `Evaluation` that the page reads."""

    methods = ("WeightedSHAP", "Shapley", "greedy")
    metrics = ("recovery", "exclusion")
    judges = ("independent", "own")
    notes = ("MCI was left out.",)
    feature_names = ()

    def curves(self, judge):
        rng = np.random.default_rng(len(judge))
        return {method: rng.random((7, D + 1)) for method in self.methods}

    def mean(self, judge):
        areas = [area(curve).mean() for curve in self.curves(judge).values()]
        return np.column_stack([areas, [1.0, 2.0, np.nan]])

    def margin(self, judge):
        return np.full((3, 2), 0.25)


@pytest.mark.parametrize(
    "name", ["values", "shapley", "orders", "curves", "base_values", "predictions"]
)
@pytest.mark.parametrize("outputs", [0, 3])
def test_the_explorer_has_the_numbers_of_the_explanation(name, outputs):
    names = {
        "values": "phi",
        "orders": "order",
        "curves": "curve",
        "base_values": "base",
        "predictions": "prediction",
    }
    explanation = make_explanation(outputs=outputs)
    expected = (
        getattr(explanation, name).reshape(len(explanation), -1, max(outputs, 1)).swapaxes(1, 2)
    )
    np.testing.assert_allclose(
        array_of(explanation, names.get(name, name)), expected, rtol=1e-5, atol=1e-30
    )


def test_sizes_are_those_of_the_leading_features():
    explanation = make_explanation(n=2)
    found = array_of(explanation, "sizes").reshape(2, D, D)
    for row, order in enumerate(explanation.orders):
        np.testing.assert_allclose(
            found[row], explanation.contributions[row][:, order].T, rtol=1e-5
        )


def test_unknown_errors_stay_unknown():
    explanation = make_explanation(estimator="permutation")
    errors = explanation.standard_errors.copy()
    errors[1] = np.nan
    found = array_of(replace(explanation, standard_errors=errors), "error")[:, 0]
    np.testing.assert_allclose(found, errors, rtol=1e-5)
    assert "error" not in head_of(make_explanation())["arrays"]


def test_areas_have_the_intervals_of_the_rows_and_the_change_is_paired():
    explanation = make_explanation()
    own = head_of(explanation)["summaries"][0]["own"]
    chosen = area(explanation.curves)
    reference = area(explanation.reference_curves["shapley"])
    assert own["areas"][0][0] == "WeightedSHAP"
    np.testing.assert_allclose(own["areas"][0][1:], mean_interval(chosen), rtol=1e-5)
    np.testing.assert_allclose(own["areas"][1][1:], mean_interval(reference), rtol=1e-5)
    mean, margin = mean_interval(chosen - reference)
    np.testing.assert_allclose(
        [own["change"]["mean"], own["change"]["margin"]],
        np.array([mean, margin]) / reference.mean(),
        rtol=1e-5,
    )
    assert own["change"]["better"] + own["change"]["equal"] == pytest.approx(1)


def test_one_row_has_no_interval():
    own = head_of(make_explanation(n=1))["summaries"][0]["own"]
    assert own["change"]["margin"] is None
    assert own["areas"][0][2] is None


def test_weights_shown_are_those_chosen():
    explanation = make_explanation()
    weights = head_of(explanation)["summaries"][0]["weights"]
    shares = {
        label: float((explanation.weight_labels == label).mean())
        for label in explanation.family.labels
    }
    assert dict(zip(weights["names"], *weights["shares"], strict=True)) == pytest.approx(
        shares, rel=1e-5
    )
    assert weights["games"] == []
    assert weights["names"][weights["uniform"]] == "Beta(1,1)"
    assert weights["names"][0] == "first"


def test_of_many_weights_only_the_chosen_and_shapley_are_shown():
    explanation = make_explanation().reweight("wide")
    shown = set(head_of(explanation)["summaries"][0]["weights"]["names"])
    assert len(explanation.family) > 20
    assert set(explanation.weight_labels) <= shown <= {*explanation.weight_labels, "Beta(1,1)"}


def test_an_evaluation_is_shown_judge_by_judge():
    shown = head_of(make_explanation(), Evaluation())["evaluation"]
    judge = shown["judges"]["independent"]
    np.testing.assert_allclose(
        [mean for _, mean, _ in judge["areas"]], Evaluation().mean("independent")[:, 0], rtol=1e-5
    )
    assert [name for name, *_ in judge["curves"]] == ["WeightedSHAP", "Shapley", "greedy"]
    assert judge["rows"] == 7
    assert judge["mean"][2][1] is None
    assert shown["larger"] == [False, True]
    assert shown["fair"] == "independent"
    assert judge["told"] == "'independent' games of rows that chose nothing"
    assert head_of(make_explanation(), Evaluation())["notes"] == ["MCI was left out."]
    assert head_of(make_explanation())["evaluation"] is None


def test_a_real_evaluation_is_shown():
    rng = np.random.default_rng(0)
    explainer = ws.Explainer(
        lambda rows: np.tanh(rows @ [1.0, -2.0, 0.5]), rng.normal(size=(12, 3)), game="marginal"
    )
    X = rng.normal(size=(4, 3))
    from weightedshap.evaluation import evaluate

    found = evaluate(
        explainer, X, methods=["WeightedSHAP", "Shapley"], judges=["independent", "surrogate"]
    )
    shown = head_of(explainer(X), found)["evaluation"]
    assert shown["fair"] == "independent"
    assert list(shown["judges"]) == ["independent", "surrogate", "own"]
    assert shown["judges"]["independent"]["change"]["mean"] is not None
    misfits = {judge: each["misfit"] for judge, each in shown["judges"].items()}
    assert misfits == pytest.approx(
        {judge: found.misfit(judge) for judge in found.judges}, abs=1e-12
    )
    assert misfits["surrogate"] > 0.05 > misfits["own"]


def test_several_explainers_are_compared_by_their_names():
    X = np.random.default_rng(0).normal(size=(40, 3))
    made = {
        name: ws.Explainer(lambda rows: rows[:, 0] * rows[:, 1] + rows[:, 2], X, game=name)
        for name in ("baseline", "marginal")
    }
    found = ws.evaluate(
        made, X[:5], judges="independent", methods=["WeightedSHAP", "Shapley", "random"]
    )
    judge = head_of(made["baseline"](X[:5]), found)["evaluation"]["judges"]["independent"]
    assert judge["leading"] == ["baseline", "marginal"]
    assert [name for name, *_ in judge["curves"]] == ["baseline", "marginal", "Shapley"]
    assert judge["change"]["mean"] is not None
    own = head_of(made["baseline"](X[:5]), ws.evaluate(made["baseline"], X[:5], against="own"))[
        "evaluation"
    ]
    assert own["fair"] is None


def test_values_are_shown_as_people_read_them():
    frame = pd.DataFrame(
        {
            "real": [1 / 3, np.nan],
            "whole": pd.array([3, None], dtype="Int64"),
            "town": pd.Categorical(["Köln", None]),
            "when": pd.to_datetime(["2024-01-02", None]),
            "long": ["y" * 500, "true"],
        },
        index=["a", "b"],
    )
    head = head_of(replace(make_explanation(n=2), data=frame))
    assert head["cells"][0][:4] == ["0.333333", "3", "Köln", "2024-01-02 00:00:00"]
    assert head["cells"][1] == ["missing"] * 4 + ["true"]
    assert len(head["cells"][0][4]) == 120
    assert head["labels"] == ["a", "b"]
    assert head_of(make_explanation())["labels"] is None


def test_columns_of_one_name_keep_their_places():
    frame = pd.DataFrame(np.arange(10.0).reshape(2, 5), columns=list("aabcd"))
    head = head_of(replace(make_explanation(n=2), data=frame))
    assert head["cells"][1] == ["5", "6", "7", "8", "9"]
    assert head["column_of"] == [0, 1, 2, 3, 4]


def test_polars_data_are_shown():
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({name: [1.5, None] for name in "abcde"})
    head = head_of(replace(make_explanation(n=2), data=frame))
    assert head["columns"] == list("abcde")
    assert head["cells"] == [["1.5"] * 5, ["missing"] * 5]


def test_groups_have_no_value_but_their_columns_are_listed():
    head = head_of(make_explanation(groups=(("pair", (0, 1)),)))
    pair = head["features"].index("pair")
    assert head["column_of"][pair] == -1
    assert all(
        head["columns"][c] == head["features"][i]
        for i, c in enumerate(head["column_of"])
        if i != pair
    )
    assert len(head["cells"][0]) == D


def test_a_bare_game_has_no_data():
    head = head_of(ws.explain(random_game(4)))
    assert head["cells"] == [[]]
    assert head["column_of"] == [-1] * 4


def test_one_feature_and_a_selection_of_features_are_shown():
    rng = np.random.default_rng(0)
    alone = ws.Explainer(lambda rows: rows[:, 0] ** 2, rng.normal(size=(5, 1)), game="marginal")(
        rng.normal(size=(2, 1))
    )
    assert head_of(alone)["features"] == ["x0"]
    head = head_of(make_explanation()[:, ["x1", "x3"]])
    assert head["features"] == ["x1", "x3"]
    assert ["features", "2 of 5"] in head["facts"]


def test_delta_that_was_not_kept_is_not_shown():
    head = head_of(replace(make_explanation(), contributions=None))
    assert "sizes" not in head["arrays"]


def test_the_game_is_described_with_its_held_out_error():
    info = {
        "game": "tree_surrogate",
        "held_out_error": 0.25,
        "held_out_error_by_size": np.array([0.5, np.nan]),
        "trees": 1234,
    }
    learned = {**info, "variance": 0.75}
    head = head_of(replace(make_explanation(), game_info=learned, judge_info=learned))
    assert head["held_out"] == {"errors": [0.5, None], "variance": 0.75}
    facts = {
        ("explained", "tree_surrogate"),
        ("trees", "1,234"),
        ("held-out squared error", "0.25"),
    }
    assert facts | {("judged by", "the same game")} <= set(map(tuple, head["facts"]))
    assert head["stopped"] == [[make_explanation().stopped[0], 6]]
    assert head_of(make_explanation())["held_out"] is None


def test_the_judge_is_described_separately_from_the_game():
    head = head_of(classifier())
    facts = dict(head["facts"])
    assert (facts["explained"], facts["judged by"]) == (
        "tree_path (log-odds)",
        "anchored (probability)",
    )
    assert {"tree_path: trees", "judge: trees", "judge: held-out squared error"} <= set(facts)
    assert head["scales"] == ["log-odds", "probability"]
    assert len(head["held_out"]["errors"]) == 5
    assert array_of(classifier(), "judged")[:, 0, 0] == pytest.approx(
        classifier().judge_predictions, rel=1e-4
    )
    assert (head["games"], head["first"]) == (None, None)


def test_of_games_that_compete_the_winner_of_each_row_is_named():
    explanation = two_games()
    head = head_of(explanation)
    assert [each for (each,) in head["games"]] == list(explanation.game_labels)
    assert [each for (each,) in head["weights"]] == list(explanation.weight_labels)
    weights = head["summaries"][0]["weights"]
    assert weights["games"] == ["baseline", "marginal"]
    assert np.shape(weights["shares"]) == (2, 13)
    won = [(explanation.game_labels == game).mean() for game in weights["games"]]
    assert np.sum(weights["shares"], axis=1) == pytest.approx(won)
    facts = dict(head["facts"])
    assert facts["weights in the family"] == "26 pairs: 13 for each of 2 games"
    assert {
        "baseline: background rows",
        "marginal: background rows",
        "judge: background rows",
    } <= set(facts)
    assert head["first"] == "baseline"


@pytest.mark.parametrize(
    ("select", "words"),
    [
        ("per_row", "a weight for each row"),
        ("shared", "one weight for all rows"),
        (
            "one_standard_error",
            "one weight for all rows, the nearest to Shapley within one standard error of the best",
        ),
    ],
)
def test_the_way_the_weight_was_chosen_is_described(select, words):
    explanation = make_explanation().reweight("paper", select=select)
    assert (len(set(explanation.weight_labels)) > 1) == (select == "per_row")
    assert dict(head_of(explanation)["facts"])["selection"] == words


def test_only_the_pages_own_scripts_may_run_and_nothing_may_load():
    html = page(make_explanation())
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', html)[1]
    own = re.findall(r"<script>(.*?)</script>", html, re.S)
    assert len(own) == 1
    texts = [own[0].encode(), unpack(html, "plotly")]
    hashes = [
        f"'sha256-{base64.b64encode(hashlib.sha256(text).digest()).decode()}'" for text in texts
    ]
    assert policy.startswith(f"default-src 'none'; script-src {' '.join(hashes)};")
    outside = html.replace(own[0], "").replace('href="#explorer"', "")  # a place in the page itself
    assert not re.search(r"\b(src|href)\s*=", outside)


def test_the_page_holds_the_collected_contents():
    html = page(make_explanation())
    (head, numbers) = contents(make_explanation())
    assert json.loads(unpack(html, "head")) == head
    assert unpack(html, "numbers") == numbers
    assert b"plotly.js" in unpack(html, "plotly")[:100]


def test_the_markup_contains_no_name_of_the_data():
    evil = "</script><script>alert(1)</script>"
    explanation = replace(
        make_explanation(),
        feature_names=(evil, "\"'", "\u2028", "\ud800", "🐘"),
        output_names=(evil,),
        _notes=(evil,),
        stopped=(evil,) * 6,
        data=pd.DataFrame([[evil] * D] * 6, columns=[evil] * D, index=[evil] * 6),
    )
    html = page(explanation)
    assert "alert(1)" not in html
    assert "\u2028" not in html
    head = head_of(explanation)
    assert head["features"] == list(explanation.feature_names)
    assert head["cells"][0][0] == evil


def test_the_same_explanation_gives_the_same_bytes(tmp_path):
    make_explanation().report(tmp_path / "one.html")
    make_explanation().report(tmp_path / "two.html")
    assert (tmp_path / "one.html").read_bytes() == (tmp_path / "two.html").read_bytes()
    assert (tmp_path / "one.html").read_text(encoding="utf-8") == page(make_explanation())


def wide(n, d):
    """Random numbers in the shape of an explanation of n rows and d features, sampled, with frames
    of numbers."""
    rng = np.random.default_rng(0)
    phi = rng.normal(size=(n, d))
    curves = np.abs(rng.normal(size=(n, d + 1)))
    family = ws.weights.paper(d)
    return ws.Explanation(
        values=phi,
        base_values=np.zeros(n),
        predictions=phi.sum(axis=1),
        judge_predictions=phi.sum(axis=1),
        game_labels=np.array(["marginal"] * n),
        data=pd.DataFrame(rng.normal(size=(n, d))),
        feature_names=tuple(f"a feature with the number {i}" for i in range(d)),
        output_names=("output 0",),
        contributions=rng.normal(size=(n, d, d)),
        shapley=phi[:, ::-1],
        shapley_errors=None,
        weights=np.full((n, d), 1 / d),
        weight_labels=np.array(["Beta(1,1)"] * n),
        scores=np.zeros((n, len(family))),
        family=family,
        orders=np.argsort(-np.abs(phi), axis=1),
        curves=curves,
        reference_curves=dict.fromkeys(("shapley", "first", "last"), curves),
        standard_errors=np.abs(phi),
        n_evaluations=np.full(n, 100),
        stopped=("enough",) * n,
        game_info={"game": "marginal"},
        judge_info={"game": "marginal"},
        endpoint_gaps={"empty": np.zeros(n), "full": np.zeros(n)},
    )


def test_a_thousand_rows_of_fifty_features_fit_in_ten_megabytes():
    html = page(wide(1_000, d=50))
    assert json.loads(unpack(html, "head"))["rows"] == list(range(1_000))
    assert len(html.encode()) < 10_000_000


def test_of_ten_thousand_rows_as_many_as_fit_can_be_explored():
    explanation = wide(10_000, d=20)
    html = page(explanation)
    head = json.loads(unpack(html, "head"))
    assert head["n"] == 10_000
    assert 1_000 < len(head["rows"]) < 10_000
    assert head["rows"][0] == 0
    assert head["rows"][-1] == 9_999
    assert len(np.unique(np.diff(head["rows"]))) <= 2
    assert len(html.encode()) < 10_000_000
    np.testing.assert_allclose(
        head["summaries"][0]["importance"]["chosen"][0],
        np.abs(explanation.values).mean(axis=0).max(),
        rtol=1e-5,
    )


def test_long_texts_count_towards_the_size(monkeypatch):
    monkeypatch.setattr(content, "EXPLORED_BYTES", 50_000)
    plain = len(head_of(wide(200, d=10))["rows"])
    texts = replace(wide(200, d=10), data=pd.DataFrame([["z" * 100] * 10] * 200))
    assert 1 <= len(head_of(texts)["rows"]) < plain < 200


def test_a_missing_plotly_is_named_with_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "plotly.offline", None)
    with pytest.raises(ImportError, match=r"plotly .*pip install \"weightedshap\[report\]\""):
        make_explanation().report("page.html")


def run(*arguments):
    return CliRunner().invoke(cli.main, ["report", *map(str, arguments)], catch_exceptions=False)


@pytest.fixture
def saved(tmp_path):
    make_explanation().save(tmp_path / "explanation.npz")
    return tmp_path / "explanation.npz"


def test_the_command_writes_the_page_and_says_where(saved, tmp_path):
    result = run(saved, "-o", tmp_path / "page.html")
    assert result.exit_code == 0
    assert str(tmp_path / "page.html") in result.output
    assert "Explained: marginal (prediction)    judged by: the same game" in result.output
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == page(make_explanation())


def test_the_command_takes_a_saved_evaluation(saved, tmp_path):
    X = np.random.default_rng(0).normal(size=(40, D))
    explainer = ws.Explainer(lambda rows: rows.sum(axis=1), X, game="baseline", progress=False)
    evaluation = ws.evaluate(
        explainer, X[:5], methods=["WeightedSHAP", "Shapley"], judges="independent"
    )
    evaluation.save(tmp_path / "evaluation.npz")
    assert (
        run(
            saved, "-o", tmp_path / "page.html", "--evaluation", tmp_path / "evaluation.npz"
        ).exit_code
        == 0
    )
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == page(
        make_explanation(), evaluation
    )
    assert run(saved, "--evaluation", saved).exit_code == 3


@pytest.mark.parametrize(
    ("written", "message"),
    [(b"hello", "not a zip file"), (None, "truncated"), (b"", "not a zip file")],
)
def test_the_command_refuses_a_file_that_is_no_explanation(written, message, saved, tmp_path):
    saved.write_bytes(saved.read_bytes()[:2000] if written is None else written)
    result = run(saved, "-o", tmp_path / "page.html")
    assert result.exit_code == 3
    assert result.output.startswith("Error: ")
    assert message in result.output
    assert not (tmp_path / "page.html").exists()


def test_the_command_refuses_paths_that_do_not_exist(saved, tmp_path):
    assert run(tmp_path / "none.npz").exit_code == 2
    result = run(saved, "-o", tmp_path / "no" / "page.html")
    assert result.exit_code == 3
    assert "cannot be read or written: No such file or directory" in result.output
    assert run(saved, "-o", tmp_path).exit_code == 2


def test_the_command_names_the_extra(saved, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "plotly.offline", None)
    result = run(saved, "-o", tmp_path / "page.html")
    assert result.exit_code == 1
    assert 'pip install "weightedshap[report]"' in result.output


def test_an_evaluation_of_other_data_is_refused():
    with pytest.raises(
        ValueError, match="is of 5 features, the explanation of 4: they are of other data"
    ):
        page(classifier(), Evaluation())
    other = Evaluation()
    other.feature_names = ("income", "x1", "x2", "x3", "x4")
    with pytest.raises(ValueError, match=r"without 'x0'.*explainer of this explanation"):
        contents(make_explanation(), other)
    other.feature_names = make_explanation().feature_names
    assert contents(make_explanation()[:, [1, 2]], other)[0]["evaluation"]


def test_evaluate_names_the_features_it_ranked(tmp_path):
    X = np.random.default_rng(0).normal(size=(30, 3))
    explainer = ws.Explainer(
        lambda rows: rows[:, 0] * rows[:, 1], X, game="baseline", progress=False
    )
    evaluation = ws.evaluate(
        explainer, X[:3], against="own", methods=["WeightedSHAP", "Shapley"], metrics=[]
    )
    assert evaluation.feature_names == ("x0", "x1", "x2")
    evaluation.save(tmp_path / "evaluation.npz")
    assert ws.Evaluation.load(tmp_path / "evaluation.npz").feature_names == ("x0", "x1", "x2")
    page(explainer(X[:3]), evaluation)


def test_a_sample_of_many_rows_is_shown_with_summaries_of_all():
    every = make_explanation(n=40)
    sample = make_explanation(n=40)[::4]
    whole = content.AllRows([sums.sum_output(every)], range(0, 40, 4))
    head = contents(sample, whole=whole)[0]
    assert head["n"] == 40
    assert head["rows"] == list(range(0, 40, 4))
    assert head["summaries"] == contents(every)[0]["summaries"]
    assert "WeightedSHAP: 40 rows, 5 features" in page(sample, whole=whole)


@pytest.mark.parametrize("outputs", [0, 3])
def test_the_explorer_has_the_factor_of_each_row(outputs):
    explanation = make_explanation(outputs=outputs)
    found = array_of(explanation, "factor")[..., 0]
    for output in range(max(outputs, 1)):
        one = explanation[..., output] if outputs else explanation
        np.testing.assert_allclose(found[:, output], reading.display_factors(one), rtol=1e-5)
