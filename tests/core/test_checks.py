"""Tests of the argument checks: errors say what was expected, what was given, and what to do."""

import numpy as np
import pandas as pd
import pytest

from weightedshap import _checks as checks
from weightedshap.coalitions import as_coalitions, as_orders

TABLE = {"marginal": 1, "baseline": 2}


def test_a_known_name_is_looked_up():
    assert checks.look_up("game", "baseline", TABLE) == 2


def test_the_error_for_an_unknown_name_suggests_one_and_lists_all():
    with pytest.raises(checks.UnknownNameError) as caught:
        checks.look_up("game", "margnal", TABLE)
    assert (
        str(caught.value)
        == "Unknown game 'margnal'. Did you mean 'marginal'? Known: 'marginal', 'baseline'."
    )


def test_the_error_for_a_name_unlike_all_others_only_lists_them():
    with pytest.raises(
        checks.UnknownNameError, match=r"^Unknown game 'zzz'\. Known: 'marginal', 'baseline'\.$"
    ):
        checks.look_up("game", "zzz", TABLE)


@pytest.mark.parametrize("kind", [ValueError, KeyError])
def test_an_unknown_name_is_both_a_value_error_and_a_key_error(kind):
    with pytest.raises(kind, match="Known: 'a', 'b'"):
        checks.check_choice("choice", "c", ("a", "b"))


def test_a_missing_extra_is_named_with_the_command_that_installs_it():
    with pytest.raises(
        ImportError, match=r'no_such_module is needed .* pip install "weightedshap\[neural\]"'
    ):
        checks.require("no_such_module.part", "neural")


def test_a_present_extra_is_imported():
    assert checks.require("json", "none").dumps([1]) == "[1]"


def test_a_generator_is_kept_and_a_seed_becomes_one():
    rng = np.random.default_rng(3)
    assert checks.as_generator(rng) is rng
    assert checks.as_generator(3).random() == np.random.default_rng(3).random()
    assert checks.as_generator(np.int64(3)).random() == np.random.default_rng(3).random()


def test_no_generator_means_seed_zero():
    assert checks.as_generator(None).random() == np.random.default_rng(0).random()


def test_another_random_generator_is_refused():
    with pytest.raises(TypeError, match="numpy Generator or an integer seed, not RandomState"):
        checks.as_generator(np.random.RandomState(0))


def test_coalitions_may_be_zeros_and_ones():
    coalitions = as_coalitions([[0, 1], [1, 1]], 2)
    assert coalitions.dtype == bool
    assert coalitions.tolist() == [[False, True], [True, True]]


@pytest.mark.parametrize("coalitions", [[True, False], [[True]], [[[True, False]]]])
def test_coalitions_of_another_shape_are_refused(coalitions):
    with pytest.raises(ValueError, match=r"shape \(m, 2\)"):
        as_coalitions(coalitions, 2)


@pytest.mark.parametrize("coalitions", [[[0, 2]], [[0.5, 1.0]], [[np.nan, 1.0]]])
def test_coalitions_of_other_numbers_are_refused(coalitions):
    with pytest.raises(ValueError, match="only 0 and 1"):
        as_coalitions(coalitions, 2)


def test_orders_are_permutations():
    assert as_orders([[1, 0, 2]], 3).tolist() == [[1, 0, 2]]


@pytest.mark.parametrize("orders", [[[0, 0, 1]], [[1, 2, 3]], [[-1, 0, 1]]])
def test_orders_that_are_no_permutations_are_refused(orders):
    with pytest.raises(ValueError, match=r"each of 0\.\.2 once"):
        as_orders(orders, 3)


@pytest.mark.parametrize("orders", [[0, 1, 2], [[0, 1]], [[0.0, 1.0, 2.0]]])
def test_orders_of_another_shape_or_type_are_refused(orders):
    with pytest.raises(ValueError, match=r"integers of shape \(m, 3\)"):
        as_orders(orders, 3)


@pytest.mark.parametrize("values", [[1, 2], [[1.0], [2.0]], [[True, False], [False, True]]])
def test_outputs_become_floats(values):
    outputs = checks.as_outputs(values, 2, "The model")
    assert outputs.dtype == np.float64
    np.testing.assert_array_equal(outputs, values)


@pytest.mark.parametrize("values", [1.0, [1.0], [1.0, 2.0, 3.0], np.zeros((2, 1, 1))])
def test_outputs_of_another_length_are_refused(values):
    with pytest.raises(ValueError, match="for each of 2 inputs; got shape"):
        checks.as_outputs(values, 2, "The model")


@pytest.mark.parametrize(
    ("values", "message"), [([1, np.nan], "1 NaN or infinite value "), ([np.inf, -np.inf], "2 NaN")]
)
def test_outputs_that_are_not_finite_are_refused_and_counted(values, message):
    with pytest.raises(ValueError, match=f"The model returned {message}.*out of 2"):
        checks.as_outputs(values, 2, "The model")


@pytest.mark.parametrize("values", [["yes", "no"], [None, {}]])
def test_outputs_that_are_no_numbers_are_refused(values):
    with pytest.raises(TypeError, match="must return numbers"):
        checks.as_outputs(values, 2, "The model")


@pytest.mark.parametrize("value", [1, np.int32(7)])
def test_a_positive_integer_is_kept(value):
    assert checks.check_positive_integer("n", value) == value


@pytest.mark.parametrize("value", [0, -1, 1.5, True, "3", None])
def test_anything_else_is_no_positive_integer(value):
    with pytest.raises(ValueError, match="`n` must be an integer of at least 1"):
        checks.check_positive_integer("n", value)


def test_complex_answers_are_refused():
    with pytest.raises(TypeError, match="The model returned complex numbers"):
        checks.as_outputs(np.array([1 + 2j]), 1, "The model")


DATES = np.array(["2026-01-01", "2026-01-02"], dtype="datetime64[ns]")


@pytest.mark.parametrize(
    "answers",
    [
        DATES,
        DATES.astype("datetime64[D]"),
        DATES - DATES[0],
        list(DATES),
        pd.Series(DATES),
        pd.Series(DATES).dt.tz_localize("UTC"),
        pd.DataFrame({"day": DATES}),
    ],
)
def test_dates_are_no_answers_of_a_model(answers):
    with pytest.raises(
        TypeError, match=r"The model must return numbers; got dates or durations.*`predict=`"
    ):
        checks.as_outputs(answers, 2, "The model")


@pytest.mark.parametrize(
    "answers", [[1, 2], np.array([True, False]), pd.Series([1.5, 2]), pd.array([1, 2]), np.ones(2)]
)
def test_answers_of_many_kinds_are_numbers(answers):
    np.testing.assert_array_equal(
        checks.as_outputs(answers, 2, "The model"), np.asarray(answers, dtype=float)
    )
