"""Attacks on purpose: damaged files, hostile calls, killed savers, odd models. `make attack` runs
the long ones."""
