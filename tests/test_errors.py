"""Exit codes that scripts can trust."""

import subprocess
import sys

import pytest

from raysys.errors import RunFailed, UserError, run_job
from raysys.shards.tar import ShardError
from raysys.storage import StorageError


def interrupted():
    raise KeyboardInterrupt


def raising(error):
    def main():
        raise error

    return main


@pytest.mark.parametrize(
    ("main", "code", "message"),
    [
        (lambda: None, 0, ""),
        (lambda: 0, 0, ""),
        (lambda: 1, 1, ""),
        (raising(UserError("the file x does not exist")), 2, "error: the file x does not exist\n"),
        (raising(RunFailed("worker 1: out of memory")), 1, "failed: worker 1: out of memory\n"),
        (raising(StorageError("s3://b/x: no answer")), 1, "failed: s3://b/x: no answer\n"),
        (raising(ShardError("x.tar", 512, "cut", 0)), 1, "failed: x.tar, byte 512"),
        (interrupted, 130, "interrupted\n"),
        (lambda: sys.exit(2), 2, ""),
    ],
)
def test_exit_codes(main, code, message, capsys):
    with pytest.raises(SystemExit) as end:
        run_job(main)
    assert end.value.code == code
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(message)
    assert bool(err) == bool(message)


def test_a_programming_error_keeps_its_traceback():
    with pytest.raises(ZeroDivisionError):
        run_job(lambda: 1 // 0)


@pytest.mark.parametrize(("ending", "code"), [("return", 0), ("return 1", 1), ("raise errors.UserError('no')", 2), ("sys.exit(2)", 2)])
def test_a_program_ends_with_its_code_after_exit_handlers_and_output(ending, code):
    program = f"""
import atexit, sys
from raysys import errors
def main():
    atexit.register(print, "handler")
    print("output", end=" ")
    {ending}
errors.run_program(main)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (code, "output handler\n")
