"""Calls jobs as a person does: in a process of their own, or in this one where a process would add nothing but seconds."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from raysys.errors import run_job

ROOT = Path(__file__).parents[2]


def environment(**more: str) -> dict[str, str]:
    """That of a job's process; one thread each, so that tests leave room for one another."""
    return os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "RAY_ADDRESS": ""} | more


def job(name: str, *arguments: str, timeout: int = 400, **variables: str) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of ``python jobs/<name>.py …``."""
    command = [sys.executable, str(ROOT / "jobs" / f"{name}.py"), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, env=environment(**variables), check=False)
    return done.returncode, done.stdout, done.stderr


class Jobs:
    """Calls the `main` of jobs in this process."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> None:
        self.monkeypatch = monkeypatch
        self.capsys = capsys

    def __call__(self, name: str, *arguments: str) -> tuple[int, str, str]:
        """Exit code, stdout and stderr."""
        spec = importlib.util.spec_from_file_location(f"raysys_job_{name}", ROOT / "jobs" / f"{name}.py")
        assert spec
        assert spec.loader
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        self.monkeypatch.setattr(sys, "argv", [name, *arguments])
        self.capsys.readouterr()
        with pytest.raises(SystemExit) as end:
            run_job(module.main)
        out, err = self.capsys.readouterr()
        return int(end.value.code or 0), out, err
