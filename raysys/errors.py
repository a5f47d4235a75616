"""How faults reach a person: one clear sentence, and an exit code that can be trusted."""

import atexit
import os
import sys
from collections.abc import Callable
from typing import NoReturn

DONE, FAILED, BAD_USAGE, INTERRUPTED = 0, 1, 2, 130


class UserError(Exception):
    """Something the person who started the job can put right.

    The message says what is wrong, where (file, key, setting) and what to do. Jobs print it alone, without a traceback,
    and exit with code 2.
    """


class RunFailed(Exception):
    """The work was started and could not be completed. Jobs print the message and exit with code 1."""


class CertainFailure(RunFailed):
    """A failure that the same work would only meet again: nothing is restarted."""


def run_job(main: Callable[[], int | None]) -> NoReturn:
    """Call `main` and end the process: 0 done, 1 failed (or what `main` returned), 2 bad usage, 130 interrupted."""
    try:
        code = main() or DONE
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        code = BAD_USAGE
    except RunFailed as error:
        print(f"failed: {error}", file=sys.stderr)
        code = FAILED
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        code = INTERRUPTED
    sys.exit(code)


def run_program(main: Callable[[], int | None]) -> NoReturn:
    """:func:`run_job` as the last thing a process does: its exit code cannot be spoilt by what comes after.

    Exit handlers run and output is flushed. Then the process ends at once: libraries in C++ whose threads are still there
    when static objects are taken down have aborted finished jobs ("terminate called without an active exception").
    """
    try:
        run_job(main)
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else FAILED if end.code else DONE
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
