"""Compiled loops of the network: sums of the first layer, matrix products, ELU, and Adam.

For predictions the output of a unit is ELU + 1, which saves a subtraction; the bias of the next
layer makes up for it. `weightedshap.games.surrogates.network.model` calls the loops to predict, and
`weightedshap.games.surrogates.network.training` those from `elu` to `adam` to learn.
"""

import math

import numpy as np

from weightedshap._compile import compiled

F = np.float32
U = np.uint64
# Columns of a product that are added up side by side. Units are padded to multiples of it, and
# fewer lanes share what is loaded of a row. Timed with layers of 64 units: at half between 3 %
# faster and 12 % slower, at double 53 to 74 % slower. With 128 units half is 21 % slower and double
# 5 % faster, with 32 half is 10 % faster and double 88 % slower.
LANES = 64
SUM_BITS = 52  # of the sums in the first layer: 53 can be held, and one is kept for rounding


@compiled(fastmath={"contract"})
def shifted_elu(v):
    """Return ELU(v) + 1 = max(v, 0) + exp(min(v, 0)), in single precision.

    There are no branches, so that loops over it are vectorised. exp(u) = 2^k · 2^f with k + f =
    u·log₂e, |f| ≤ ½, and 2^f by a polynomial with an error of 1e-7. v is clipped at −80: below, the
    exponential is too small to change 1, and k must stay the exponent of a normal number, −126 or
    more.
    """
    t = min(max(v, F(-80.0)), F(0.0)) * F(1.4426950408889634)  # log₂e
    k = np.floor(t + F(0.5))
    f = t - k
    # About (ln 2)^j / j! for j = 6, …, 0: the minimax polynomial of Cephes' exp2f.
    p = F(1.535336188319500e-4)
    p = p * f + F(1.339887440266574e-3)
    p = p * f + F(9.618437357674640e-3)
    p = p * f + F(5.550332471162809e-2)
    p = p * f + F(2.402264791363012e-1)
    p = p * f + F(6.931472028550421e-1)
    p = p * f + F(1.0)
    # 2^k: a single has its exponent, plus 127, above 23 bits of fraction.
    return max(v, F(0.0)) + p * np.int32((np.int32(k) + np.int32(127)) << np.int32(23)).view(
        np.float32
    )


@compiled
def player_terms(Z, owner, weights, bias, terms):
    """Fill `terms` with what the bias and each known player add to the first layer's sums.

    `terms` is (n, d + 1, h) for n rows, d players and h hidden units. At coalition S of row r the
    sum is ``terms[r, 0]`` + Σ_{i ∈ S} ``terms[r, 1 + i]``. Z (n, p) are the inputs, owner (p,)
    their players, and weights (p + d, h) those of the inputs and then of the d masks. ``terms[:,
    0]`` is the bias; the term of player i is the weights of its mask, plus its inputs times their
    weights.

    The terms of each unit of a row are rounded to whole multiples of one power of two, so coarse
    that any sum of them has 53 bits at most. All sums are then exact, and those of a coalition do
    not depend on the players that were added and removed before. The rounding error is in the last
    bit.
    """
    n_inputs = Z.shape[1]
    n_units = bias.shape[0]
    n_terms = terms.shape[1]
    size = np.empty(n_units)
    scale = np.empty(n_units)
    step = np.empty(n_units)
    for r in range(Z.shape[0]):
        # The terms as they are, not rounded yet.
        row = terms[r]
        for u in range(n_units):
            row[0, u] = bias[u]
        for t in range(1, n_terms):
            for u in range(n_units):
                row[t, u] = weights[n_inputs + t - 1, u]
        for c in range(n_inputs):
            t = owner[c] + 1
            z = np.float64(Z[r, c])
            for u in range(n_units):
                row[t, u] += z * weights[c, u]

        # No sum of terms exceeds the sum of their sizes, up to the rounding of the latter. So with
        # 2^exponent above that, sums are less than 2^SUM_BITS steps, up to rounding.
        for u in range(n_units):
            size[u] = 0.0
        for t in range(n_terms):
            for u in range(n_units):
                size[u] += abs(row[t, u])
        for u in range(n_units):
            _, exponent = math.frexp(size[u])
            scale[u] = math.ldexp(1.0, SUM_BITS - exponent)
            step[u] = math.ldexp(1.0, exponent - SUM_BITS)
        for t in range(n_terms):
            for u in range(n_units):
                row[t, u] = np.rint(row[t, u] * scale[u]) * step[u]


@compiled
def first_units(sums, out):
    """Fill `out` with ELU + 1 of the first layer's sums, both (h,) for h hidden units."""
    # Two loops, because each by itself is vectorised.
    for u in range(sums.shape[0]):
        out[u] = F(sums[u])
    for u in range(sums.shape[0]):
        out[u] = shifted_elu(out[u])


@compiled
def first_layer(coalitions, terms, known, sums, out):
    """Fill `out` with the first layer's outputs, ELU + 1, at coalitions (m, d) of one row.

    `out` is (m, h) for h hidden units. terms (d + 1, h) are those of one row. `known` (d,) is the
    previous coalition, and `sums` (h,) the sum of its terms; both are updated from one coalition to
    the next.
    """
    for r in range(coalitions.shape[0]):
        # Add or take away the players that differ from the coalition before. Sums are exact, so no
        # error adds up.
        for i in range(coalitions.shape[1]):
            if coalitions[r, i] != known[i]:
                known[i] = coalitions[r, i]
                sign = 1.0 if known[i] else -1.0
                for u in range(sums.shape[0]):
                    sums[u] += sign * terms[i + 1, u]
        first_units(sums, out[r, : sums.shape[0]])


@compiled
def walk_layer(orders, terms, out):
    """Fill `out` with the first layer's outputs, ELU + 1, along orders (m, d) of one row.

    `out` is (m·(d + 1), h) for h hidden units. There are d + 1 rows for each order, at which its
    first 0, 1, …, d players are known.
    """
    d = orders.shape[1]
    n_units = terms.shape[1]
    sums = np.empty(n_units)
    for r in range(orders.shape[0]):
        # `sums` are those over the first t players of the order.
        for u in range(n_units):
            sums[u] = terms[0, u]
        for t in range(d + 1):
            first_units(sums, out[r * (d + 1) + t, :n_units])
            if t < d:
                added = terms[orders[r, t] + 1]
                for u in range(n_units):
                    sums[u] += added[u]


@compiled(fastmath={"contract"})
def product(rows, weights, out):
    """Fill `out` with the matrix product of `rows` and `weights`, whose columns come in blocks.

    `rows` is (n, h), `weights` (B, h, LANES) and `out` (B, n, LANES), for B blocks of columns. n
    and h are multiples of four. Each row is summed separately and always in the same order, so the
    result for a row does not depend on its position, bit for bit. BLAS does not guarantee that:
    OpenBLAS sums the last rows of a matrix in another order than those before them.
    """
    # Indices are unsigned: numba lets a signed one count from the end, and a loop that has to look
    # at the sign at each step is not vectorised.
    n_rows = U(rows.shape[0])
    n_terms = U(rows.shape[1])
    lanes = U(LANES)
    for block in range(weights.shape[0]):
        w = weights[block].ravel()
        o = out[block].ravel()

        # Four rows and four terms at a time: any fewer, and loading weights and sums takes longer
        # than multiplying them; any more, and there are not enough registers.
        for r in range(U(0), n_rows, U(4)):
            row_a = rows[r]
            row_b = rows[r + U(1)]
            row_c = rows[r + U(2)]
            row_d = rows[r + U(3)]
            at_a = r * lanes
            at_b = at_a + lanes
            at_c = at_b + lanes
            at_d = at_c + lanes
            for lane in range(U(4) * lanes):
                o[at_a + lane] = F(0.0)

            # The sums of rows a, b, c, d over terms before i stand in `o`.
            for i in range(U(0), n_terms, U(4)):
                a0 = row_a[i]
                a1 = row_a[i + U(1)]
                a2 = row_a[i + U(2)]
                a3 = row_a[i + U(3)]
                b0 = row_b[i]
                b1 = row_b[i + U(1)]
                b2 = row_b[i + U(2)]
                b3 = row_b[i + U(3)]
                c0 = row_c[i]
                c1 = row_c[i + U(1)]
                c2 = row_c[i + U(2)]
                c3 = row_c[i + U(3)]
                d0 = row_d[i]
                d1 = row_d[i + U(1)]
                d2 = row_d[i + U(2)]
                d3 = row_d[i + U(3)]
                at_0 = i * lanes
                at_1 = at_0 + lanes
                at_2 = at_1 + lanes
                at_3 = at_2 + lanes
                for lane in range(lanes):
                    w0 = w[at_0 + lane]
                    w1 = w[at_1 + lane]
                    w2 = w[at_2 + lane]
                    w3 = w[at_3 + lane]
                    total = o[at_a + lane]
                    total += a0 * w0
                    total += a1 * w1
                    total += a2 * w2
                    total += a3 * w3
                    o[at_a + lane] = total
                    total = o[at_b + lane]
                    total += b0 * w0
                    total += b1 * w1
                    total += b2 * w2
                    total += b3 * w3
                    o[at_b + lane] = total
                    total = o[at_c + lane]
                    total += c0 * w0
                    total += c1 * w1
                    total += c2 * w2
                    total += c3 * w3
                    o[at_c + lane] = total
                    total = o[at_d + lane]
                    total += d0 * w0
                    total += d1 * w1
                    total += d2 * w2
                    total += d3 * w3
                    o[at_d + lane] = total


@compiled
def hidden_units(inputs, bias, out):
    """Fill `out` with ELU(inputs + bias) + 1, turning blocks of columns into a plain matrix.

    `inputs` is (B, n, LANES) for B blocks of columns, `bias` (B·LANES,) and `out` (n, B·LANES).
    """
    # From blocks of columns to whole rows, as `product` takes them for the next layer.
    for b in range(inputs.shape[0]):
        shift = bias[b * LANES : (b + 1) * LANES]
        for r in range(inputs.shape[1]):
            from_block = inputs[b, r]
            to_row = out[r, b * LANES : (b + 1) * LANES]
            for lane in range(LANES):
                to_row[lane] = shifted_elu(from_block[lane] + shift[lane])


@compiled
def elu(inputs, bias, shift):
    """Replace `inputs` (m, h) by ELU(inputs + bias) + shift, where shift is zero or one."""
    less = F(1.0) - shift
    for r in range(inputs.shape[0]):
        for h in range(inputs.shape[1]):
            inputs[r, h] = shifted_elu(inputs[r, h] + bias[h]) - less


@compiled
def through_elu(slopes, units, total):
    """Backpropagate derivatives `slopes` through ELU, in place; fill `total` with their sums.

    `slopes` is (m, h) and `total` (h,), for m rows and h hidden units. Slopes are multiplied by
    ELU' = 1 + min(unit, 0): before, they are derivatives of the loss by the layer's outputs `units`
    (m, h), and after, by its inputs.
    """
    for h in range(total.shape[0]):
        total[h] = F(0.0)
    for r in range(slopes.shape[0]):
        for h in range(slopes.shape[1]):
            slopes[r, h] *= F(1.0) + min(units[r, h], F(0.0))
            total[h] += slopes[r, h]


@compiled
def through_last(last, weights, out):
    """Backpropagate derivatives of the loss through the last layer, from `last` to `out`.

    `last` is (m, k) and `out` (m, h), for h hidden units. out = last · weightsᵀ, with weights (h,
    k); faster than BLAS for small k.
    """
    for r in range(last.shape[0]):
        for h in range(weights.shape[0]):
            out[r, h] = last[r, 0] * weights[h, 0]
        for o in range(1, last.shape[1]):
            for h in range(weights.shape[0]):
                out[r, h] += last[r, o] * weights[h, o]


@compiled
def adam(values, gradient, mean, square, rate, beta_1, beta_2, epsilon, seen_1, seen_2):
    """Do one step of Adam on flat arrays, in place.

    With running means m of the gradient and s of its square, values −= rate · m̂ / (√ŝ + epsilon),
    where m̂ = m / seen_1 and ŝ = s / seen_2; `seen` = 1 − βᵗ at step t, as means start at 0.
    """
    a = F(beta_1)
    b = F(beta_2)
    root = F(1.0 / seen_2)
    size = F(rate / seen_1)
    least = F(epsilon)
    for i in range(values.shape[0]):
        g = gradient[i]
        mean[i] = a * mean[i] + (F(1.0) - a) * g
        square[i] = b * square[i] + (F(1.0) - b) * g * g
        values[i] -= size * mean[i] / (np.sqrt(square[i] * root) + least)


@compiled(fastmath={"reassoc", "contract"})
def last_layer(inputs, bias, weights, last_bias, out):
    """Fill `out` with the network's raw outputs, from the inputs of its second hidden layer.

    The outputs (m, k) are weights (k, B·LANES) times ELU + 1 of inputs (B, n, LANES) + bias
    (B·LANES,), plus last_bias (k,).
    """
    # Block by block, so that units are used at once and never written down.
    for r in range(out.shape[0]):
        for o in range(weights.shape[0]):
            out[r, o] = last_bias[o]
            for b in range(inputs.shape[0]):
                block = inputs[b, r]
                shift = bias[b * LANES : (b + 1) * LANES]
                weight = weights[o, b * LANES : (b + 1) * LANES]
                total = F(0.0)
                for lane in range(LANES):
                    total += shifted_elu(block[lane] + shift[lane]) * weight[lane]
                out[r, o] += total
