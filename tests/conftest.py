"""What all tests share: one Ray session per test run."""

import os
import signal
import sys
from types import ModuleType

import pytest

from raysys.shards.tasks import RECIPES

os.environ.setdefault("RAY_AUTH_MODE", "disabled")
# Processes of torch on two cores only get in each other's way.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("RAY_TRAIN_HEALTH_CHECK_INTERVAL_S", "0.1")

# Shells start what goes on in the background with SIGINT ignored, and so would every process that is to be interrupted here.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

pytest_plugins = ["tests.object_store"]


@pytest.fixture(scope="session")
def collected_recipes() -> dict[str, ModuleType]:
    """The recipes' modules as the tests imported them when they were collected."""
    return {name: module for name, module in sys.modules.items() if name.partition(".")[0] == RECIPES}


@pytest.fixture(autouse=True, scope="module")
def recipes_as_collected(collected_recipes):
    """Each module of tests begins with them, whatever tests before it have put in their place."""
    for name in [name for name in sys.modules if name.partition(".")[0] == RECIPES]:
        del sys.modules[name]
    sys.modules.update(collected_recipes)


@pytest.fixture(scope="session")
def ray_session():
    """A local Ray with 4 logical CPUs, whatever the machine has; ended with the test run."""
    import ray

    ray.init("local", num_cpus=4, include_dashboard=True, log_to_driver=False, logging_level="error")
    yield ray
    ray.shutdown()
