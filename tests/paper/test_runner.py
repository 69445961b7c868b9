"""Runs on disk: finished ones are kept, and give the same numbers however they came about."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.figure import Figure

from weightedshap._version import __version__
from weightedshap_paper.experiment import Case, Claim, Experiment, Settings
from weightedshap_paper.experiments import EXPERIMENTS
from weightedshap_paper.results import draw_figure, write_results
from weightedshap_paper.runner import read_runs, run_experiment

A = Case("a")


class Counted:
    """An experiment that draws one number, counts its runs, and may be interrupted before one of
    them."""

    def __init__(self, stop_at=None):
        self.count, self.stop_at = 0, stop_at
        self.experiment = Experiment(
            title="draw a number",
            cases=lambda settings: (A, Case("b", settings.game)),
            run=self.run,
            draw=lambda runs: Figure(),
            claims=lambda runs: [Claim("it is drawn", "0", f"{runs[A][0]['x']}", [True])],
            depends=("seed", "rows"),
            game="marginal",
            notes=("A note.",),
        )

    def run(self, case, settings, rng):
        if self.count == self.stop_at:
            raise KeyboardInterrupt
        self.count += 1
        return {
            "x": rng.random(),
            "array": rng.random(3),
            "rows": np.int64(settings.rows),
            "case": str(case),
        }


def run(folder, counted, settings=None):
    return run_experiment(folder / "drawn.json", counted.experiment, settings or Settings(runs=3))


def test_finished_runs_are_not_repeated(tmp_path):
    first = Counted()
    again = Counted()
    numbers = run(tmp_path, first)
    assert first.count == 6
    assert run(tmp_path, again) == numbers
    assert again.count == 0


def test_an_interrupted_experiment_goes_on_with_the_same_numbers(tmp_path):
    whole = run(tmp_path / "whole", Counted())
    broken = Counted(stop_at=2)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "broken", broken)
    rest = Counted()
    assert run(tmp_path / "broken", rest) == whole
    assert rest.count == 4
    assert not list(tmp_path.rglob("*.part"))


def test_more_runs_keep_the_old_ones(tmp_path):
    few = run(tmp_path, Counted(), Settings(runs=2))
    more = Counted()
    many = run(tmp_path, more, Settings(runs=4))
    assert more.count == 4
    assert many[A][:2] == few[A]


def test_every_run_draws_its_own_numbers(tmp_path):
    numbers = run(tmp_path, Counted())
    drawn = [of["x"] for case in numbers.values() for of in case]
    assert len(set(drawn)) == 6


def test_games_share_what_is_drawn_for_a_dataset(tmp_path):
    one = run(tmp_path, Counted())
    other = run(tmp_path, Counted(), Settings(runs=3, game="baseline"))
    assert [of["x"] for of in one[Case("b", "marginal")]] == [
        of["x"] for of in other[Case("b", "baseline")]
    ]


@pytest.mark.parametrize(
    ("change", "difference"),
    [({"seed": 1}, "seed is 0 there and 1 here"), ({"rows": 7}, "rows is 100 there and 7 here")],
)
def test_another_configuration_is_refused_by_name(tmp_path, change, difference):
    run(tmp_path, Counted())
    other = Counted()
    with pytest.raises(ValueError, match=difference):
        run(tmp_path, other, replace(Settings(runs=3), **change))
    assert other.count == 0


def test_settings_without_influence_may_differ(tmp_path):
    numbers = run(tmp_path, Counted())
    assert run(tmp_path, Counted(), Settings(runs=3, authors_stop=True)) == numbers


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"cases": {}}', '{"configuration": {}, "cases": {"a": [{"x": 1}]}}']
)
def test_a_broken_file_is_named(tmp_path, text):
    (tmp_path / "drawn.json").write_text(text)
    with pytest.raises(ValueError, match=r"drawn.json is not a file of runs .* Delete it"):
        run(tmp_path, Counted())


def test_a_folder_of_single_runs_is_not_ignored(tmp_path):
    old = tmp_path / "drawn" / "b" / "marginal" / "run-000.json"
    old.parent.mkdir(parents=True)
    old.write_text("{}")
    counted = Counted()
    with pytest.raises(
        ValueError, match=r"drawn holds one file for each run, .* Move it away.* --results"
    ):
        run(tmp_path, counted)
    with pytest.raises(ValueError, match="drawn holds one file for each run"):
        write_results(tmp_path, {"drawn": counted.experiment})
    assert counted.count == 0


def test_files_hold_the_configuration_once_and_few_digits(tmp_path):
    run(tmp_path, Counted())
    content = json.loads((tmp_path / "drawn.json").read_text())
    assert content["configuration"] == {"seed": 0, "rows": 100}
    assert list(content["cases"]) == ["a", "b/marginal"]
    for record in content["cases"]["b/marginal"]:
        assert record["version"] == __version__
        assert len(str(record["numbers"]["x"])) <= 9


def test_a_further_run_is_a_further_line(tmp_path):
    run(tmp_path, Counted(), Settings(runs=2))
    before = (tmp_path / "drawn.json").read_text().splitlines()
    run(tmp_path, Counted(), Settings(runs=3))
    after = (tmp_path / "drawn.json").read_text().splitlines()
    assert [line for line in after if line in before] == before
    assert len(after) == len(before) + 2


def test_two_commands_at_once_keep_what_either_added(tmp_path):
    """The first makes a run while the second makes all of another game."""
    first = Counted()
    second = Counted()

    def run_meanwhile(case, settings, rng):
        if first.count == 1:
            run(tmp_path, second, Settings(runs=3, game="baseline"))
        return first.run(case, settings, rng)

    numbers = run_experiment(
        tmp_path / "drawn.json", replace(first.experiment, run=run_meanwhile), Settings(runs=3)
    )
    assert numbers == run(tmp_path / "alone", Counted())
    assert first.count + second.count == 10  # of 9 runs, one was made by both
    found = read_runs(tmp_path / "drawn.json").runs
    assert {str(case): len(of) for case, of in found.items()} == {
        "a": 3,
        "b/baseline": 3,
        "b/marginal": 3,
    }


@pytest.mark.parametrize(
    ("text", "case", "words"),
    [
        ("boston", Case("boston"), "boston"),
        ("boston/tree_surrogate", Case("boston", "tree_surrogate"), "boston"),
        (
            "rho=0.6/neural_surrogate",
            Case(game="neural_surrogate", rho=0.6),
            "ρ = 0.6 (neural surrogate)",
        ),
        ("rho=0.0", Case(), "ρ = 0.0"),
    ],
)
def test_a_case_is_written_read_and_shown(text, case, words):
    assert str(case) == text
    assert Case.from_text(text) == case
    assert case.words == words


def test_all_cases_are_read_as_they_are_written():
    for experiment in EXPERIMENTS.values():
        for case in experiment.cases(experiment.resolve(Settings())):
            assert Case.from_text(str(case)) == case


def test_an_experiment_without_randomness_runs_once(tmp_path):
    counted = Counted()
    once = replace(counted.experiment, depends=("quick",))
    run_experiment(tmp_path / "drawn.json", once, Settings(runs=5))
    assert counted.count == 2


def test_stored_runs_of_nothing_are_empty(tmp_path):
    assert read_runs(tmp_path / "drawn.json").runs == {}


def test_results_are_written_from_what_is_stored(tmp_path):
    counted = Counted()
    run(tmp_path, counted)
    draw_figure(tmp_path, "drawn", counted.experiment)
    path = write_results(tmp_path, {"drawn": counted.experiment, "missing": counted.experiment})
    text = path.read_text()
    x = read_runs(tmp_path / "drawn.json").runs[A][0]["x"]
    assert f"| it is drawn | 0 | {x} | **holds** |" in text
    assert "Draw a number. Runs: a; b (marginal), 3 each; seed 0, rows 100." in text
    assert "| [drawn](#drawn) | 3 | 1 |  |  |  |" in text
    assert "A note." in text
    assert "(figures/drawn.png)" in text
    assert "missing" not in text


def test_results_may_have_unequal_numbers_of_runs_and_sections_without_claims(tmp_path):
    counted = Counted()
    run(tmp_path, counted, Settings(runs=2))
    counted.stop_at = 5
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, counted)
    silent = replace(
        counted.experiment,
        claims=lambda runs: [],
        table=lambda runs: ["| a table |"],
        headline=lambda runs: "two words",
    )
    text = write_results(tmp_path, {"drawn": silent}).read_text()
    assert "| [drawn](#drawn) | 2–3 |  |  |  | two words |" in text
    assert "| claim |" not in text
    assert "\nA note.\n\n| a table |\n" in text


@pytest.mark.parametrize(
    ("checks", "word"),
    [([True, True], "holds"), ([True, False], "holds in part"), ([False, False], "does not hold")],
)
def test_a_verdict_says_whether_a_claim_holds(checks, word):
    assert Claim("a", "b", "c", checks).verdict == word
