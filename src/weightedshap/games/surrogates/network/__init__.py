"""The masked network of the paper: as plain arrays, its training, and compiled loops."""
