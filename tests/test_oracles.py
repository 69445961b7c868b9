"""The oracles are right: their closed forms agree with Equation 2 word for word."""

import numpy as np
import pytest

from tests.oracles import ORACLES, delta_by_definition, random_game


@pytest.mark.parametrize("name", ORACLES)
def test_closed_form_agrees_with_the_definition(name):
    oracle = ORACLES[name]
    np.testing.assert_allclose(oracle.delta, delta_by_definition(oracle.game), atol=1e-12)


def test_relabelling_gives_player_order_i_the_name_i():
    game = random_game(3)
    order = np.array([2, 0, 1])
    alone = np.eye(3, dtype=bool)
    np.testing.assert_array_equal(game.relabelled(order)(alone), game(alone)[order])
