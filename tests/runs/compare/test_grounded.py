"""Which runs of the grounded systems there are, in which order, and what of them reaches the page."""

import json
import sys
from pathlib import Path
from typing import get_args

import pytest

from raysys.errors import RunFailed, UserError
from raysys.evaluation.grounded_page.examples import FILE, Examples, QueryNeighbours
from raysys.evaluation.grounded_page.paper import TABLE_1, TABLE_3
from raysys.runs.compare.compare import Comparing, compare
from raysys.runs.compare.entries import differences, progress
from raysys.runs.compare.grounded import GroundedComparisonSettings, base_of, entries
from raysys.runs.compare.grounded_page import gather, with_examples, write_page
from raysys.runs.grounded.settings import GroundedSettings
from raysys.settings import from_mapping
from raysys.systems.grounded.names import GroundedName, parts_of
from raysys.training.checkpoint_mark import CheckpointState, Mark
from raysys.training.checkpoints import Checkpoints
from tests.evaluation.grounded_page.made_up import relatedness, senteval, structure

SYSTEMS = get_args(GroundedName)
STEPS = 8


@pytest.fixture
def base(tmp_path):
    values = {
        "run": {"storage": str(tmp_path / "runs")},
        "data": {"text": ["novels/train"], "captions": ["tuxpaint/train"], "tests": {"tuxpaint": "tuxpaint/test"}},
        "training": {"steps": STEPS, "workers": 1},
    }
    return from_mapping(GroundedSettings, values, "test")


def finish(entry, mnno=0.3, data="f", step=STEPS, name=None, **more):
    """A run's folder as a finished run leaves it."""
    entry.folder.save_settings(entry.settings)
    if entry.settings.trained:
        checkpoints = Checkpoints(entry.folder, 1)
        Mark(CheckpointState(step, "data", 1, 1, 1.0), "w", "2030-01-01T00:00:00+00:00", {}).write(
            entry.folder.storage, checkpoints.uri(step)
        )
    result = structure(mNNO=mnno, **more) | relatedness(STS_all=mnno) | senteval({"MR": "1100"})
    found = {"step": step if entry.settings.trained else None, "data": dict.fromkeys(result, data)}
    entry.folder.write_text("scores.json", json.dumps(found | {"results": {entry.settings.run.name: result}}))


def named(made):
    return {entry.settings.run.name: entry for entry in made}


def test_the_runs_that_others_stand_on_come_first(base):
    made = entries(base, SYSTEMS, [0, 3])
    assert [entry.settings.run.name for entry in made[:4]] == ["t-seed-0", "t-half-seed-0", "t-seed-3", "t-half-seed-3"]
    assert len(made) == len(set(named(made))) == 40
    assert [entry.seed for entry in made[4:]] == [0] * 18 + [3] * 18
    assert set(SYSTEMS) == {*TABLE_3, *(name.split(" ")[0] for name in TABLE_1)} | {"t"}


def test_every_run_stands_on_that_of_its_seed(base):
    found = named(entries(base, SYSTEMS, [0, 3]))
    assert {name: found[f"{name}-seed-3"].settings.model.base for name in ("t", "t-half", "seq", "gs-cap", "cp-g", "t-cm")} == {
        **{"t": None, "t-half": None, "seq": "t-seed-3", "gs-cap": "t-half-seed-3", "cp-g": "t-seed-3", "t-cm": "t-seed-3"}
    }
    assert found["seq-seed-3"].base is found["t-seed-3"]
    assert found["gs-img-seed-0"].base is found["t-half-seed-0"]


def test_only_those_that_need_one_have_a_base_where_that_is_asked_for():
    assert [name for name in SYSTEMS if base_of(name, False)] == [name for name in SYSTEMS if parts_of(name)["base"]]
    assert base_of("seq", False) == "t"
    assert base_of("gs-both", False) == "t-half"


@pytest.mark.parametrize(
    ("systems", "from_t", "names"),
    [
        (["seq"], False, ["t", "seq"]),
        (["gs-img"], True, ["t-half", "gs-img"]),
        (["cp-g", "t"], True, ["t", "cp-g"]),
        (["cp-g"], False, ["cp-g"]),
    ],
)
def test_bases_that_were_not_asked_for_are_added(base, systems, from_t, names):
    assert [entry.system for entry in entries(base, systems, [0], from_t)] == names


def test_what_is_computed_at_once_is_finished_when_it_is_scored(base):
    _, entry = entries(base, ["seq"], [0])
    assert progress(entry, None) == 0
    entry.folder.save_settings(entry.settings)
    assert progress(entry, None) == 0
    finish(entry)
    assert progress(entry, None) is None


def test_a_run_that_stood_on_none_is_another_run(base):
    (alone,) = entries(base, ["cp-g"], [0], from_t=False)
    finish(alone)
    with pytest.raises(UserError, match=r"made with model\.base = None, not 't-seed-0'"):
        progress(entries(base, ["cp-g"], [0])[1], STEPS)
    assert set(differences(alone.settings, entries(base, ["c-g"], [1])[1].settings)) >= {"system", "model.base", "training.seed"}


def test_what_reaches_the_page(base):
    made = entries(base, ["cm", "cp-g", "seq"], [0, 1])
    found = named(made)
    finish(found["t-seed-0"], 0.1)
    finish(found["t-seed-1"], 0.2)
    finish(found["cm-seed-0"], 0.3, mNNO_text=0.25)
    finish(found["cp-g-seed-0"], 0.4)
    finish(found["cp-g-seed-1"], 0.4, data="other data")
    data = gather(made, {entry.name: STEPS for entry in made}, [], "title")
    assert [(row.name, row.label, sorted(row.seeds)) for row in data.rows] == [
        ("t", "T", [0, 1]),
        ("cm (text)", "CM (text)", [0]),
        ("cm", "CM (vis.)", [0]),
        ("cp-g", "C_g + P_g", [0]),
        ("seq", "SEQ", []),
    ]
    assert data.row("cm (text)").summary("tuxpaint", "eval/mNNO").mean == 0.25
    assert data.row("t").summary("senteval", "eval/senteval_AVG_accuracy").mean == 0.5
    assert dict(data.missing) == {
        "cp-g, seed 1": "it was scored on other test data (tuxpaint, relatedness, senteval) than the runs before it",
        "cm, seed 1": "it is not trained yet",
        "seq, seed 0": "it is not trained yet",
        "seq, seed 1": "it is not trained yet",
    }
    assert data.summary == (
        "4 systems, each trained with 2 seeds on the same data, in 8 steps of 440 samples. "
        "All encoders but that of T begin as T's after its own training, so that they have had its steps besides."
    )
    assert ("Pictures", "tuxpaint/train") in data.facts


def test_examples_are_of_one_seed_that_both_rows_have(base):
    made = entries(base, ["cp-g"], [0, 1])
    found, told = named(made), []
    for name in ("t-seed-0", "t-seed-1", "cp-g-seed-1"):
        finish(found[name])
        found[name].folder.write_text(FILE, Examples(STEPS, "text", name, [QueryNeighbours("q", [])]).dumps())
    finish(found["cp-g-seed-0"])
    data = gather(made, {entry.name: STEPS for entry in made}, [], "title")
    shown = with_examples(data, made, told.append)
    assert (shown.examples_seed, {name: one.searched for name, one in shown.examples.items()}) == (
        1,
        {"t": "t-seed-1", "cp-g": "cp-g-seed-1"},
    )
    assert told == []
    found["cp-g-seed-1"].folder.write_text(FILE, Examples(3, "text").dumps())
    found["t-seed-1"].folder.write_text(FILE, "{}")
    assert with_examples(data, made, told.append).examples_seed == 0
    assert "is of step 3, which is not the one that was scored" in "".join(told)
    assert "examples.json is of version None, not 1" in "".join(told)


def test_the_page_is_written_beside_the_runs(base):
    made = entries(base, ["cp-g"], [0])
    for entry in made:
        finish(entry)
    where = write_page(made, {entry.name: STEPS for entry in made}, [], "title", [("do", "this")])
    assert where == f"{base.run.storage}/comparison.html"
    assert "C<sub>g</sub> + P<sub>g</sub>" in Path(where).read_text()
    assert [row["name"] for row in json.loads(Path(where).with_suffix(".json").read_text())["systems"]] == ["t", "cp-g"]


JOB = """
import sys
options = dict(zip(sys.argv[1::2], sys.argv[2::2]))
print(options)
sys.exit(3 if options["--system"] == "t-half" else 0)
"""


def test_what_stands_on_a_failed_run_is_not_begun_and_named(base, tmp_path, monkeypatch):
    """The program of the runs is one that trains nothing; t is finished from the start, t-half fails."""
    made = entries(base, ["seq", "gs-img"], [0])
    found, told = named(made), []
    finish(found["t-seed-0"])
    job = tmp_path / "job.py"
    job.write_text(JOB)
    monkeypatch.setenv("RAY_ADDRESS", "nowhere")  # handed on, and not asked: the number of runs at a time is given
    monkeypatch.setattr("raysys.runs.compare.compare.resources", lambda *_: (2, 0))
    options = GroundedComparisonSettings(data="x", seeds=(0,), systems=("seq", "gs-img"), parallel=1)
    comparing = Comparing("grounded", options, tmp_path / "x.yaml", ["--training.steps", "8"], job)
    steps = {entry.name: STEPS if entry.settings.trained else None for entry in made}
    pages = []
    with pytest.raises(RunFailed) as failed:
        compare(comparing, made, steps, lambda commands: pages.append(commands) or "there", log=told.append)
    assert "t-half, seed 0 (exit code 3)" in str(failed.value)
    assert "gs-img, seed 0: not begun, for it stands on t-half, seed 0" in str(failed.value)
    assert "seq" not in str(failed.value)
    assert told[0] == f"4 runs in {base.run.storage}: 1 finished, 3 to be trained"
    assert "'--model.base': 't-seed-0'" in (tmp_path / "runs/seq-seed-0.log").read_text()
    assert not (tmp_path / "runs/gs-img-seed-0.log").exists()
    assert pages[0][0][1] == ("python jobs/reproduce.py grounded --data x --seeds 0 --parallel 1 --systems seq gs-img --training.steps 8")
    assert sys.executable in (tmp_path / "runs/seq-seed-0.log").read_text()
    compare(comparing, made, steps, lambda commands: "there", dry_run=True, log=told.append)
    assert "  seq, seed 0: to be trained, computed at once, after t, seed 0" in told
    assert "  t-half, seed 0: to be trained, 8 steps" in told
