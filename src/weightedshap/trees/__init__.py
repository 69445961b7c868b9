"""Ensembles of trees, readers and compiled loops; imported with the first tree game, because numba
loads slowly."""
