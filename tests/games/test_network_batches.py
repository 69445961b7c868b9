"""The network gives a masked row the same bits alone and in any batch, under every kernel of
BLAS."""

import numpy as np
import pytest

from weightedshap.coalitions import prefixes
from weightedshap.games.surrogates.network.kernels import LANES, product
from weightedshap.games.surrogates.network.model import (
    Network,
    OutputScaling,
    in_blocks,
    masked_inputs,
)

SHAPES = [
    (10, 10, 64, 1),
    (3, 2, 5, 1),
    (23, 20, 128, 3),
    (40, 17, 70, 2),
]  # inputs, players, units, outputs
LINKS = {1: "sigmoid", 2: "identity", 3: "softmax"}


def network(n_inputs, d, n_units, k, rng):
    """Return a random network on `n_inputs` inputs of d players."""
    sizes = {
        "W1": (n_inputs + d, n_units),
        "b1": (n_units,),
        "W2": (n_units, n_units),
        "b2": (n_units,),
        "W3": (n_units, k),
        "b3": (k,),
    }
    parameters = {
        name: rng.normal(size=size).astype(np.float32) / 4 for name, size in sizes.items()
    }
    owner = np.concatenate([np.arange(d), rng.integers(0, d, n_inputs - d)])
    return Network(parameters, owner, OutputScaling(LINKS[k], np.zeros(k), np.ones(k)))


def by_definition(net, Z, coalitions):
    """Return the network's values (n, k), layer by layer in double precision."""
    p = {name: array.astype(np.float64) for name, array in net.parameters.items()}
    elu = lambda v: np.where(v > 0, v, np.expm1(np.minimum(v, 0)))
    first = elu(
        masked_inputs(Z, coalitions, net.player_of_input).astype(np.float64) @ p["W1"] + p["b1"]
    )
    second = elu(first @ p["W2"] + p["b2"])
    return net.scaling.values(second @ p["W3"] + p["b3"])


@pytest.fixture(params=SHAPES, ids=lambda shape: "-".join(map(str, shape)))
def case(request):
    """A network, one row with its first layer's terms, and 4,096 coalitions."""
    rng = np.random.default_rng(0)
    n_inputs, d, *_ = request.param
    net = network(*request.param, rng)
    Z = rng.normal(size=(1, n_inputs)).astype(np.float32)
    return net, Z, net.terms(Z)[0], rng.random((4096, d)) < rng.random((4096, 1))


def test_values_are_those_of_the_definition(case):
    net, Z, terms, coalitions = case
    rows = np.repeat(Z, len(coalitions), axis=0)
    expected = by_definition(net, rows, coalitions)
    np.testing.assert_allclose(net(rows, coalitions), expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(net.at_coalitions(terms, coalitions), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 64, 511, 513])
def test_a_coalition_has_the_same_bits_in_every_batch(case, size):
    net, _, terms, coalitions = case
    whole = net.at_coalitions(terms, coalitions)
    for start in (0, 5, 700, len(coalitions) - size):
        part = slice(start, start + size)
        assert np.array_equal(net.at_coalitions(terms, coalitions[part]), whole[part])


@pytest.mark.parametrize("size", [1, 2, 3, 7, 64, 511, 513])
def test_a_row_with_its_own_coalition_has_the_same_bits_in_every_batch(case, size):
    net, Z, _, coalitions = case
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(len(coalitions), Z.shape[1])).astype(np.float32)
    whole = net(rows, coalitions)
    for start in (0, 5, 700, len(coalitions) - size):
        part = slice(start, start + size)
        assert np.array_equal(net(rows[part], coalitions[part]), whole[part])


def test_the_order_of_coalitions_changes_no_bit(case):
    net, _, terms, coalitions = case
    shuffled = np.random.default_rng(2).permutation(len(coalitions))
    whole = net.at_coalitions(terms, coalitions)
    assert np.array_equal(net.at_coalitions(terms, coalitions[shuffled]), whole[shuffled])


def test_values_along_orders_are_those_of_their_prefixes_to_the_bit(case):
    net, _, terms, coalitions = case
    d = coalitions.shape[1]
    orders = np.random.default_rng(3).permuted(np.tile(np.arange(d), (60, 1)), axis=1)
    along = net.along_orders(terms, orders)
    at_prefixes = net.at_coalitions(terms, prefixes(orders).reshape(-1, d))
    assert np.array_equal(along.reshape(at_prefixes.shape), at_prefixes)
    assert np.array_equal(net.along_orders(terms, orders[7:8]), along[7:8])


@pytest.mark.parametrize("scale", [1e-30, 1e-3, 1.0, 1e30])
def test_sums_of_the_first_layer_are_exact(scale):
    rng = np.random.default_rng(4)
    net = network(90, 90, 16, 1, rng)
    Z = (scale * rng.normal(size=(3, 90))).astype(np.float32)
    for terms in net.terms(Z):
        added = terms.cumsum(axis=0)
        taken = terms[::-1].cumsum(axis=0)
        assert np.array_equal(added[-1], taken[-1])
        assert np.array_equal(added[-1] - terms[1:].sum(axis=0), terms[0])


def test_a_product_adds_up_each_row_in_one_order_wherever_it_stands():
    rng = np.random.default_rng(5)
    weights = rng.normal(size=(68, 130)).astype(np.float32)
    row = rng.normal(size=68).astype(np.float32)
    rows = rng.normal(size=(32, 68)).astype(np.float32)
    rows[:] = np.where(np.arange(32)[:, None] % 3 == 0, row, rows)
    blocks = in_blocks(weights, multiple=4)
    out = np.empty((len(blocks), 32, LANES), dtype=np.float32)
    product(rows, blocks, out)
    flat = out.transpose(1, 0, 2).reshape(32, -1)
    np.testing.assert_allclose(
        flat[:, :130], rows.astype(np.float64) @ weights, rtol=1e-4, atol=1e-4
    )
    assert not flat[:, 130:].any()
    assert len(np.unique(flat[::3], axis=0)) == 1
