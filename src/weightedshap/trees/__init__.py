"""Ensembles of trees: as flat arrays, read from people's models, and the compiled loops over them.

All of it is imported when the first tree game is made, not with the library: numba takes long to load.
"""
