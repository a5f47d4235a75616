"""How faults reach a person: one clear sentence, and an exit code that can be trusted."""

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
