"""The page about people's data."""

import re

from tests.docs.page_blocks import DOCS


def test_the_page_about_data_runs_and_gives_the_names_and_notes_it_shows():
    text = (DOCS / "data.md").read_text(encoding="utf-8")
    names = {}
    for block in re.findall(r"^```python\n(.*?)^```$", text, re.M | re.S):
        exec(compile(block, "data.md", "exec"), names)
    assert names["explanation"].feature_names == ("rooms", "address", "lift")
    assert names["explanation"].notes == (
        "Columns in no group are players of their own: 'rooms', 'lift'.",
    )
