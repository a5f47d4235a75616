"""Which networks are pre-trained and on what they are fine-tuned, in which order, and what of them reaches the page."""

import json
import sys
from pathlib import Path
from typing import get_args

import pytest
import yaml

from raysys.errors import RunFailed, UserError
from raysys.evaluation.rc3_page.paper import ROWS, SCORES
from raysys.runs.compare.compare import compare
from raysys.runs.compare.entries import progress
from raysys.runs.compare.rc3 import Rc3Comparing, Rc3ComparisonSettings, entries, rows_of, split_handed
from raysys.runs.compare.rc3_page import Tuned, gather, write_page
from raysys.runs.compare.rc3_tasks import load_tasks, task_of
from raysys.runs.rc3.settings import Rc3Settings
from raysys.settings import from_mapping
from raysys.systems.rc3.names import Rc3Name
from raysys.training.checkpoint_mark import CheckpointState, Mark
from raysys.training.checkpoints import Checkpoints

STEPS = 8
TASKS = {
    "xvnli": {"data": {"train": ["xvnli-train-en"], "tests": {"en": "a", "de": "b", "fr": "c"}}},
    "itr": {"data": {"train": ["flickr30k-train-en"], "tests": {"en": "a", "zh-Hans": "b"}}},
    "mmt-de": {"data": {"train": ["mmt-train"], "target": "de", "tests": {"2016/en-de": "a"}}},
    "mmt-fr": {"data": {"train": ["mmt-train"], "target": "fr", "tests": {"2016/en-fr": "a"}}, "training": {"learning_rate": 0.5}},
}


VALUES = {
    "data": {"folder": "there", "strict": ["s"], "weak": ["w"], "parallel": ["p"], "image": {"size": 64}},
    "training": {"steps": STEPS, "workers": 1},
    "ray": {"cpus": 3},
}


@pytest.fixture
def base(tmp_path):
    return from_mapping(Rc3Settings, VALUES | {"run": {"storage": str(tmp_path / "runs")}}, "test")


@pytest.fixture
def files(tmp_path):
    return written(tmp_path)


def written(folder):
    common, each = folder / "finetune.yaml", folder / "tasks.yaml"
    common.write_text(yaml.safe_dump({"training": {"steps": STEPS, "workers": 1}}))
    each.write_text(yaml.safe_dump(TASKS, sort_keys=False))
    return common, each


@pytest.fixture(scope="module")
def tasks(tmp_path_factory):
    """Settings of every task; those of pre-training say nothing else than `base`, but for the folder of the runs."""
    return load_tasks(*written(tmp_path_factory.mktemp("tasks")), ("xvnli", "itr", "mmt"), [], from_mapping(Rc3Settings, VALUES, "test"))


def named(made):
    return {entry.settings.run.name: entry for entry in made}


def finish(entry, value=0.5, data="f"):
    """A run's folder as a finished run leaves it."""
    entry.folder.save_settings(entry.settings)
    checkpoints = Checkpoints(entry.folder, 1)
    Mark(CheckpointState(STEPS, "data", 1, 1, 1.0), "w", "2030-01-01T00:00:00+00:00", {}).write(
        entry.folder.storage, checkpoints.uri(STEPS)
    )
    lines = [{"step": step, "train/loss": 3.0 / step, "train/loss_mlm": 2.0 / step, "train/lr": 1.0} for step in range(1, STEPS + 1)]
    entry.folder.write_text("metrics.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
    score = SCORES.get(entry.settings.system, "eval/x")
    result = {test: {"metrics": {score: value}, "chance": {score: 0.1}, "items": 40} for test in entry.settings.data.tests}
    found = {"step": STEPS, "data": dict.fromkeys(result, data), "results": {entry.settings.run.name: result}}
    entry.folder.write_text("scores.json", json.dumps(found))


def test_every_row_of_the_paper_is_made_from_its_network_and_sees_what_it_saw(base, tasks):
    made = entries(base, tasks, get_args(Rc3Name), [0, 3])
    networks, tuned = [e for e in made if not isinstance(e, Tuned)], [e for e in made if isinstance(e, Tuned)]
    assert len(networks) == 2 * 11
    # ten rows on each of two tasks, six on each of two pairs of languages
    assert len(tuned) == 2 * (2 * 10 + 2 * 6)
    assert len(named(made)) == len(made)
    assert [entry.seed for entry in made] == [0] * 43 + [3] * 43
    found = named(made)["rc3-combined-mmt-fr-seed-3"]
    assert (found.settings.base, found.settings.visual, found.settings.training.seed) == ("rc3-seed-3", "combined", 3)
    # As the run keeps them once it has looked at its base; otherwise it would be taken for one with other settings.
    assert (found.settings.data.max_tokens, found.settings.data.image.size) == (50, 64)
    assert found.base is named(made)["rc3-seed-3"]
    assert found.name == "rc3-combined on mmt-fr, seed 3"
    assert {entry.row for entry in tuned} == set(ROWS)
    assert {ROWS[entry.row].system for entry in tuned} == set(get_args(Rc3Name))


def test_in_a_step_every_system_sees_as_many_samples_of_a_stream(base, tasks):
    shared = base.model_copy(update={"data": base.data.model_copy(update={"strict_share": 2})})
    shared = shared.model_copy(update={"training": shared.training.model_copy(update={"global_batch": 64})})
    found = {entry.system: entry.settings.training.global_batch for entry in entries(shared, {}, get_args(Rc3Name), [0])}
    assert {found[name] for name in ("rc3", "rc3-no-kl")} == {64}
    assert {found[name] for name in ("rc3-no-rxvtcl", "m3p", "muniter", "xuniter", "memad")} == {48}
    assert {found[name] for name in ("rc3-no-rxvtcl-xtcl", "uc2", "vl-t5", "vl-bart")} == {32}


@pytest.mark.parametrize(("task", "without"), [("itr", {"memad", "vl-t5", "vl-bart"}), ("mmt", {"m3p", "uc2", "rc3-no-kl"})])
def test_a_task_has_the_rows_of_its_table(task, without):
    assert not without & set(rows_of(task))
    assert {"rc3-patches", "rc3-regions", "rc3-combined"} <= set(rows_of(task))


def test_only_rows_of_the_networks_that_are_asked_for(base, tasks):
    made = entries(base, tasks, ["rc3-no-kl"], [0])
    assert list(named(made)) == ["rc3-no-kl-seed-0", "rc3-no-kl-xvnli-seed-0", "rc3-no-kl-itr-seed-0"]


def test_a_tasks_settings_come_from_table_6_the_common_file_its_own_and_the_command_line(base, files):
    found = load_tasks(*files, ("xvnli", "mmt"), ["--training.warmup-steps", "4", "--data.folder", "elsewhere"], base)
    assert list(found) == ["xvnli", "mmt-de", "mmt-fr"]
    assert [found[name].training.learning_rate for name in found] == [4e-5, 5e-6, 0.5]
    assert [found[name].training.global_batch for name in found] == [128, 256, 256]
    assert {found[name].training.steps for name in found} == {STEPS}
    assert {(one.training.warmup_steps, one.data.folder, one.data.image.size, one.ray.cpus) for one in found.values()} == {
        (4, "elsewhere", 64, 3)
    }
    assert load_tasks(*files, ("xvnli",), [], base)["xvnli"].data.folder == "there"


@pytest.mark.parametrize(
    ("change", "wanted", "message"),
    [
        ({"sts": {}}, ("xvnli",), "sts begins with no task; tasks are xvnli, xgqa"),
        ({}, ("xgqa",), "says nothing of the task xgqa: add it, or leave it out of --tasks"),
        ({"xvnli": {"training": {"step": 3}}}, ("xvnli",), "unknown setting 'training.step'; did you mean 'training.steps'"),
    ],
)
def test_mistakes_in_the_files_of_tasks(base, files, change, wanted, message):
    files[1].write_text(yaml.safe_dump(TASKS | change))
    with pytest.raises(UserError) as refused:
        load_tasks(*files, wanted, [], base)
    assert message in str(refused.value)


def test_settings_are_handed_to_their_program():
    words = ["--finetune.training.steps", "3", "--training.steps=9", "--finetune.data.folder=x", "--data.languages", "en", "de"]
    assert split_handed(words) == (["--training.steps", "3", "--data.folder=x"], ["--training.steps=9", "--data.languages", "en", "de"])
    assert task_of("mmt-de") == "mmt"


def test_what_reaches_the_page(base, tasks):
    made = entries(base, tasks, ["rc3", "rc3-no-kl"], [0, 1])
    found = named(made)
    for name in ("rc3-seed-0", "rc3-no-kl-seed-1"):
        finish(found[name])
    finish(found["rc3-regions-xvnli-seed-0"], 0.5)
    finish(found["rc3-regions-xvnli-seed-1"], 0.7)
    finish(found["rc3-regions-itr-seed-0"], 0.2)
    finish(found["rc3-regions-mmt-de-seed-0"], 0.3)
    finish(found["rc3-regions-mmt-fr-seed-0"], 0.4)
    finish(found["rc3-combined-xvnli-seed-0"], 0.5, data="other data")
    data = gather(made, {entry.name: STEPS for entry in made}, "title")
    row = data.row("rc3-regions")
    assert row.summary("xvnli", "xvnli/fr").values == {0: 0.5, 1: 0.7}
    assert row.summary("all", "all/zero-shot").values == {0: pytest.approx(0.35)}  # the second seed lacks retrieval
    assert row.seeds[0]["mmt"]["metrics"] == {"mmt/2016 en-de": 0.3, "mmt/2016 en-fr": 0.4}
    assert data.row("m3p").seeds == {}  # the paper's rows are all there
    missing = dict(data.missing)
    assert missing["rc3, seed 1"] == "it is not trained yet"
    assert missing["rc3-no-kl on itr, seed 0, 1"] == "it is not trained yet"
    assert missing["rc3-combined on xvnli, seed 0"].startswith("it was scored on other test data (en, de, fr)")
    assert [(link.row, link.task, link.href) for link in data.links][:3] == [
        ("RC³", "", "rc3-seed-0/report.html"),
        ("RC³ w/o KL(P_vtr‖P_tr)", "", "rc3-no-kl-seed-1/report.html"),
        ("RC³-ROI", "XVNLI", "rc3-regions-xvnli-seed-0/report.html"),
    ]
    assert data.curves["mlm"]["RC³"].values[-1] == 0.25
    assert "2 networks, each pre-trained with 2 seeds" in data.summary
    assert data.summary.endswith("fine-tuned in English on XVNLI, ITR, MMT.")


def test_the_page_is_written_beside_the_runs_though_the_data_is_elsewhere(base, tasks):
    made, told = entries(base, tasks, ["rc3"], [0]), []
    for entry in made:
        finish(entry)
    where = write_page(made, {entry.name: STEPS for entry in made}, "title", [("do", "this")], told.append)
    assert "Table 4" in Path(where).read_text()
    assert json.loads(Path(where).with_suffix(".json").read_text())["missing"] == []
    assert "the page has no Table 5" in told[0]


JOB = """
import sys, yaml
settings = yaml.safe_load(open(sys.argv[sys.argv.index("--config") + 1])) if "finetune" in sys.argv[0] else {}
print(sys.argv[1:], settings.get("base"), settings.get("visual"))
sys.exit(3 if "rc3-no-kl" in sys.argv else 0)
"""


def test_fine_tuning_begins_when_its_network_is_done_and_not_where_it_failed(base, tasks, tmp_path, monkeypatch):
    """The programs of the runs train nothing; rc3 is finished from the start, rc3-no-kl fails."""
    made = entries(base, tasks, ["rc3", "rc3-no-kl"], [0])
    for name in ("rc3-seed-0", "rc3-patches-xvnli-seed-0"):
        finish(named(made)[name])
    for name in ("rc3", "finetune"):
        (tmp_path / f"{name}.py").write_text(JOB)
    monkeypatch.setenv("RAY_ADDRESS", "nowhere")
    monkeypatch.setattr("raysys.runs.compare.compare.resources", lambda *_: (2, 0))
    options = Rc3ComparisonSettings(size="x", seeds=(0,), systems=("rc3", "rc3-no-kl"), parallel=2)
    handed = ["--finetune.training.steps", "8"]
    comparing = Rc3Comparing("rc3", options, tmp_path / "x.yaml", [], tmp_path / "rc3.py", tmp_path / "finetune.py", tmp_path, handed)
    told, pages = [], []
    with pytest.raises(RunFailed) as failed:
        compare(comparing, made, {entry.name: STEPS for entry in made}, lambda commands: pages.append(commands) or "there", log=told.append)
    assert "rc3-no-kl, seed 0 (exit code 3)" in str(failed.value)
    assert "rc3-no-kl on itr, seed 0: not begun, for it stands on rc3-no-kl, seed 0" in str(failed.value)
    assert told[0] == f"16 runs in {base.run.storage}: 2 finished, 14 to be trained"
    log = (tmp_path / "runs/rc3-combined-itr-seed-0.log").read_text()
    assert f"{sys.executable} {tmp_path}/finetune.py itr --config" in log
    assert log.splitlines()[-1].endswith("rc3-seed-0 combined")
    assert not (tmp_path / "runs/rc3-no-kl-itr-seed-0.log").exists()
    assert not (tmp_path / "runs/rc3-patches-xvnli-seed-0.log").exists()  # finished before
    assert pages[0][0][1] == (
        "python jobs/reproduce.py rc3 --seeds 0 --parallel 2 --size x --systems rc3 rc3-no-kl --finetune.training.steps 8"
    )


def test_a_fine_tuned_run_of_another_length_is_refused(base, tasks, files):
    entry = named(entries(base, tasks, ["rc3"], [0]))["rc3-regions-itr-seed-0"]
    finish(entry)
    assert progress(entry, STEPS) is None
    other = load_tasks(*files, ("itr",), ["--training.learning-rate", "0.1"], base)
    with pytest.raises(UserError, match=r"made with training.learning_rate = 1e-05, not 0.1"):
        progress(named(entries(base, other, ["rc3"], [0]))["rc3-regions-itr-seed-0"], STEPS)
