"""Fetching from the package index: Python is replaced by small scripts, so that every answer of pip can be had."""

import hashlib
import stat
import sys

import pytest

from raysys.errors import UserError
from tests.datasets.recipes import recipe_module

pypi = recipe_module("common.pypi")

CONTENT = b"the right content\n"
THING = pypi.PypiArchive("thing", "1.0", "thing-1.0.zip", hashlib.sha256(CONTENT).hexdigest())


@pytest.fixture
def pip(tmp_path, monkeypatch):
    """pip(script): what `python -m pip` does from now on."""

    def make(script: str) -> None:
        path = tmp_path / "python"
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setattr(sys, "executable", str(path))

    return make


def quiet(_message: str) -> None:
    pass


@pytest.mark.parametrize(("file", "form"), [("thing-1.0.zip", "--no-binary"), ("thing-1.0-py3-none-any.whl", "--only-binary")])
def test_fetched_once_in_the_right_form(tmp_path, pip, file, form):
    cache = tmp_path / "cache"
    pip(f'echo "$*" >> {tmp_path}/calls; echo the right content > {file}')
    archive = pypi.PypiArchive("thing", "1.0", file, THING.sha256)
    for _ in range(2):
        assert pypi.fetch_pypi(archive, cache, quiet) == cache / file
    assert (cache / file).read_bytes() == CONTENT
    (call,) = (tmp_path / "calls").read_text().splitlines()
    assert call.startswith("-m pip download --no-deps ")
    assert call.endswith(f"{form} :all: thing==1.0")


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("echo 'WARNING: NewConnectionError: [Errno 101]' >&2; exit 1", r"thing==1\.0 could not be fetched: the network or the package"),
        ("echo 'ERROR: No matching distribution found' >&2; exit 1", r"pip could not fetch thing==1\.0: ERROR: No matching .* put thing"),
        ("echo '/usr/bin/python: No module named pip' >&2; exit 1", r"No module named pip; put thing-1\.0\.zip \(sha256 [0-9a-f]+\) into"),
        ("echo another content > thing-1.0.zip", r"is not the file this recipe was made for"),
        ("echo x > thing-1.0.tar.gz", r"did not come as thing-1\.0\.zip; found \['thing-1\.0\.tar\.gz'\]"),
    ],
)
def test_failures_are_named_and_leave_nothing(tmp_path, pip, script, message):
    pip(script)
    with pytest.raises(UserError, match=message):
        pypi.fetch_pypi(THING, tmp_path / "cache", quiet)
    assert list((tmp_path / "cache").iterdir()) == []
