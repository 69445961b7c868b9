"""A tally for each attack, printed at the end of the run."""

import pytest

from tests.attacks.verdicts import Tally

TOLD = pytest.StashKey[list[str]]()


@pytest.fixture
def tally(request):
    """`tally(kind)` → a `Tally`; the test fails if anything was wrong."""
    made = []

    def make(kind):
        made.append(Tally(kind))
        return made[-1]

    yield make
    request.config.stash.setdefault(TOLD, []).extend(map(str, made))
    for one in made:
        assert not one.wrong, f"{one}\n" + "\n".join(dict.fromkeys(one.wrong[:40]))


def pytest_terminal_summary(terminalreporter, config):
    for line in config.stash.get(TOLD, []):
        terminalreporter.write_line(f"attack  {line}")
