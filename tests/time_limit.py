"""A limit of time for what could wait without end."""

from __future__ import annotations

import signal
from contextlib import contextmanager


@contextmanager
def time_limit(seconds, error=TimeoutError):
    """Raise `error` where the body takes longer, so that what waits without end fails."""

    def stop(signal_number, stack):
        raise error(f"it took longer than {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
