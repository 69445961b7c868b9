"""Numbers as people write them."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weightedshap import _format as wording

SHARES = st.lists(st.floats(0.001, 1), min_size=1, max_size=20).map(
    lambda parts: [p / sum(parts) for p in parts]
)


def read(text: str) -> float:
    return float(text.replace("−", "-").replace(",", ""))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (207327.4, "207,327"),
        (1234.56, "1,235"),
        (999.96, "1,000"),
        (0.043214, "0.04321"),
        (0.99871, "0.9987"),
        (-0.25, "−0.25"),
        (3, "3"),
        (-0.0, "0"),
        (1.7e9, "1,700,000,000"),
        (1e-6, "1e−6"),
        (-2.3456e-7, "−2.35e−7"),
        (1e20, "1e20"),
        (math.nan, "?"),
        (-math.inf, "−∞"),
    ],
)
def test_a_number_is_written_as_people_do(value, expected):
    assert wording.number(value) == expected


@given(
    st.floats(-1e12, 1e12).filter(lambda value: value == 0 or abs(value) >= 1e-4), st.integers(2, 6)
)
def test_a_number_is_right_to_its_digits(value, digits):
    assert read(wording.number(value, digits)) == pytest.approx(
        value, rel=0.51 * 10.0 ** (1 - digits)
    )


def test_a_change_carries_its_sign():
    assert [wording.number(value, 3, sign=True) for value in (0.5, -0.5, 0, 12345)] == [
        "+0.5",
        "−0.5",
        "0",
        "+12,345",
    ]


def test_a_margin_says_how_many_digits_count():
    assert wording.with_margin(0.12345, 0.0042) == "0.1235 ± 0.0042"
    assert wording.with_margin(207327.4, 1532.3) == "207,327 ± 1,532"
    assert wording.with_margin(3, 0) == "3"
    assert wording.with_margin(3, math.nan) == "3 ± ?"


def test_a_percentage_never_rounds_some_to_none_or_all():
    expected = {
        0.136: "14 %",
        0: "0 %",
        1: "100 %",
        0.004: "< 1 %",
        0.997: "> 99 %",
        -0.2: "−20 %",
        math.nan: "? %",
    }
    assert {share: wording.percent(share) for share in expected} == expected
    assert wording.percent(0.0004, 1) == "< 0.1 %"


@given(SHARES)
def test_percentages_of_a_whole_add_up(shares):
    percentages = [int(text.removesuffix(" %")) for text in wording.percents(shares)]
    assert sum(percentages) == 100
    assert all(abs(whole - 100 * share) < 1 + 1e-6 for whole, share in zip(percentages, shares))


def test_a_change_is_written_in_words_without_a_second_minus():
    assert wording.format_change(-0.136) == "13.6 % smaller"
    assert wording.format_change(0.02, "less error", "more error", 0) == "2 % more error"
    assert wording.format_change(0.0002) == "the same"
    assert wording.format_change(math.nan) == "not comparable"


def test_one_is_singular():
    assert [wording.plural(count, "row") for count in (0, 1, 1200)] == [
        "0 rows",
        "1 row",
        "1,200 rows",
    ]
    assert wording.plural(2, "class", "classes") == "2 classes"


def test_of_a_long_text_the_beginning_is_quoted():
    assert wording.quote("Ulm") == "'Ulm'"
    assert wording.quote(3) == "3"
    assert wording.quote("x" * 80) == repr("x" * 80)
    assert wording.quote("x" * 2_000, 5) == "'xxxxx'… (2,000 characters)"
