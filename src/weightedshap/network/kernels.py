"""Compiled loops of the network: sums of the first layer, and ELU units, in one pass each."""

import numpy as np

from weightedshap.compiling import compiled

F = np.float32


@compiled(fastmath={"contract"})
def shifted_elu(v):
    """ELU(v) + 1 = max(v, 0) + exp(min(v, 0)), in single precision without branches, so that it is vectorised.

    exp(u) = 2^k · 2^f with k + f = u·log₂e, |f| ≤ ½, and 2^f by a polynomial with an error of 1e-7. Below −80 the
    exponential has long been lost beside 1, and k must stay the exponent of a normal number, −126 or more.
    """
    t = min(max(v, F(-80.0)), F(0.0)) * F(1.4426950408889634)  # log₂e
    k = np.floor(t + F(0.5))
    f = t - k
    p = F(1.535336188319500e-4)  # about (ln 2)^j / j! for j = 6, …, 0: the minimax polynomial of Cephes' exp2f
    p = p * f + F(1.339887440266574e-3)
    p = p * f + F(9.618437357674640e-3)
    p = p * f + F(5.550332471162809e-2)
    p = p * f + F(2.402264791363012e-1)
    p = p * f + F(6.931472028550421e-1)
    p = p * f + F(1.0)
    # 2^k: a single has its exponent, plus 127, above 23 bits of fraction
    return max(v, F(0.0)) + p * np.int32((np.int32(k) + np.int32(127)) << np.int32(23)).view(np.float32)


@compiled
def units_of(sums, out):
    """(h,) ELU + 1 of sums (h,) in double precision; two loops, because each by itself is vectorised."""
    for h in range(sums.shape[0]):
        out[h] = F(sums[h])
    for h in range(sums.shape[0]):
        out[h] = shifted_elu(out[h])


@compiled
def first_layer(coalitions, vectors, known, sums, out):
    """(m, h) ELU + 1 of the first layer for coalitions (m, d); `sums` (h,) of `known` (d,) is carried along."""
    for r in range(coalitions.shape[0]):
        for i in range(coalitions.shape[1]):
            if coalitions[r, i] != known[i]:
                known[i] = coalitions[r, i]
                sign = 1.0 if known[i] else -1.0
                for h in range(sums.shape[0]):
                    sums[h] += sign * vectors[i, h]
        units_of(sums, out[r])


@compiled
def walk_layer(orders, vectors, bias, out):
    """(m·(d + 1), h) ELU + 1 of the first layer for the first 0, 1, …, d players of each order (m, d)."""
    d = orders.shape[1]
    sums = np.empty(bias.shape[0], bias.dtype)
    for r in range(orders.shape[0]):
        for h in range(sums.shape[0]):
            sums[h] = bias[h]
        for t in range(d + 1):
            units_of(sums, out[r * (d + 1) + t])
            if t < d:
                step = vectors[orders[r, t]]
                for h in range(sums.shape[0]):
                    sums[h] += step[h]


@compiled
def elu(inputs, bias, shift):
    """ELU + `shift`, zero or one, of `inputs` (m, h) + `bias` (h,), in place."""
    less = F(1.0) - shift
    for r in range(inputs.shape[0]):
        for h in range(inputs.shape[1]):
            inputs[r, h] = shifted_elu(inputs[r, h] + bias[h]) - less


@compiled
def through_elu(slopes, units, total):
    """Slopes (m, h) by the units times ELU' = 1 + min(unit, 0), in place; `total` (h,) gets their sum over rows."""
    for h in range(total.shape[0]):
        total[h] = F(0.0)
    for r in range(slopes.shape[0]):
        for h in range(slopes.shape[1]):
            slopes[r, h] *= F(1.0) + min(units[r, h], F(0.0))
            total[h] += slopes[r, h]


@compiled
def through_last(last, weights, out):
    """(m, h) slopes by the units: those by the outputs (m, k) times weights (h, k); faster than BLAS for small k."""
    for r in range(last.shape[0]):
        for h in range(weights.shape[0]):
            out[r, h] = last[r, 0] * weights[h, 0]
        for o in range(1, last.shape[1]):
            for h in range(weights.shape[0]):
                out[r, h] += last[r, o] * weights[h, o]


@compiled
def adam(values, gradient, mean, square, rate, beta_1, beta_2, epsilon, seen_1, seen_2):
    """One step of Adam on flat arrays, in place; `seen` = 1 − βᵗ is how much of the running means t steps fill."""
    a, b, root = F(beta_1), F(beta_2), F(1.0 / seen_2)
    size, least = F(rate / seen_1), F(epsilon)
    for i in range(values.shape[0]):
        g = gradient[i]
        mean[i] = a * mean[i] + (F(1.0) - a) * g
        square[i] = b * square[i] + (F(1.0) - b) * g * g
        values[i] -= size * mean[i] / (np.sqrt(square[i] * root) + least)


@compiled(fastmath={"reassoc", "contract"})
def last_layer(inputs, bias, weights, last_bias, out):
    """(m, k) weights (k, h) times the units ELU + 1 of inputs (m, h) + bias, plus `last_bias` (k,)."""
    for r in range(inputs.shape[0]):
        for o in range(weights.shape[0]):
            total = F(0.0)
            for h in range(inputs.shape[1]):
                total += shifted_elu(inputs[r, h] + bias[h]) * weights[o, h]
            out[r, o] = total + last_bias[o]
