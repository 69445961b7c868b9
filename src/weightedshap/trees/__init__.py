"""Games of trees: flat arrays of trees, readers of models, and compiled loops over them.

The package imports these modules when the first tree game is created, because numba loads slowly.
"""
