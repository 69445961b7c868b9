"""Doctests of modules that need torch are left out where it is not installed."""

from importlib.util import find_spec

collect_ignore = [] if find_spec("torch") else ["src/weightedshap/network/torch_engine.py"]
