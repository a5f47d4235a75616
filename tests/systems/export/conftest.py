"""Fixtures of the tests of systems and their exports."""

import functools
import os
from pathlib import Path

import pytest

from raysys.runs.export import FORMATS, write_formats
from tests.systems.export.encoders import KINDS, make


@pytest.fixture(scope="session", params=KINDS)
def tiny(request, tmp_path_factory):
    """A tiny encoder, one of each kind."""
    return make(request.param, tmp_path_factory.mktemp(request.param))


@pytest.fixture(scope="session")
def trigrams(tmp_path_factory):
    """The kind that needs code of its own everywhere."""
    return make("trigrams", tmp_path_factory.mktemp("trigrams"))


@pytest.fixture(scope="session")
def exported(tmp_path_factory):
    """Kind of encoder → (encoder, folder, what was measured): an export in all formats, each made once."""

    @functools.cache
    def get(kind):
        encoder, folder = make(kind, tmp_path_factory.mktemp(kind)), tmp_path_factory.mktemp("export")
        return encoder, folder, write_formats(encoder, folder, FORMATS)

    return get


@pytest.fixture(scope="session")
def without_raysys(tmp_path_factory) -> dict[str, str]:
    """Environment of a process in which importing raysys fails."""
    folder: Path = tmp_path_factory.mktemp("no-raysys")
    (folder / "raysys.py").write_text("raise RuntimeError('raysys was imported')\n")
    return os.environ | {"PYTHONPATH": str(folder), "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
