"""The masked network of the paper: the network as arrays, its training, and compiled loops.

`model` evaluates a network, `training` fits one, and `kernels` holds the compiled loops of both.
`weightedshap.games.surrogates.neural` makes a game of it.
"""
