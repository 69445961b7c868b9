"""Compiled loops over trees, and when each of them runs.

`splits` predicts, and finds the direction of rows at splits. Each kind of game has its own loops
for φ_w, for values along orders and for values of coalitions:

* **Path-dependent** games (``tree_path``, ``distilled_trees``) compute φ_w by `quadrature`, and by
  `paths` at leaves with so many players that quadrature would lose digits. `coalitions.add_steps`
  computes values along orders: with at most 32 players in a group of trees, each node is computed
  for all coalitions, with more only where they differ. `coalitions.values` takes the same
  coalitions for all rows, and `coalitions.masked_values` one for each row, as fits and imputed
  surrogates need.
* **Background** games with at most four rows (``tree_interventional``), and those with one absent
  row whose columns are all missing (``tree_surrogate``), list the leaves that each row can reach,
  in `leaf_lists`.
* **Background** games with more rows summarise these as `patterns`, up to 64 players on a path and
  2^25 patterns; beyond that they take `leaf_lists` too, background row by background row.

Arrays that belong together are `NamedTuple` arguments. A loop binds the fields that it needs to
names on its first lines: a field that is read within a loop would be loaded anew at every step.
"""
