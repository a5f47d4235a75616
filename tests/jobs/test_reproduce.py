"""All systems with one command: trained once, gone on with after Ctrl-C and after failures, compared on one page."""

import json
import signal
import subprocess
import sys
import time

import pytest
import yaml

from tests.jobs.calling import ROOT, Jobs, environment, job
from tests.jobs.test_end_to_end import SETTINGS


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "say which paper: python jobs/reproduce.py globetrotter | grounded | rc3 --help"),
        (["globetroter"], "(got globetroter)"),
        (["globetrotter", "--data", "nothing"], "comparison has globetrotter, real, shapes; or give the path of a settings file"),
        (["globetrotter", "--data", "nowhere/x.yaml"], "nowhere/x.yaml; "),
        (["globetrotter", "--data", "shapes", "--training.seed", "3"], "--training.seed is not for all runs: say it with --seeds"),
        (["globetrotter", "--data", "shapes", "--run.storage=x"], "--run.storage is not for all runs: say it with --storage"),
        (["globetrotter", "--data", "shapes", "--system", "muve"], "--system is not for all runs: say it with --systems"),
        (["grounded", "--data", "nothing"], "grounded has real, shapes; or give the path of a settings file"),
        (
            ["grounded", "--data", "shapes", "--model.base", "t"],
            "--model.base is not for all runs: each run stands on the one of T with its seed",
        ),
        (["grounded", "--data", "shapes", "--data.folder", "nowhere", "--dry-run"], "nowhere"),
        (["rc3", "--size", "huge"], "--size: there is no"),
        (["rc3", "--size", "huge"], "rc3 has base, large, tiny; or give the path of a settings file"),
        (["rc3", "--size", "tiny", "--data", "nothing"], "rc3 has real, shapes; or give the path of a settings file"),
        (
            ["rc3", "--size", "tiny", "--finetune.visual", "patches"],
            "--finetune.visual is not for all runs: the rows of the paper's tables",
        ),
        (["rc3", "--size", "tiny", "--data.folder", "nowhere", "--dry-run"], "nowhere"),
        (["globetrotter", "--data", "shapes", "--seeds", "-1"], "seeds"),
        (["globetrotter", "--data", "shapes", "--training.steps", "0"], "training.steps"),
        (["globetrotter", "--data", "shapes", "--data.folder", "nowhere", "--dry-run"], "nowhere"),
    ],
)
def test_mistakes_are_told_before_anything_is_trained(call: Jobs, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    code, _, err = call("reproduce", *arguments)
    assert code == 2
    assert message in err
    assert list(tmp_path.iterdir()) == []


def test_a_submitted_job_wants_a_place_that_stays(call: Jobs, monkeypatch):
    monkeypatch.setenv("RAY_JOB_CONFIG_JSON_ENV_VAR", "{}")
    code, _, err = call("reproduce", "globetrotter", "--data", "shapes", "--data.folder", "/x", "--dry-run")
    assert code == 2
    assert "storage: 'runs/comparison/shapes' is relative" in err
    assert "--storage $PWD/runs/comparison/shapes" in err


def test_every_comparison_has_all_four_losses_and_all_systems():
    from raysys.runs.compare.globetrotter import GlobetrotterComparisonSettings, entries
    from raysys.runs.settings import GlobetrotterSettings
    from raysys.settings import load

    files = sorted((ROOT / "jobs/configs/comparison").glob("*.yaml"))
    assert {file.stem for file in files} >= {"shapes", "real"}
    for file in files:
        settings = load(GlobetrotterSettings, file)
        assert all(settings.objective.weights.model_dump().values())
        assert settings.model.text.layers > 0
        made = entries(settings, GlobetrotterComparisonSettings(data="x").systems, [0])
        assert len(made) == 9


def test_the_grounded_comparisons_have_all_twenty_systems():
    from raysys.runs.compare.grounded import GroundedComparisonSettings, entries
    from raysys.runs.grounded.settings import GroundedSettings
    from raysys.settings import load

    files = sorted((ROOT / "jobs/configs/grounded").glob("*.yaml"))
    assert {file.stem for file in files} >= {"shapes", "real"}
    for file in files:
        settings = load(GroundedSettings, file)
        assert len(entries(settings, GroundedComparisonSettings(data="x").systems, [0])) == 20


@pytest.mark.parametrize(("size", "data"), [("tiny", "shapes"), ("base", "shapes"), ("large", "real")])
def test_rc3_has_files_for_every_size_and_every_row_on_every_task(size, data):
    from raysys.runs.compare.rc3 import Rc3ComparisonSettings, entries
    from raysys.runs.compare.rc3_tasks import load_tasks
    from raysys.runs.rc3.settings import Rc3Settings
    from raysys.settings import load

    folder = ROOT / "jobs/configs/rc3"
    options, base = Rc3ComparisonSettings(size=size), load(Rc3Settings, folder / f"{size}.yaml")
    tasks = load_tasks(folder / f"finetune-{size}.yaml", folder / f"tasks-{data}.yaml", options.tasks, [], base)
    assert list(tasks) == ["xvnli", "xgqa", "marvl", "itr", "mmt-de", "mmt-fr"]
    # 11 networks; ten rows on four tasks, six on two pairs of languages
    assert len(entries(base, tasks, options.systems, [0])) == 11 + 4 * 10 + 2 * 6


def test_the_large_comparison_says_what_it_needs_and_begins_nothing(call: Jobs, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    code, out, err = call("reproduce", "rc3", "--size", "large", "--seeds", "0", "--teraflops", "100")
    assert (code, err) == (0, "")
    assert "each pre-training run: 64 GPUs, 614 million weights" in out
    assert "if each GPU does 100 · 10¹² operations a second, which is assumed" in out
    line = (
        "ray job submit --address http://HEAD:8265 --working-dir . -- python jobs/reproduce.py rc3 --seeds 0 --size large --teraflops 100.0"
    )
    assert out.splitlines()[-1].strip() == line
    assert list(tmp_path.iterdir()) == []


@pytest.fixture(scope="module")
def world(tmp_path_factory, ray_session):
    """Folder with tiny shapes and a settings file, and the address of the running Ray."""
    folder = tmp_path_factory.mktemp("reproduce")
    code, _, err = job("prepare", "shapes", "--out", str(folder / "data/shapes"), "--samples", "600", "--shards", "2")
    assert code == 0, err
    settings = {name: value for name, value in SETTINGS.items() if name != "run"}
    settings["data"] = settings["data"] | {"folder": str(folder / "data")}
    settings["training"] = settings["training"] | {"workers": 1}
    (folder / "tiny.yaml").write_text(yaml.safe_dump(settings))
    return folder, ray_session.get_runtime_context().gcs_address


@pytest.mark.slow
def test_from_nothing_to_the_page_in_spite_of_ctrl_c_and_a_failure(world, call: Jobs, monkeypatch):
    folder, address = world
    runs = folder / "runs"
    arguments = ["globetrotter", "--data", str(folder / "tiny.yaml"), "--storage", str(runs), "--seeds", "0"]
    arguments += ["--systems", "text-only", "globetrotter", "without-image", "--parallel", "1"]
    runs.mkdir()
    (runs / "text-only-seed-0").write_text("no folder can be made here")

    command = [sys.executable, str(ROOT / "jobs/reproduce.py"), *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(RAY_ADDRESS=address))
    mark = runs / "globetrotter-seed-0/checkpoints/step-00000004/complete.json"
    deadline = time.monotonic() + 400
    while not mark.exists() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert (process.returncode, err) == (130, "interrupted\n")
    assert "3 runs in" in out
    assert "1/3 text-only, seed 0: failed after" in out
    assert "stopped; the same command goes on from here" in out
    listed = subprocess.run(["ps", "-eo", "args="], capture_output=True, text=True, check=True).stdout
    assert not [line for line in listed.splitlines() if str(runs) in line and "globetrotter.py" in line]

    code, out, err = job("reproduce", *arguments, RAY_ADDRESS=address)
    assert code == 1
    assert "1 to go on" in out or "1 finished" in out
    assert "failed: one run did not end well" in err
    assert f"text-only, seed 0 (exit code 2), {runs}/text-only-seed-0.log" in err
    page = (runs / "comparison.html").read_text()
    assert "text-only, seed 0" in page
    assert "it is not trained yet" in page

    (runs / "text-only-seed-0").unlink()
    whole = {path: path.stat().st_mtime_ns for path in (runs / "globetrotter-seed-0/checkpoints").rglob("*") if path.is_file()}
    code, out, err = job("reproduce", *arguments, RAY_ADDRESS=address)
    assert (code, err) == (0, "")
    assert "2 finished, 1 to be trained" in out
    assert "1/1 text-only, seed 0: done in" in out
    assert whole == {path: path.stat().st_mtime_ns for path in whole}
    found = json.loads((runs / "comparison.json").read_text())
    assert [len(system["seeds"]) for system in found["systems"]] == [1, 1, 1]
    assert found["missing"] == []
    assert "Table 1: sentences" in (runs / "comparison.html").read_text()

    monkeypatch.setattr("raysys.runs.compare.compare.shared_ray", lambda *_: pytest.fail("nothing is left to train"))
    code, out, err = call("reproduce", *arguments)
    assert (code, err) == (0, "")
    assert f"page: {runs}/comparison.html" in out
    code, out, err = call("reproduce", *arguments, "--dry-run", "--training.steps", "20")
    assert code == 2
    assert "training.steps = 8, not 20 as asked for now" in err
