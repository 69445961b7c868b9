"""Games that do not repeat themselves, games that raise, and names for streams of draws: what all
samplers share."""

import hashlib
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

from weightedshap._checks import BoolArray, FloatArray
from weightedshap.contributions import Chains, Contributions, with_outputs
from weightedshap.games.user import CheckedGame

REPEATS = 3  # coalitions that are evaluated a second time


def noise(game: CheckedGame, coalitions: BoolArray, values: FloatArray) -> FloatArray | None:
    """([k]) variance of the values that the game gives for one coalition, None if they repeat
    themselves.

    The last few are evaluated a second time. Last digits of networks in single precision are not
    noise.
    """
    gap = game(coalitions[-REPEATS:]) - values[-REPEATS:]
    rounding = 1e-4 * np.ptp(values, axis=0) + 1e-6 * np.abs(values).max(axis=0)
    return None if (np.abs(gap) <= rounding).all() else np.asarray((gap**2).mean(axis=0) / 2)


def with_noise(table: Contributions, variance: FloatArray | None) -> Contributions:
    """`table` with errors widened by the noise of the game, and a warning that tells its size.

    Sampled cells show the noise in their spread. One read off whole sizes is a difference of two
    means, with at most twice the variance of one value; its chains are spread accordingly, so that
    the error of every φ_w is widened too.
    """
    if variance is None:
        return table
    warnings.warn(
        "The game returned different values for the same coalition (standard deviation about "
        f"{float(np.sqrt(variance.max())):.3g}). Standard errors are widened to allow for it.",
        stacklevel=4,  # the line that called the estimator
    )
    exact = np.isinf(table.counts)
    error = np.sqrt(2 * variance)
    chains = table.chains or Chains(
        np.ones((2, table.d, table.d)), np.stack([table.mean] * 2), np.zeros(1)
    )
    n = len(chains.mean)
    steps = np.arange(n) - (n - 1) / 2
    spread = steps * np.sqrt(n) / steps.std(ddof=1)  # its mean is 0, with standard error 1
    mean = np.where(exact, table.mean + with_outputs(spread, chains.mean) * error, chains.mean)
    chains = Chains(chains.counts, mean, np.zeros_like(mean))
    errors = np.where(exact, error, table.standard_error)
    nothing = np.full_like(table.mean, np.nan)
    stopped = f"{table.stopped}; the game is noisy"
    return Contributions.sampled(chains, nothing, table.evaluations, stopped, table.draws, errors)


@contextmanager
def keep_partial(table: Callable[[str], Contributions] | None) -> Iterator[None]:
    """Where a game raises, hand the `table` of what was sampled before, if any, to whoever catches
    the error."""
    try:
        yield
    except Exception as error:
        if table is not None:
            reason = f"the game raised {type(error).__name__}: {error}"
            error.contributions = table(reason)  # type: ignore[attr-defined]
            error.add_note(
                "What was sampled before the game raised is kept as `error.contributions`."
            )
        raise


def fingerprint(rng: np.random.Generator) -> frozenset[str]:
    """A name for the stream of draws that `rng` is about to give."""
    return frozenset(
        [hashlib.blake2b(repr(rng.bit_generator.state).encode(), digest_size=12).hexdigest()]
    )
