"""Runs on disk: finished ones are kept, and give the same numbers however they came about."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.figure import Figure

from weightedshap_paper.results import draw_figure, write_results
from weightedshap_paper.runner import Claim, Experiment, Settings, run_experiment, stored_runs, verdict


class Counted:
    """An experiment that draws one number, counts its runs, and may be interrupted before one of them."""

    def __init__(self, stop_at=None):
        self.count, self.stop_at = 0, stop_at
        self.experiment = Experiment(
            title="draw a number",
            cases=lambda settings: ("a", "b/" + str(settings.game)),
            run=self.run,
            draw=lambda runs: Figure(),
            claims=lambda runs: [Claim("it is drawn", "0", f"{runs['a'][0]['x']}", verdict([True]))],
            depends=("seed", "rows"),
            game="marginal",
            notes=("A note.",),
        )

    def run(self, case, settings, rng):
        if self.count == self.stop_at:
            raise KeyboardInterrupt
        self.count += 1
        return {"x": rng.random(), "array": rng.random(3), "rows": np.int64(settings.rows), "case": case}


def run(folder, counted, settings=None):
    return run_experiment("drawn", counted.experiment, settings or Settings(runs=3), folder)


def test_finished_runs_are_not_repeated(tmp_path):
    first, again = Counted(), Counted()
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
    assert many["a"][:2] == few["a"]


def test_every_run_draws_its_own_numbers(tmp_path):
    numbers = run(tmp_path, Counted())
    drawn = [of["x"] for case in numbers.values() for of in case]
    assert len(set(drawn)) == 6


def test_games_share_what_is_drawn_for_a_dataset(tmp_path):
    one = run(tmp_path, Counted())
    other = run(tmp_path, Counted(), Settings(runs=3, game="baseline"))
    assert [of["x"] for of in one["b/marginal"]] == [of["x"] for of in other["b/baseline"]]


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


def test_settings_without_influence_are_free(tmp_path):
    numbers = run(tmp_path, Counted())
    assert run(tmp_path, Counted(), Settings(runs=3, authors_stop=True)) == numbers


def test_a_broken_file_is_named(tmp_path):
    run(tmp_path, Counted())
    (tmp_path / "drawn" / "a" / "run-001.json").write_text("{")
    with pytest.raises(ValueError, match=r"run-001.json is not a stored run .* Delete it"):
        run(tmp_path, Counted())


def test_files_hold_the_configuration_and_few_digits(tmp_path):
    run(tmp_path, Counted())
    record = json.loads((tmp_path / "drawn" / "b" / "marginal" / "run-000.json").read_text())
    assert record["configuration"] == {"seed": 0, "rows": 100}
    assert len(str(record["numbers"]["x"])) <= 9


def test_an_experiment_without_randomness_runs_once(tmp_path):
    counted = Counted()
    once = replace(counted.experiment, depends=("quick",))
    run_experiment("drawn", once, Settings(runs=5), tmp_path)
    assert counted.count == 2


def test_stored_runs_of_nothing_are_empty(tmp_path):
    assert stored_runs(tmp_path, "drawn") == ({}, {})


def test_results_are_written_from_what_is_stored(tmp_path):
    counted = Counted()
    run(tmp_path, counted)
    draw_figure(tmp_path, "drawn", counted.experiment)
    path = write_results(tmp_path, {"drawn": counted.experiment, "missing": counted.experiment})
    text = path.read_text()
    x = stored_runs(tmp_path, "drawn")[0]["a"][0]["x"]
    assert f"| it is drawn | 0 | {x} | **holds** |" in text
    assert "Draw a number. Runs: a; b (marginal), 3 each; seed 0, rows 100." in text
    assert "| [drawn](#drawn) | 3 | 1 |  |  |  |" in text
    assert "A note." in text
    assert "(figures/drawn.png)" in text
    assert "missing" not in text


def test_unequal_numbers_of_runs_and_sections_without_claims(tmp_path):
    counted = Counted()
    run(tmp_path, counted)
    (tmp_path / "drawn" / "a" / "run-002.json").unlink()
    silent = replace(
        counted.experiment, claims=None, table=lambda runs: ["| a table |"], headline=lambda runs: "two words"
    )
    text = write_results(tmp_path, {"drawn": silent}).read_text()
    assert "| [drawn](#drawn) | 2–3 |  |  |  | two words |" in text
    assert "| claim |" not in text
    assert "\nA note.\n\n| a table |\n" in text


@pytest.mark.parametrize(
    ("checks", "word"),
    [([True, True], "holds"), ([True, False], "holds in part"), ([False, False], "does not hold")],
)
def test_verdicts(checks, word):
    assert verdict(checks) == word
