"""A file is the old one or the new one, never half of it."""

from __future__ import annotations

import pytest

from weightedshap.files.atomic import replaced


@pytest.mark.parametrize("before", [None, "old"])
def test_a_finished_file_takes_its_place(tmp_path, before):
    path = tmp_path / "file.txt"
    if before is not None:
        path.write_text(before)
    with replaced(path) as unfinished:
        unfinished.write_text("new")
        assert (path.read_text() if path.exists() else None) == before
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "file.txt"
    path.write_text("old")

    def interrupted():
        with replaced(path) as unfinished:
            unfinished.write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
