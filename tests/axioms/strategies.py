"""Random games for the property tests: smooth ones, and ones with few levels where ties are
common."""

from hypothesis import strategies as st

from tests.oracles import random_game

seeds = st.integers(0, 2**32 - 1)
levels = st.sampled_from([None, 2, 5])
scalars = st.floats(-3, 3, allow_nan=False)


def games(least=1, most=5):
    """Games of `least` to `most` players, with one output."""
    return st.builds(random_game, st.integers(least, most), seeds, levels=levels)


def pairs_of_games(least=1, most=5):
    """Two games of the same players."""
    return st.integers(least, most).flatmap(lambda d: st.tuples(games(d, d), games(d, d)))


def games_and_orders(least=1, most=5):
    """A game and an order of its players."""
    return st.integers(least, most).flatmap(
        lambda d: st.tuples(games(d, d), st.permutations(range(d)))
    )
