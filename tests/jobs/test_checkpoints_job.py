"""``jobs/checkpoints.py`` on a run's checkpoints."""

from pathlib import Path

import pytest

from raysys import settings as settings_module
from raysys.runs.settings import GlobetrotterSettings
from raysys.storage import Storage
from tests.jobs.calling import Jobs
from tests.training.test_checkpoint_files import write


@pytest.fixture
def call(monkeypatch, capsys) -> Jobs:
    return Jobs(monkeypatch, capsys)


@pytest.fixture
def run(tmp_path) -> Path:
    """Complete checkpoints of four steps, and one that was cut."""
    settings = GlobetrotterSettings.model_validate({"data": {"folder": "data", "train": ["train"]}})
    (tmp_path / "settings.yaml").write_text(settings_module.dumps(settings))
    for step, score in ((5, 0.25), (6, 0.75), (7, 0.5), (8, None)):
        write(Storage(), str(tmp_path / "checkpoints" / f"step-{step:08d}"), seed=step, step=step, score=score)
    cut = tmp_path / "checkpoints" / "step-00000009"
    cut.mkdir()
    (cut / "rank-00000-of-00003-ab.json").write_text("{}")
    return tmp_path


def test_list(call, run):
    code, out, _ = call("checkpoints", "list", "--run", str(run))
    assert code == 0
    lines = out.splitlines()
    assert [line.split()[0] for line in lines] == ["step", "5", "6", "7", "8", "9"]
    assert lines[1].split() == ["5", "2030-01-02", "03:04:05", "5.6", "3", "2", "0.2500"]
    assert lines[2].split()[-2:] == ["0.7500", "best"]
    assert lines[4].split()[-2:] == ["2", "latest"]
    assert "cannot be used: it has no complete.json" in lines[5]


def test_list_of_nothing(call, run, tmp_path):
    (run / "empty").mkdir()
    (run / "empty" / "settings.yaml").write_text((run / "settings.yaml").read_text())
    code, out, _ = call("checkpoints", "list", "--run", str(run / "empty"))
    assert (code, out) == (0, f"no checkpoints in {run}/empty/checkpoints\n")


def test_verify(call, run):
    code, out, _ = call("checkpoints", "verify", "--run", str(run))
    assert (code, out) == (0, "no faults in 4 checkpoints, 1 more not complete\n")
    flipped = sorted(run.glob("checkpoints/step-00000006/*.safetensors"))[1]
    data = bytearray(flipped.read_bytes())
    data[-1] ^= 1
    flipped.write_bytes(data)
    cut = sorted(run.glob("checkpoints/step-00000008/*.safetensors"))[0]
    cut.write_bytes(cut.read_bytes()[:-1])
    code, out, _ = call("checkpoints", "verify", "--run", str(run))
    assert code == 1
    lines = out.splitlines()
    assert lines[0].startswith(f"{run}/checkpoints/step-00000006: {flipped.name}: the checksum of bytes ")
    assert lines[1].startswith(f"{run}/checkpoints/step-00000008: {cut.name} has ")
    assert lines[2:] == ["2 faults in 4 checkpoints, 1 more not complete"]


def test_prune(call, run):
    code, out, _ = call("checkpoints", "prune", "--run", str(run), "--keep", "1")
    folder = f"{run}/checkpoints/step-0000000"
    assert (code, out) == (0, f"deleted {folder}5\ndeleted {folder}7\n2 deleted; kept: step 6, 8\n")
    assert sorted(path.name[-1] for path in (run / "checkpoints").iterdir()) == ["6", "8", "9"], "9 may be being written"
    code, out, _ = call("checkpoints", "prune", "--run", str(run))
    assert (code, out) == (0, "nothing deleted; kept: step 6, 8\n")


def test_bad_usage(call, run):
    code, _, err = call("checkpoints", "prune", "--run", str(run), "--keep", "0")
    assert code == 2
    assert "'0' is not a number of checkpoints, 1 or more" in err
    code, _, err = call("checkpoints", "list", "--run", str(run / "none"))
    assert code == 2
    assert "there is no run" in err
