"""Fine-tuning from a base to scores: trained by real workers, exported, loaded again, scored in languages that training did not see."""

import functools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from raysys.data.batches import BatchFinisher
from raysys.data.shares import Share
from raysys.errors import UserError
from raysys.runs.finetune.build import get_tokenizer, known_answers, make_job
from raysys.runs.finetune.evaluate import check_finetune, evaluate_finetuned
from raysys.runs.finetune.export import export_finetuned, load_task_model
from raysys.runs.finetune.report import report_finetune
from raysys.runs.finetune.run import describe_finetune, open_finetune
from raysys.runs.finetune.settings import FinetuneSettings
from raysys.runs.run import Run
from raysys.settings import from_mapping
from raysys.training.job import Place
from raysys.training.loop import train
from raysys.training.phases import Phases
from tests.data.task_worlds import ANSWERS, IMAGES, record, write, write_base, write_world
from tests.training.processes import run_ranks

QUIET = functools.partial(print, end="")
FOLDERS = {"xvnli": "xvnli", "xgqa": "xgqa", "marvl": "nlvr2", "itr": "flickr30k"}
STEPS = 40


def settings(root: Path, task: str, visual: str = "combined", **changed: Any) -> FinetuneSettings:
    test = {"itr": "xflickrco", "marvl": "marvl"}.get(task, task)
    train = "mmt-train" if task == "mmt" else f"{FOLDERS[task]}-train-en"
    tests = {"2016": train, "2016/de-en": train} if task == "mmt" else {tag: f"{test}-test-{tag}" for tag in ("en", "de")}
    data = {"folder": str(root / "data"), "train": [train], "validation": [train], "images": ["images"], "tests": tests}
    if task == "mmt":
        data["target"] = "de"
    training: dict[str, Any] = {"global_batch": 6, "steps": STEPS, "learning_rate": 3e-3, "checkpoint_every": STEPS // 2}
    if task == "marvl":
        training |= {"micro_batch": 2, "zero_stage": 3}
    if task == "mmt":
        training |= {"activation_checkpointing": True, "zero_stage": 3}
    values = {
        "system": task,
        "base": str(root / "runs/base"),
        "visual": visual,
        "run": {"name": task, "storage": str(root / "runs")},
        "data": data | changed.pop("data", {}),
        "training": training,
        "evaluation": {"batch_size": 5, "beams": 2},
    }
    return from_mapping(FinetuneSettings, values | changed, "test")


def work(rank: int, workers: int, root: Path, tasks: tuple[str, ...]) -> None:
    """Fine-tune on some tasks, one after the other."""
    for task in tasks:
        run = open_finetune(settings(root, task), lambda line: None)
        job = make_job(run, get_tokenizer(run))
        finisher = BatchFinisher(job.image, 1, job.builder)
        shares = [Share(step, run.plan.draw_of(step), run.plan.slice(step, rank, workers)) for step in range(STEPS)]
        batches = (finisher(payload) for share in shares for payload in job.builder([share]))
        train(job, Place(rank, workers, torch.device("cpu")), batches, lambda line: None, Phases())


@pytest.fixture(scope="module")
def root(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("finetune")
    write_world(folder / "data")
    write_base(folder / "runs" / "base")
    return folder


def trained(root: Path, tasks: tuple[str, ...]) -> dict[str, Run]:
    """Runs that two workers have trained."""
    opened = {task: open_finetune(settings(root, task), lambda line: None) for task in tasks}
    for run in opened.values():
        check_finetune(run)
        run.folder.save_settings(run.settings)
        get_tokenizer(run)
    run_ranks(work, 2, 2, root, tasks)
    return opened


@pytest.fixture(scope="module")
def runs(root) -> dict[str, Run]:
    return trained(root, ("xgqa", "itr"))


@pytest.fixture(scope="module")
def more_runs(root) -> dict[str, Run]:
    return trained(root, ("marvl", "mmt"))


def scored(run: Run) -> dict[str, Any]:
    tokenizer = get_tokenizer(run)
    export_finetuned(run, tokenizer, lambda line: None)
    model = load_task_model(run.folder.storage, run.folder.path("export"))
    evaluation = evaluate_finetuned(run, tokenizer, model, lambda line: None)
    report = report_finetune(run, evaluation)
    assert Path(report).read_text().startswith("<!doctype html>")
    scores = json.loads(run.folder.read_text("scores.json"))
    assert scores["step"] in (STEPS // 2, STEPS)
    return scores["results"][run.name]


def test_answers_are_learned_and_scored_in_every_language(runs, root):
    run = runs["xgqa"]
    found = scored(run)
    assert found["en"]["metrics"]["eval/accuracy"] == 1.0, "its test is a part of what it was trained on"
    assert {name: one["items"] for name, one in found.items()} == {"en": IMAGES, "de": IMAGES}
    assert found["de"]["chance"] == {"eval/accuracy": pytest.approx(1 / 3)}
    assert json.loads(run.folder.read_text("answers.json")) == sorted(ANSWERS) == list(known_answers(run))
    validated = [line["eval/validation_accuracy"] for line in run.folder.metrics() if "eval/validation_accuracy" in line]
    assert validated[-1] == 1.0
    strange = write(root / "data/xgqa-strange", [record("xgqa", n, record={"answer": "red" if n else "a boat"}) for n in range(4)])
    model = load_task_model(run.folder.storage, run.folder.path("export"))
    again = evaluate_finetuned(run, get_tokenizer(run), model, lambda line: None, {"strange": strange}).scores["results"][run.name]
    assert (again["strange"]["unseen_answers"], again["strange"]["chance"]["eval/accuracy"]) == (1, 0.75)
    assert set(json.loads(run.folder.read_text("scores.json"))["results"][run.name]) == {"en", "de", "strange"}


@pytest.mark.slow
def test_pairs_of_images(more_runs):
    found = scored(more_runs["marvl"])
    assert found["en"]["metrics"]["eval/accuracy"] > found["en"]["chance"]["eval/accuracy"] == 0.5


def test_retrieval_both_ways(runs):
    found = scored(runs["itr"])
    assert list(found["en"]["chance"].values()) == pytest.approx([1 / IMAGES] * 3)
    metrics = found["en"]["metrics"]
    assert metrics["eval/recall"] == pytest.approx((metrics["eval/text_to_image_R@1"] + metrics["eval/image_to_text_R@1"]) / 2)
    lines = runs["itr"].folder.metrics()
    losses = [line["train/loss"] for line in lines if "train/loss" in line]
    assert np.mean(losses[-2:]) < losses[0] < 1.2
    assert 0 <= next(line["eval/validation_matching"] for line in lines if "eval/validation_matching" in line) <= 1


@pytest.mark.slow
def test_translations_in_both_directions(more_runs):
    run = more_runs["mmt"]
    found = scored(run)
    assert found.keys() == {"2016", "2016/de-en"}
    for one in found.values():
        assert one["items"] == IMAGES
        assert "tok:13a" in one["signature"]
    likelihoods = [line["eval/validation_log_likelihood"] for line in run.folder.metrics() if "eval/validation_log_likelihood" in line]
    assert likelihoods[0] < likelihoods[-1] < 0
    assert describe_finetune(run)[1] == "data 12 records of multi-modal translation in en to de, images as combined"


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"base": "nowhere"}, r"there is no run .*nowhere"),
        ({"data": {"max_tokens": 90}}, r"data\.max_tokens: 90 pieces, and the network of .*base reads 24 at most"),
        ({"data": {"images": []}}, r"its image 'pic-\d+' was looked for by its key in no folder, as data\.images is empty"),
        ({"data": {"train": ["mmt-train"]}}, r"mmt-train.* is no record of a task, where those of xvnli were expected"),
    ],
)
def test_faults_are_found_before_training(root, changed, told):
    with pytest.raises(UserError, match=told):
        open_finetune(settings(root, "xvnli", **changed), lambda line: None)


def test_an_unfinished_base_says_how_to_finish_it(root, tmp_path):
    base = Path(write_base(tmp_path / "half"))
    (base / "export" / "raysys.json").unlink()
    with pytest.raises(
        UserError, match=r"half has no export, as it was not trained to its end; finish it first: python jobs/rc3\.py --config"
    ):
        open_finetune(settings(root, "xvnli", base=str(base)), lambda line: None)
    text = (base / "settings.yaml").read_text().replace("steps: null", "steps: 50")
    (base / "settings.yaml").write_text(text)
    with pytest.raises(UserError, match="half was trained for 0 of 50 steps; finish it first"):
        open_finetune(settings(root, "xvnli", base=str(base)), lambda line: None)
