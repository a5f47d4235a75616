"""Exit codes that scripts can trust."""

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
