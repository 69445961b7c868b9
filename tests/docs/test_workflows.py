"""Workflows run what was reviewed, and end."""

import re
from pathlib import Path

import pytest

FILES = sorted((Path(__file__).parents[2] / ".github" / "workflows").glob("*.yml"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_actions_are_pinned_by_hash_and_every_job_has_a_time_limit(file):
    text = file.read_text(encoding="utf-8")
    used = re.findall(r"uses: (\S+)", text)
    assert used
    assert all(re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", action) for action in used)
    jobs = re.split(r"\n  (?=\w[\w-]*:\n)", text.partition("\njobs:")[2])[1:]
    assert jobs
    assert all(re.search(r"^    timeout-minutes: \d+$", job, re.M) for job in jobs)
