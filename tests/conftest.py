"""Settings for all tests.

One profile for all property tests: the same examples on every machine, no clock, no files. And one
thread for OpenMP: test processes run side by side, and threads that wait for each other's cores are
slow.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

from hypothesis import settings

settings.register_profile("suite", derandomize=True, deadline=None, database=None, max_examples=50)
settings.load_profile("suite")
