"""Ctrl-C in every phase: what was there before is still usable, and nothing half done is left."""

import numpy as np
import pytest

import weightedshap as ws
from weightedshap.games.surrogates import boosting
from weightedshap.games.surrogates import neural as neural_surrogate

X = np.random.default_rng(0).normal(size=(60, 3))
TREES = ws.games.TreeSurrogate(masks=2, trees=4)


class Interrupting:
    """A model that is interrupted at its n-th call, once."""

    def __init__(self, at=None):
        self.at, self.calls = at, 0

    def __call__(self, rows):
        self.calls += 1
        if self.calls == self.at:
            raise KeyboardInterrupt
        return np.asarray(rows)[:, 0] * np.asarray(rows)[:, 1] + np.asarray(rows)[:, 2]


def assert_usable(explainer, expected):
    assert explainer(X[:4]).equals(expected)


@pytest.mark.parametrize("game", ["marginal", TREES, "baseline", "gaussian"])
def test_an_interrupt_in_any_call_of_the_model_leaves_everything_usable(game):
    calm = Interrupting()
    expected = ws.Explainer(calm, X, game=game, progress=False)(X[:4])
    total = calm.calls
    for at in np.unique(np.linspace(1, total, 12).astype(int)):
        model = Interrupting(at)
        explainer = None
        try:
            explainer = ws.Explainer(model, X, game=game, progress=False)
            explainer(X[:4])
        except KeyboardInterrupt:
            again = explainer or ws.Explainer(model, X, game=game, progress=False)
            assert_usable(again, expected)
        else:
            pytest.fail("the model was not asked")


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_interrupt_between_blocks_leaves_everything_usable(monkeypatch, n_jobs):
    explainer = ws.Explainer(Interrupting(), X, game="marginal", progress=False, n_jobs=n_jobs)
    expected = explainer(X[:4])
    import weightedshap.method as module

    calls = []
    whole = module.estimate

    def broken(*given):
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return whole(*given)

    monkeypatch.setattr(module, "estimate", broken)
    with pytest.raises(KeyboardInterrupt):
        explainer(X[:4])
    monkeypatch.undo()
    assert_usable(explainer, expected)


def test_an_interrupt_while_trees_grow_leaves_everything_usable(monkeypatch):
    import lightgbm

    whole = lightgbm.train

    def interrupted(*given, **more):
        raise KeyboardInterrupt

    monkeypatch.setattr(lightgbm, "train", interrupted)
    assert boosting.boost
    with pytest.raises(KeyboardInterrupt):
        ws.Explainer(Interrupting(), X, game=TREES, progress=False)
    monkeypatch.setattr(lightgbm, "train", whole)
    assert len(ws.Explainer(Interrupting(), X, game=TREES, progress=False)(X[:4])) == 4


def test_an_interrupt_while_the_network_learns_leaves_everything_usable(monkeypatch):
    """The best state so far is kept, and reported."""
    from weightedshap.games.surrogates.network.training import CompiledLearner

    whole = CompiledLearner.step
    calls = []

    def interrupted(self, *given):
        calls.append(1)
        if len(calls) == 20:
            raise KeyboardInterrupt
        return whole(self, *given)

    monkeypatch.setattr(CompiledLearner, "step", interrupted)
    assert neural_surrogate.NeuralSurrogate
    game = ws.games.NeuralSurrogate(units=8, epochs=50, batch=16)
    explainer = ws.Explainer(Interrupting(), X, game=game, progress=False)
    monkeypatch.undo()
    assert "interrupt" in explainer.game.info["stopped"].lower()
    assert np.isfinite(explainer(X[:4]).values).all()


@pytest.mark.parametrize("before", [False, True])
def test_an_interrupt_while_saving_leaves_everything_usable(tmp_path, monkeypatch, before):
    explainer = ws.Explainer(Interrupting(), X, game=TREES, progress=False)
    expected = explainer(X[:4])
    if before:
        explainer.save(tmp_path / "kept")
    whole = np.lib.format.write_array
    calls = []

    def interrupted(*given, **more):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return whole(*given, **more)

    monkeypatch.setattr(np.lib.format, "write_array", interrupted)
    with pytest.raises(KeyboardInterrupt):
        explainer.save(tmp_path / "kept")
    monkeypatch.undo()
    assert [path.name for path in (tmp_path / "kept").iterdir()] == (
        ["explainer.npz"] if before else []
    )
    explainer.save(tmp_path / "kept")
    assert_usable(ws.Explainer.load(tmp_path / "kept", Interrupting()), expected)
