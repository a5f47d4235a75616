"""Which runs are finished, which go on, which are others; and what of them reaches the page."""

import json

import pytest

from raysys.errors import UserError
from raysys.runs.compare.entries import differences, progress
from raysys.runs.compare.globetrotter import entries
from raysys.runs.compare.globetrotter_page import gather, shown_entry
from raysys.runs.run import load_run
from raysys.runs.settings import GlobetrotterSettings
from raysys.settings import from_mapping
from raysys.training.checkpoint_mark import CheckpointState, Mark
from raysys.training.checkpoints import Checkpoints
from tests.evaluation.comparison.rows import result

STEPS = 8


@pytest.fixture
def base(tmp_path):
    values = {"run": {"storage": str(tmp_path / "runs")}, "data": {"train": ["t"], "tests": {"test-unseen": "u", "tuxpaint": "p"}}}
    return from_mapping(GlobetrotterSettings, values | {"training": {"steps": STEPS}}, "test")


def train(entry, *steps, scores=True, value=0.3, data="f", best=None, name=None, **changes):
    """A run's folder with checkpoints of `steps`, and scores of the best of them."""
    folder = entry.folder
    settings = entry.settings.model_copy(update={"data": entry.settings.data.model_copy(update={"languages": ("de", "en")})} | changes)
    folder.save_settings(settings)
    checkpoints = Checkpoints(folder, 1)
    best = best or (steps[-1] if steps else 0)
    for step in steps:
        state = CheckpointState(step, "data", 1, 1, float(step == best))
        Mark(state, "w", "2030-01-01T00:00:00+00:00", {}).write(folder.storage, checkpoints.uri(step))
    if scores:
        results = {split: result(value) for split in ("test-unseen", "tuxpaint")}
        found = {"step": best, "data": dict.fromkeys(results, data), "results": {"untrained": results, settings.run.name: results}}
        folder.write_text("scores.json", json.dumps(found))


def test_runs_are_named_and_their_systems_resolved(base):
    made = entries(base, ["globetrotter", "without-image"], [0, 3])
    assert [entry.settings.run.name for entry in made] == [
        *("globetrotter-seed-0", "without-image-seed-0", "globetrotter-seed-3", "without-image-seed-3")
    ]
    assert [entry.settings.objective.weights.image for entry in made] == [1, 0, 1, 0]
    assert [entry.settings.training.seed for entry in made] == [0, 0, 3, 3]


@pytest.mark.parametrize(
    ("steps", "more", "done"),
    [
        ([], {"scores": False}, 0),
        ([4], {"scores": False}, 4),
        ([4], {}, 4),  # scored before its end, and not at its end
        ([4, 8], {"scores": False}, 8),  # trained, not scored
        ([4, 8], {}, None),
        ([4, 8], {"best": 4}, None),
    ],
)
def test_how_far_a_run_is(base, steps, more, done):
    (entry,) = entries(base, ["globetrotter"], [0])
    assert progress(entry, STEPS) == 0
    train(entry, *steps, **more)
    assert progress(entry, STEPS) == done


def test_scores_of_an_older_checkpoint_or_of_fewer_splits_are_not_the_end(base):
    (entry,) = entries(base, ["globetrotter"], [0])
    train(entry, 4)
    train(entry, 4, 8, scores=False)
    assert progress(entry, STEPS) == 8
    train(entry, 4, 8)
    scores = json.loads(entry.folder.read_text("scores.json"))
    del scores["data"]["tuxpaint"]
    entry.folder.write_text("scores.json", json.dumps(scores))
    assert progress(entry, STEPS) == 8


def test_runs_that_were_scored_in_another_way_are_scored_again(base):
    (entry,) = entries(base, ["globetrotter"], [0])
    train(entry, 8)
    changed = base.model_copy(update={"evaluation": base.evaluation.model_copy(update={"centred": True})})
    assert progress(entries(changed, ["globetrotter"], [0])[0], STEPS) == 8
    assert progress(entry, STEPS) is None


def test_a_run_with_other_settings_is_refused_by_name(base):
    (entry,) = entries(base, ["globetrotter"], [0])
    train(entry, 8)
    for group, key, value, message in [
        ("training", "learning_rate", 0.5, "training.learning_rate = 0.0001, not 0.5"),
        ("training", "schedule", "cosine", "training.schedule = 'constant', not 'cosine'"),
        ("objective", "margin", 0.1, "objective.margin = 0.4, not 0.1"),
    ]:
        changed = base.model_copy(update={group: getattr(base, group).model_copy(update={key: value})})
        with pytest.raises(UserError, match="delete that run") as refused:
            progress(entries(changed, ["globetrotter"], [0])[0], STEPS)
        assert message in str(refused.value)
        assert entry.folder.uri in str(refused.value)


@pytest.mark.parametrize(("group", "key", "value"), [("training", "workers", 4), ("training", "log_every", 1), ("data", "folder", "there")])
def test_where_and_how_fast_are_no_differences(base, group, key, value):
    changed = base.model_copy(update={group: getattr(base, group).model_copy(update={key: value})})
    assert differences(base, changed) == {}


def test_longer_runs_than_asked_for_are_refused(base):
    (entry,) = entries(base, ["globetrotter"], [0])
    train(entry, 8, 16)
    with pytest.raises(UserError, match="was trained for 16 steps, not 8"):
        progress(entry, STEPS)


def test_what_reaches_the_page(base):
    made = entries(base, ["globetrotter", "muve", "supervised"], [0, 1])
    first, muve, supervised, second, other, _ = made
    train(first, 8, value=0.3)
    train(second, 8, value=0.4)
    train(muve, 4, scores=False)
    train(other, 8, data="other data")
    train(supervised, 8, value=0.9)
    data = gather(made, STEPS, [], ["tux"], "title")
    assert [(row.name, sorted(row.seeds), row.wanted) for row in data.rows] == [
        ("muve", [], 2),
        ("globetrotter", [0, 1], 2),
        ("supervised", [0], 2),
    ]
    assert [(row.name, sorted(row.seeds)) for row in data.references] == [("untrained", [0, 1])]
    assert data.human == ["tuxpaint"]
    assert dict(data.missing) == {
        "muve, seed 0": "4 of 8 steps are done",
        "muve, seed 1": "it was scored on other test data (test-unseen, tuxpaint) than the runs before it",
        "supervised, seed 1": "it is not trained yet",
    }
    assert "8 steps of 440 samples" in data.summary
    assert shown_entry(data, made) == first  # of Globetrotter the first seed, not the one with the best test scores
    assert shown_entry(gather(made[1:2], STEPS, [], [], "t"), made[1:2]) is None


def test_further_runs_are_grouped_with_what_was_changed(base):
    made = entries(base, ["globetrotter"], [0])
    train(made[0], 8)
    objective = base.objective.model_copy(update={"margin": 0.2})
    for seed in (0, 1):
        (entry,) = entries(base, ["globetrotter"], [seed])
        run = entry.settings.run.model_copy(update={"name": f"narrow-seed-{seed}"})
        moved = type(entry)(entry.system, seed, entry.settings.model_copy(update={"run": run}))
        train(moved, 8, value=0.5, objective=objective)
    also = [load_run(f"{base.run.storage}/narrow-seed-{seed}") for seed in (0, 1)]
    (row,) = gather(made, STEPS, also, [], "title").also
    assert (row.name, sorted(row.seeds)) == ("narrow", [0, 1])
    assert row.changes == {"objective.margin": (0.4, 0.2)}
