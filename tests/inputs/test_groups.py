"""Groups of columns as players: a one-hot block, and patches of an image."""

import numpy as np
import pandas as pd

from tests.inputs.examples import explain, five_columns


def test_a_one_hot_block_as_a_group_equals_the_category_it_came_from():
    frame = five_columns()[["size", "city", "rooms"]].fillna({"size": 0.0, "city": "none"})
    hot = pd.get_dummies(frame, columns=["city"], dtype=float)
    block = [name for name in hot if name.startswith("city_")]
    coefficient = {name: 1.0 + c for c, name in enumerate(block)}

    def of_hot(rows):
        return rows["size"] * sum(rows[name] * coefficient[name] for name in block) + rows["rooms"]

    def of_text(rows):
        return (
            rows["size"] * rows["city"].map(lambda city: coefficient[f"city_{city}"])
            + rows["rooms"]
        )

    grouped = explain(of_hot, hot[:30], hot[30:34], groups={"city": block})
    whole = explain(of_text, frame[:30], frame[30:34])
    order = [grouped.feature_names.index(name) for name in whole.feature_names]
    np.testing.assert_allclose(grouped.values[:, order], whole.values, atol=1e-12)
    np.testing.assert_allclose(grouped.contributions[..., order], whole.contributions, atol=1e-12)
    assert grouped.notes == ("Columns in no group are players of their own: 'size', 'rooms'.",)


def test_patches_of_an_image_are_players_down_to_curves_and_weights():
    rng = np.random.default_rng(0)
    images = rng.random((40, 6, 6))
    cells = np.arange(36).reshape(6, 6)
    patches = {
        f"{r},{c}": cells[r : r + 2, c : c + 2].ravel() for r in (0, 2, 4) for c in (0, 2, 4)
    }
    model = lambda rows: rows.reshape(-1, 6, 6)[:, 2:4, 2:4].mean(axis=(1, 2)) * 10.0
    explanation = explain(model, images.reshape(40, 36), images[:2].reshape(2, 36), groups=patches)
    assert explanation.feature_names == tuple(patches)
    assert explanation.contributions.shape == (2, 9, 9)
    assert explanation.weights.shape == (2, 9)
    assert explanation.curves.shape == (2, 10)
    assert (explanation.orders[:, 0] == list(patches).index("2,2")).all()
    assert np.abs(np.delete(explanation.values, 4, axis=1)).max() < 1e-12
    assert explanation.data.shape == (2, 36)
