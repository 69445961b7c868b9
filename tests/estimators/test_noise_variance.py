"""Noise of a game in the standard errors of its contributions."""

import numpy as np
import pytest

from weightedshap.contributions import Contributions
from weightedshap.estimators.noise import add_noise_variance


def test_the_error_of_a_difference_of_two_noisy_values():
    """Notices √2 left out: Δ_1 and Δ_d are differences of two values, each with that variance."""
    exact = Contributions.from_exact(np.ones((3, 3)))
    with pytest.warns(UserWarning, match="different values for the same coalition"):
        widened = add_noise_variance(exact, np.array(0.09))
    np.testing.assert_allclose(widened.standard_error, np.sqrt(2 * 0.09))
    np.testing.assert_allclose(widened.standard_error_of([1.0, 0.0, 0.0]), np.sqrt(2 * 0.09))
