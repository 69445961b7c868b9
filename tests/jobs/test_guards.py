"""Ends of the process that others ask for, and standard output that is not for them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import weightedshap as ws
from weightedshap.jobs.guards import forbid_exit, reserve_stdout


def run_code(code):
    """The exit code and the outputs of a process that runs this code."""
    environment = {**os.environ, "PYTHONPATH": str(Path(ws.__file__).parent.parent)}
    command = [sys.executable, "-c", code]
    process = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=60)
    return process.returncode, process.stdout, process.stderr


BEGIN = "import os, threading; from weightedshap.jobs.guards import *\nwith forbid_exit():\n    "


def test_an_exit_of_the_process_is_an_exception():
    with pytest.raises(SystemExit) as raised, forbid_exit():
        os._exit(3)
    assert raised.value.code == 3


def test_afterwards_the_process_can_be_ended_again():
    before = os._exit
    with forbid_exit():
        assert os._exit is not before
    assert os._exit is before


@pytest.mark.parametrize(("asked", "code"), [(0, 1), (5, 5)])
def test_an_exit_by_another_thread_is_never_a_success(asked, code):
    thread = (
        f"thread = threading.Thread(target=os._exit, args=({asked},)); thread.start();"
        " thread.join()"
    )
    assert run_code(BEGIN + thread)[0] == code


def test_a_process_that_was_forked_ends_as_it_likes():
    fork = (
        "child = os.fork(); os._exit(5) if child == 0 else None; print(os.waitpid(child, 0)[1]"
        " >> 8)"
    )
    assert run_code(BEGIN + fork) == (0, "5\n", "")


def test_standard_output_is_reserved_for_the_caller_and_given_back():
    code = "import os, sys; from weightedshap.jobs.guards import *\n"
    code += "print('before')\n"
    code += "with reserve_stdout() as out:\n"
    code += (
        "    print('theirs'); sys.__stdout__.write('theirs too\\n'); os.system('echo of a child')\n"
    )
    code += "    out.write('ours\\n')\n"
    code += "print('after')"
    code, output, errors = run_code(code)
    assert code == 0
    assert output == "before\nours\nafter\n"
    assert set(errors.splitlines()) == {"theirs", "theirs too", "of a child"}


def test_a_stream_that_is_no_file_is_reserved_for_the_caller(capsys):
    with reserve_stdout() as out:
        sys.stdout.write("theirs\n")
        out.write("ours\n")
    assert capsys.readouterr() == ("ours\n", "theirs\n")
