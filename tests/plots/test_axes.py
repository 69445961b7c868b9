"""Text in lines, fonts and the style sheet, which all figures share."""

from __future__ import annotations

import dataclasses
import warnings

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.font_manager import fontManager

from tests.plots.drawings import new_axes, render, tick_names
from weightedshap import plots
from weightedshap.plots import axes as drawing
from weightedshap.plots import style


def test_letters_that_no_font_has_are_written_as_numbers_without_a_warning(explanation):
    named = dataclasses.replace(explanation, feature_names=("\U0010fffd_a", "b", "c", "d", "e"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ax = render(plots.bar(named, ax=new_axes()))
    assert "\\U0010fffd_a" in tick_names(ax)


def test_fonts_are_the_readers_own_and_then_installed_ones(explanation):
    with mpl.rc_context({"font.family": ["serif"]}):
        label = plots.bar(explanation, ax=new_axes()).get_yticklabels()[0]
    own, *others = label.get_fontfamily()
    assert own == "serif"
    assert others[0] == "DejaVu Sans"
    assert set(others) <= set(fontManager.get_font_names()) & set(style.FONTS)


@pytest.mark.parametrize(
    ("name", "width", "lines"),
    [
        ("short", 10, ["short"]),
        ("two words here", 10, ["two words", "here"]),
        ("患者的年龄和体重", 10, ["患者的年龄", "和体重"]),
        ("abcdefghijklm", 5, ["abcde", "fghij", "klm"]),
        ("size_of_the_flat", 10, ["size_of_", "the_flat"]),
        ("", 5, [""]),
    ],
)
def test_lines_are_as_wide_as_they_may_be_and_letters_of_east_asia_count_twice(
    name, width, lines, monkeypatch
):
    monkeypatch.setattr(drawing, "printable", str)  # whatever fonts there are
    assert drawing.wrap_text(name, width).split("\n") == lines


def test_colours_and_dashes_can_be_distinguished_by_the_colour_blind_and_in_print():
    """Lightness of neighbours in a scale rises throughout, and method lines differ in dashes
    too."""
    lightness = [mpl.colors.rgb_to_hsv(mpl.colors.to_rgb(c)) @ [0, 0, 1] for c in style.LOW_TO_HIGH]
    luminance = [np.dot(mpl.colors.to_rgb(c), [0.2126, 0.7152, 0.0722]) for c in style.LOW_TO_HIGH]
    assert luminance == sorted(luminance)
    assert len(lightness) == 6
    shown = [
        dashes
        for name, (_, dashes, _) in style.METHODS.items()
        if name in ("WeightedSHAP", "Shapley", "first", "last")
    ]
    assert len(set(shown)) == 4
    assert set(shown) <= set(drawing.DASHES)
