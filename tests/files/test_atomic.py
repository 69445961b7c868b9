"""A file is the old one or the new one, never half of it."""

from __future__ import annotations

import os
import stat

import pytest

from weightedshap.files.atomic import atomic_write


@pytest.mark.parametrize("before", [None, "old"])
def test_a_finished_file_takes_its_place(tmp_path, before):
    path = tmp_path / "file.txt"
    if before is not None:
        path.write_text(before)
    with atomic_write(path) as unfinished:
        unfinished.write_text("new")
        assert (path.read_text() if path.exists() else None) == before
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


def test_what_a_killed_process_left_is_removed_in_time(tmp_path):
    path = tmp_path / "file.txt"
    old = tmp_path / ".file.txt.7-7.part"
    young = tmp_path / ".file.txt.8-8.part"
    other = tmp_path / ".other.txt.7-7.part"
    for part in (old, young, other):
        part.write_text("half")
    os.utime(old, (0, 0))
    os.utime(other, (0, 0))
    with atomic_write(path) as unfinished:
        unfinished.write_text("new")
    assert set(tmp_path.iterdir()) == {path, young, other}


def test_permissions_are_those_that_the_user_asked_for(tmp_path):
    before = os.umask(0o027)
    try:
        with atomic_write(tmp_path / "file.txt") as unfinished:
            unfinished.write_text("new")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "file.txt").stat().st_mode) == 0o640


def test_a_number_is_no_path():
    with pytest.raises(TypeError, match="A path must be text"), atomic_write(1):
        pass


def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "file.txt"
    path.write_text("old")

    def interrupted():
        with atomic_write(path) as unfinished:
            unfinished.write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
