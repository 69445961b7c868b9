"""The page about figures."""

from __future__ import annotations

import re

import matplotlib as mpl

mpl.use("Agg")

from tests.docs.page_blocks import DOCS
from weightedshap import plots


def test_the_page_about_figures_names_all_of_them_and_its_code_runs(tmp_path, monkeypatch):
    page = (DOCS / "figures.md").read_text(encoding="utf-8")
    methods = [name for name in vars(plots.PlotAccessor) if not name.startswith("_")]
    assert [name for name in methods if f"`{name}(" not in page] == []
    assert [name for name in methods if name not in plots.__all__] == []
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for block in re.findall(r"^```python\n(.*?)^```$", page, re.M | re.S):
        exec(compile(block, "figures.md", "exec"), names)
    assert (tmp_path / "row 3.pdf").stat().st_size > 0
