"""Calls in parallel: the same in threads and in Ray's processes, also of functions that only a recipe has."""

import importlib
import os
import sys
import threading
import time
import types

import pytest

from raysys.errors import RunFailed, UserError
from raysys.shards.tasks import RECIPES, call_all
from raysys.storage import Storage
from tests.object_store import OWNER


def square(number: int, stop: threading.Event) -> int:
    if number < 0:
        raise UserError(f"{number} is negative")
    return number * number


def wait(seconds: float, stop: threading.Event) -> bool:
    return stop.wait(seconds)


@pytest.fixture(params=["threads", "ray"])
def place(request, monkeypatch):
    """Where calls run."""
    if request.param == "ray":
        request.getfixturevalue("ray_session")
    else:
        monkeypatch.delitem(sys.modules, "ray", raising=False)
    return request.param


def test_every_call_is_made_and_numbered(place):
    assert dict(call_all(square, [(number,) for number in range(20)])) == {number: number * number for number in range(20)}
    assert list(call_all(square, [])) == []


def test_an_error_is_the_one_that_was_raised(place):
    with pytest.raises(UserError, match=r"^-3 is negative$"):
        list(call_all(square, [(1,), (-3,), (2,)]))


def test_threads_are_told_to_stop(monkeypatch):
    monkeypatch.delitem(sys.modules, "ray", raising=False)
    start = time.monotonic()
    with pytest.raises(UserError):
        list(call_all(lambda number, stop: square(number, stop) if number < 0 else wait(60, stop), [(1,), (-1,), (2,), (3,)]))
    assert time.monotonic() - start < 5


def endpoint(stop: threading.Event) -> tuple[str, str]:
    return Storage().endpoint or "none", os.environ.get("AWS_SECRET_ACCESS_KEY", "none")


def test_the_endpoint_of_object_storage_travels_along(place, monkeypatch):
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "http://store:1")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "changed here")
    [(_, (address, secret))] = call_all(endpoint, [()])
    assert address == "http://store:1"
    assert secret == ("changed here" if place == "threads" else OWNER.secret_key)
    monkeypatch.delenv("AWS_ENDPOINT_URL_S3")
    [(_, (address, _))] = call_all(endpoint, [()])
    assert address != "http://store:1"


def end(stop: threading.Event) -> None:
    os._exit(1)


def test_a_process_that_ends_is_told(ray_session):
    with pytest.raises(RunFailed, match="a process of Ray ended in the midst of its work"):
        list(call_all(end, [()]))


def test_functions_of_recipes_reach_other_processes(tmp_path, ray_session, monkeypatch):
    """The package is made anew in workers when it lies in another folder than before."""
    for answer in ("first", "second"):
        folder = tmp_path / answer / "some"
        folder.mkdir(parents=True)
        (folder / "words.py").write_text(f"WORD = {answer!r}")
        (folder / "recipe.py").write_text("from .words import WORD\ndef say(number, stop): return f'{WORD} {number}'")
        for name in [name for name in sys.modules if name.partition(".")[0] == RECIPES]:
            monkeypatch.delitem(sys.modules, name)
        package = types.ModuleType(RECIPES)
        package.__path__ = [str(tmp_path / answer)]
        monkeypatch.setitem(sys.modules, RECIPES, package)
        recipe = importlib.import_module(f"{RECIPES}.some.recipe")
        assert dict(call_all(recipe.say, [(number,) for number in range(6)])) == {number: f"{answer} {number}" for number in range(6)}
    for name in [name for name in sys.modules if name.startswith(f"{RECIPES}.")]:
        monkeypatch.delitem(sys.modules, name)
