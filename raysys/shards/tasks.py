"""Calls in parallel: in Ray tasks where Ray runs, else in threads."""

import os
import pickle
import sys
import threading
import types
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Any, TypeVar

from raysys.errors import RunFailed, UserError

RECIPES = "raysys_datasets"
"""The package that recipes are loaded into; it is made by hand, so that other processes cannot find it by themselves."""
ENDPOINT_VARIABLES = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_REGION", "AWS_DEFAULT_REGION")
"""Where object storage is reached, for recipes that open their source by themselves; they travel with the calls, credentials never do."""
PATIENCE = 20
"""Seconds that tasks have to end in when they are no longer wanted."""

Result = TypeVar("Result")


def call_all(function: Callable[..., Result], arguments: Sequence[tuple[Any, ...]]) -> Generator[tuple[int, Result], None, None]:
    """Yield (i, ``function(*arguments[i], stop=stop)``) as the calls finish.

    Closed early, or after an error, the other calls are stopped: by a KeyboardInterrupt in tasks; in threads `stop` is set, which
    `function` looks at now and then.

    Args:
        function: belongs to a module, as it is called in other processes; it may be one of a recipe's.
        arguments: one tuple per call; picklable.

    Raises:
        UserError: a recipe's code is not there on another machine.
        RunFailed: a process ended in the midst of its call.
        Exception: what `function` raised.
    """
    ray = sys.modules.get("ray")
    if ray is None or not ray.is_initialized():
        yield from _in_threads(function, arguments)
        return
    recipes = list(sys.modules[RECIPES].__path__) if RECIPES in sys.modules else []
    environment = {name: os.environ[name] for name in ENDPOINT_VARIABLES if name in os.environ}
    task = ray.remote(num_cpus=1)(_call)
    waiting = {task.remote(recipes, environment, pickle.dumps((function, its))): number for number, its in enumerate(arguments)}
    try:
        while waiting:
            done, _ = ray.wait(list(waiting), num_returns=1)
            yield waiting.pop(done[0]), ray.get(done[0])
    except ray.exceptions.RayTaskError as error:
        raise error.cause from None  # the sentence itself, not a traceback from another process
    except ray.exceptions.RayError as error:
        raise RunFailed(f"a process of Ray ended in the midst of its work: {' '.join(str(error).split())}") from None
    finally:
        for reference in waiting:
            ray.cancel(reference)
        if waiting:
            ray.wait(list(waiting), num_returns=len(waiting), timeout=PATIENCE)


def _call(recipes: list[str], environment: dict[str, str], call: bytes) -> Any:
    """In a worker: make the recipes' package, then unpickle and call."""
    if not all(map(os.path.isdir, recipes)):
        raise UserError(f"{recipes[0]}, which holds the recipes, is missing on a machine of the cluster; all of them need it at that place")
    there = sys.modules.get(RECIPES)
    if recipes and (there is None or list(there.__path__) != recipes):
        for name in [name for name in sys.modules if name.partition(".")[0] == RECIPES]:  # workers live longer than those who call them
            del sys.modules[name]
        package = types.ModuleType(RECIPES)
        package.__path__ = recipes
        sys.modules[RECIPES] = package
    function, arguments = pickle.loads(call)
    former = {name: os.environ.get(name) for name in environment}
    os.environ.update(environment)
    try:
        return function(*arguments, stop=threading.Event())
    finally:
        for name, value in former.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


def _in_threads(function: Callable[..., Result], arguments: Sequence[tuple[Any, ...]]) -> Generator[tuple[int, Result], None, None]:
    stop = threading.Event()
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        numbers = {pool.submit(function, *its, stop=stop): number for number, its in enumerate(arguments)}
        try:
            for future in as_completed(numbers):
                yield numbers[future], future.result()
        finally:
            stop.set()
            pool.shutdown(cancel_futures=True)
