"""One profile for all property tests: the same examples on every machine, no clock, no files."""

from hypothesis import settings

settings.register_profile("suite", derandomize=True, deadline=None, database=None, max_examples=50)
settings.load_profile("suite")
