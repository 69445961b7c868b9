"""fit, explain, evaluate, report and show, as a person at a terminal meets them; runs have files of
their own."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import weightedshap as ws
from tests.jobs import example_run
from weightedshap.jobs import cli
from weightedshap.jobs import exit_codes as stops
from weightedshap.jobs.run import load_sample
from weightedshap.report import AllRows
from weightedshap.report.content import contents


def run(*arguments):
    return CliRunner().invoke(cli.main, [str(text) for text in arguments], catch_exceptions=False)


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    folder = example_run.write_files(tmp_path_factory.mktemp("run"), n=150)
    assert example_run.explain(folder, folder / "out").exit_code == 0
    return folder


def fitted(home, out, **more):
    given = example_run.arguments(home, out, **more)
    for name in ("--rows", "--part-rows"):
        at = given.index(name)
        del given[at : at + 2]
    return run("fit", *given)


def test_fit_keeps_an_explainer_that_explain_takes(home, tmp_path):
    result = fitted(home, tmp_path / "explainer")
    assert "explains tree_path, 6 features" in result.output
    options = [
        "--model",
        home / "model.txt",
        "--explainer",
        tmp_path / "explainer",
        "--rows",
        home / "rows.parquet",
    ]
    assert (
        run(
            "explain", *options, "--key", "id", "--out", tmp_path / "out", "--part-rows", 100
        ).exit_code
        == 0
    )
    assert example_run.table(tmp_path / "out").equals(example_run.table(home / "out"))


def test_options_from_toml_and_the_command_line_wins(home, tmp_path):
    paths = {"model": "model.txt", "background": "background.parquet", "rows": "rows.parquet"}
    lines = [f"{name} = {json.dumps(str(home / path))}" for name, path in paths.items()]
    lines += ['key = ["id"]', 'target = "price"', 'game = "tree_path"', "part-rows = 30"]
    (tmp_path / "run.toml").write_text("\n".join(lines))
    assert run("explain", "--config", tmp_path / "run.toml", "--out", tmp_path / "a").exit_code == 0
    assert len(example_run.parts(tmp_path / "a")) == 5
    more = ["--out", tmp_path / "b", "--part-rows", 100]
    assert run("explain", "--config", tmp_path / "run.toml", *more).exit_code == 0
    assert example_run.contents(tmp_path / "b") == example_run.contents(home / "out")
    (tmp_path / "run.toml").write_text("modell = 3")
    result = run("explain", "--config", tmp_path / "run.toml", "--out", tmp_path / "c")
    assert result.exit_code == stops.USAGE
    assert "Did you mean 'model'" in result.output


def test_groups_and_included_columns_are_options(home, tmp_path):
    (tmp_path / "groups.json").write_text('{"place": ["city", "f0"]}')
    more = {"groups": tmp_path / "groups.json", "include": "shapley", "layout": "lists"}
    assert example_run.explain(home, tmp_path / "out", **more).exit_code == 0
    assert example_run.table(tmp_path / "out").schema.field("shapley").type.list_size == 5


def test_json_logs_are_lines_of_json(home, tmp_path):
    result = example_run.explain(home, tmp_path / "out", json=True)
    output = [json.loads(line) for line in result.output.splitlines()]
    assert [one["event"] for one in output] == ["fitting", "started", "part", "part", "finished"]
    assert output[3]["done"] == 150
    failed = example_run.explain(home, tmp_path / "out", json=True)
    assert json.loads(failed.output.splitlines()[0]) | {"message": ""} == {
        "event": "error",
        "message": "",
        "exit_code": stops.MISMATCH,
    }


def test_quiet_prints_nothing_for_a_run(home, tmp_path):
    assert example_run.explain(home, tmp_path / "out", quiet=True).output == ""


def test_a_pickle_is_refused_and_the_help_says_why(home, tmp_path):
    (tmp_path / "model.pkl").write_bytes(b"\x80\x05.")
    result = example_run.explain(home, tmp_path / "out", model=tmp_path / "model.pkl")
    assert result.exit_code == stops.INPUT
    assert "--trust-pickle" in result.output
    assert not example_run.parts(tmp_path / "out")
    assert "can run any code" in " ".join(run("explain", "--help").output.split())


def test_the_help_has_examples_and_exit_codes():
    output = run("explain", "--help").output
    assert "weightedshap explain --model model.txt" in output
    for code, meaning in stops.EXIT_CODES.items():
        assert f"{code:>3}  {meaning[:30]}" in output


def test_the_documentation_has_all_exit_codes():
    page = (Path(__file__).parents[2] / "docs" / "scale.md").read_text(encoding="utf-8")
    for code, meaning in stops.EXIT_CODES.items():
        assert f"| {code} | {meaning[:30]}" in page.replace("`", "")


def test_the_report_of_a_run_shows_some_rows_and_summarises_all(home, tmp_path):
    pytest.importorskip("plotly")
    result = run("report", home / "out", "-o", tmp_path / "page.html")
    assert result.exit_code == 0, result.output
    sample, outputs = load_sample(home / "out")
    found = example_run.table(home / "out")
    assert sample.data.index.tolist() == list(range(150))
    mean = np.abs(np.array(found["phi_f0"])).mean()
    place = sample.feature_names.index("f0")
    whole = contents(sample, whole=AllRows(outputs, range(150)))[0]["summaries"][0]
    assert dict(zip(whole["importance"]["features"], whole["importance"]["chosen"]))[
        place
    ] == pytest.approx(mean, rel=1e-5)
    assert whole["own"]["areas"][0][1] == pytest.approx(-np.mean(found["score"]), rel=1e-5)
    assert whole["weights"] == contents(sample)[0]["summaries"][0]["weights"]
    assert (tmp_path / "page.html").stat().st_size > 1e6


def test_pictures_of_many_rows_show_some_of_them(home, tmp_path, monkeypatch):
    monkeypatch.setattr("weightedshap.jobs.run.REPORT_ROWS", 20)
    assert example_run.explain(home, tmp_path / "out").exit_code == 0
    (sample, outputs) = load_sample(tmp_path / "out")
    found = example_run.table(home / "out")
    assert sample.data.index.tolist() == list(range(0, 150, 8))
    assert sample.values[:, 0].tolist() == found["phi_f0"].to_pylist()[::8]
    head = contents(sample, whole=AllRows(outputs, sample.data.index.tolist()))[0]
    assert head["n"] == 150
    assert head["summaries"][0]["own"]["rows"] == 150
    assert head["summaries"][0]["own"]["areas"][1][1] == pytest.approx(
        -np.mean(found["shapley_score"]), rel=1e-5
    )


def test_show_lists_what_there_is(home, tmp_path):
    fitted(home, tmp_path / "explainer")
    explanation = ws.Explanation.load(next((home / "out" / "samples").iterdir()))
    for path, words in [
        (home / "out", "2 parts, finished"),
        (home / "out" / "part-00000001.parquet", "50 rows of"),
        (tmp_path / "explainer", "Explainer of 6 features, 300 background rows"),
        (next((home / "out" / "samples").iterdir()), repr(explanation).splitlines()[0]),
    ]:
        result = run("show", path)
        assert result.exit_code == 0, result.output
        assert words in result.output
    (tmp_path / "x.npz").write_bytes(b"x")
    assert run("show", tmp_path / "x.npz").exit_code == stops.INPUT


def test_show_says_how_to_resume_a_stopped_run(home, tmp_path):
    example_run.explain(home, tmp_path / "out")
    example_run.parts(tmp_path / "out")[1].unlink()
    (tmp_path / "out" / "summary.json").unlink()
    output = run("show", tmp_path / "out").output
    assert "1 part, unfinished: go on with --resume" in output
    assert "100 rows explained" in output


def test_evaluate_compares_on_some_rows(home, tmp_path, monkeypatch):
    monkeypatch.setattr(
        ws, "evaluate", partial(ws.evaluate, against="own")
    )  # nothing is fitted anew
    given = example_run.arguments(
        home, tmp_path / "evaluation.npz", rows="background.parquet", sample=10
    )
    for name in ("--part-rows", "--key"):
        at = given.index(name)
        del given[at : at + 2]
    result = run("evaluate", *given)
    assert result.exit_code == 0, result.output
    assert "WeightedSHAP recovers predictions" in result.output
    assert "10 rows" in result.output
    assert len(ws.Evaluation.load(tmp_path / "evaluation.npz")) == 10
