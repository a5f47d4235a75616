"""Fixtures of the tests of jobs."""

import pytest

from tests.jobs.calling import ROOT, Jobs


@pytest.fixture
def call(monkeypatch, capsys) -> Jobs:
    """Calls jobs in this process, with no cluster given."""
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    return Jobs(monkeypatch, capsys)


@pytest.fixture
def without_ray(tmp_path) -> dict[str, str]:
    """Environment of a process in which importing Ray fails, and with it all that would start or need it."""
    (tmp_path / "no-ray").mkdir()
    (tmp_path / "no-ray" / "ray.py").write_text("raise RuntimeError('Ray was imported')\n")
    return {"PYTHONPATH": f"{tmp_path / 'no-ray'}:{ROOT}"}
