"""Compiling loops: without a folder to write to, and without the garbage collector."""

import gc
from unittest import mock

import numba
import pytest

from weightedshap import _compile as compiling


def test_loops_are_compiled_where_no_folder_can_be_written():
    def refusing(cache=False, **options):
        if cache:
            raise RuntimeError("cannot cache function: no locator available")
        return numba.njit(**options)

    with mock.patch.object(compiling, "njit", refusing):
        double = compiling.compiled(lambda x: 2 * x)
    assert double(21) == 42
    assert double.signatures


@pytest.mark.parametrize("collects", [True, False])
def test_compiling_leaves_the_collector_as_it_was(collects):
    seen = []
    was = gc.isenabled()
    (gc.enable if collects else gc.disable)()
    try:
        watch = {"side_effect": lambda loop: seen.append(gc.isenabled())}
        with mock.patch.object(compiling.Compiler, "compile_extra", **watch):
            compiling.NoGCCompiler.compile_extra(mock.Mock(spec=compiling.NoGCCompiler), None)
        assert (seen, gc.isenabled()) == ([False], collects)
    finally:
        (gc.enable if was else gc.disable)()
