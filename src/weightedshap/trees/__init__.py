"""Ensembles of trees: as flat arrays, read from people's models, and the compiled loops over them."""
