"""Random games for the property tests: with continuous values, or with few levels and many ties."""

from hypothesis import strategies as st

from tests.oracles import random_game

seeds = st.integers(0, 2**32 - 1)
levels = st.sampled_from([None, 2, 5])
scalars = st.floats(-3, 3, allow_nan=False)


def games(least=1, most=5):
    """Draw games of `least` to `most` players, with one output."""
    return st.builds(random_game, st.integers(least, most), seeds, levels=levels)


def pairs_of_games(least=1, most=5):
    """Draw two games of the same number of players."""
    return st.integers(least, most).flatmap(lambda d: st.tuples(games(d, d), games(d, d)))


def games_and_orders(least=1, most=5):
    """Draw a game and an order of its players."""
    return st.integers(least, most).flatmap(
        lambda d: st.tuples(games(d, d), st.permutations(range(d)))
    )
