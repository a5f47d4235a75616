"""Score a fine-tuned network in every language that there are tests in, beside chance."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from transformers import PreTrainedTokenizerFast

from raysys.data.batches import BatchFinisher
from raysys.data.shares import Share
from raysys.data.task_batches import TaskBatch
from raysys.data.task_builder import TaskBuilder
from raysys.data.task_records import TaskRecords
from raysys.evaluation.table import render, score_table
from raysys.evaluation.tasks.accuracy import accuracy
from raysys.evaluation.tasks.matching import match_all
from raysys.evaluation.tasks.retrieval import retrieval
from raysys.evaluation.tasks.translation import bleu
from raysys.models.visual import Visual
from raysys.runs.card import SCORES
from raysys.runs.evaluate import beside_others, scores_of, tell_bad
from raysys.runs.finetune.build import make_builder
from raysys.runs.finetune.run import load_images, load_records
from raysys.runs.run import Log, SavedRun
from raysys.systems.rc3.task_model import TaskModel
from raysys.systems.rc3.tasks import images_of

HEADLINES = (
    ("eval/accuracy", "accuracy"),
    ("eval/recall", "recall@1"),
    ("eval/text_to_image_R@1", "text→image R@1"),
    ("eval/image_to_text_R@1", "image→text R@1"),
    ("eval/bleu", "BLEU"),
)
"""What the table shows of each test."""


@dataclass(frozen=True)
class FinetuneEvaluation:
    """What :func:`evaluate_finetuned` found."""

    scores: dict[str, Any]
    """``{"step": …, "data": test → fingerprint, "results": run → test → scores}``; the run itself is the last one."""


def evaluate_finetuned(
    run: SavedRun, tokenizer: PreTrainedTokenizerFast, model: TaskModel, log: Log = print, tests: Mapping[str, str] | None = None
) -> FinetuneEvaluation:
    """Score `model`, write ``scores.json`` and print the table.

    Args:
        run: whose settings say what is scored, and beside what.
        tokenizer: the run's.
        model: what the run has trained.
        log: takes a line for people.
        tests: tests to score, name → folder; by default all of the run's. Scores of other tests that ``scores.json`` has from the same
            step are kept there.
    """
    settings = run.settings
    folders = settings.data.tests if tests is None else tests
    records = {name: load_records(settings, [folder], run.folder.storage, log, name) for name, folder in folders.items()}
    fingerprints = {name: fingerprint(settings, its) for name, its in records.items()}
    results: dict[str, Any] = {}
    for name in settings.evaluation.beside:
        results |= scores_of(run, name, fingerprints)
    model.to("cuda" if torch.cuda.is_available() else "cpu")
    results[run.name] = {}
    for name, its in records.items():
        log(f"scoring {name}: {len(its)} records")
        results[run.name][name] = score_records(run, tokenizer, model, its, name, log)
    scores = {"step": model.info["step"], "data": fingerprints, "results": results}
    kept = scores if tests is None else beside_others(run, scores)
    run.folder.write_text(SCORES, json.dumps(kept, indent=2, allow_nan=False, ensure_ascii=False) + "\n")
    if records:
        log("\n" + render(score_table(results, HEADLINES)) + "\n")
    return FinetuneEvaluation(scores)


def fingerprint(settings: Any, records: TaskRecords) -> str:
    """What two runs' scores of a test have to have in common to be compared."""
    return f"{records.fingerprint} beams {settings.evaluation.beams}" if settings.system == "mmt" else records.fingerprint


def check_finetune(run: SavedRun) -> None:
    """Raise UserError for what would stop :func:`evaluate_finetuned` after hours of training: tests, images or other runs that are not
    there."""
    settings, fingerprints = run.settings, {}
    for name, folder in settings.data.tests.items():
        records = load_records(settings, [folder], run.folder.storage, lambda line: None, name)
        load_images(settings, records, run.folder.storage, name)
        fingerprints[name] = fingerprint(settings, records)
    for name in settings.evaluation.beside:
        scores_of(run, name, fingerprints)


def score_records(
    run: SavedRun, tokenizer: PreTrainedTokenizerFast, model: TaskModel, records: TaskRecords, test: str, log: Log = print
) -> dict[str, Any]:
    """Metrics of one test, each beside chance.

    Raises:
        BadDataError: a record whose image cannot be read, where the policy is `raise`; otherwise more of them than it allows.
    """
    builder = make_builder(run.settings, model.inputs, tokenizer, records, run.folder.storage, test)
    score: Callable[..., dict[str, Any]] = {"itr": _score_retrieval, "mmt": _score_translation}.get(model.task, _score_answers)
    found = score(run, tokenizer, model, builder)
    tell_bad(records, found.pop("bad"), run.folder, log)  # type: ignore[arg-type]
    return found


def batches(run: SavedRun, model: TaskModel, builder: TaskBuilder, bad: list[Any], ids: np.ndarray | None = None) -> Iterator[TaskBatch]:
    """Records in order, on the model's device; those that cannot be used are left out and added to `bad`."""
    finisher = BatchFinisher(model.inputs.image, 1, builder)
    numbers = np.arange(len(builder.samples)) if ids is None else ids
    size, device = run.settings.evaluation.batch_size, next(model.system.parameters()).device
    for start in range(0, len(numbers), size):
        (payload,) = builder([Share(0, 0, numbers[start : start + size])])
        batch: TaskBatch = finisher(payload)
        bad += [one.bad for one in batch.replaced]
        yield sound(batch).to(device)


def sound(batch: TaskBatch) -> TaskBatch:
    """The rows of a batch that nothing was put in the place of."""
    if not batch.replaced:
        return batch
    kept = torch.ones(len(batch.ids), dtype=torch.bool)
    kept[[one.row for one in batch.replaced]] = False
    return batch.__class__(**{**vars(batch), **{name: rows[kept] for name, rows in batch.tensors().items()}, "count": int(kept.sum())})


def _score_answers(run: SavedRun, tokenizer: PreTrainedTokenizerFast, model: TaskModel, builder: TaskBuilder) -> dict[str, Any]:
    bad: list[Any] = []
    given: list[int] = []
    ids: list[int] = []
    with torch.inference_mode():
        for batch in batches(run, model, builder, bad):
            given += model.system.answer(batch).tolist()
            ids += batch.ids.tolist()
    classes = model.inputs.classes
    found = accuracy([classes[number] for number in given], builder.samples.answers(np.array(ids)), classes)
    return {
        "metrics": {"eval/accuracy": found.value},
        "chance": {"eval/accuracy": found.chance},
        "items": found.items,
        "unseen_answers": found.unseen,
        "bad": bad,
    }


def _score_translation(run: SavedRun, tokenizer: PreTrainedTokenizerFast, model: TaskModel, builder: TaskBuilder) -> dict[str, Any]:
    bad: list[Any] = []
    written: list[str] = []
    ids: list[int] = []
    records, beams = builder.samples, run.settings.evaluation.beams
    assert records.target is not None
    tag = builder.language_ids[records.target]
    with torch.inference_mode():
        for batch in batches(run, model, builder, bad):
            languages = torch.full_like(batch.ids, tag)
            pieces = model.system.network.generate(model.system.encode(batch), languages, beams, model.inputs.form.max_tokens - 2)
            written += tokenizer.batch_decode(pieces, skip_special_tokens=True, clean_up_tokenization_spaces=False)
            ids += batch.ids.tolist()
    chosen = np.array(ids)
    found, unchanged = (bleu(texts, records.answers(chosen), records.target) for texts in (written, records.texts(chosen)))
    return {
        "metrics": {"eval/bleu": found.value / 100},  # a share, as all scores
        "chance": {"eval/bleu": unchanged.value / 100},
        "items": len(ids),
        "signature": found.signature,
        "bad": bad,
    }


def _score_retrieval(run: SavedRun, tokenizer: PreTrainedTokenizerFast, model: TaskModel, builder: TaskBuilder) -> dict[str, Any]:
    bad: list[Any] = []
    images = builder.images.of_records[:, 0]
    _, firsts = np.unique(images, return_index=True)
    text_ids, text_mask = map(torch.from_numpy, builder.encode(np.arange(len(builder.samples))))
    shown: list[int] = []

    def pictures() -> Iterator[Visual]:
        for batch in batches(run, model, builder, bad, firsts):
            shown.extend(images[batch.ids.cpu().numpy()].tolist())
            yield images_of(batch)[0]

    with torch.inference_mode():
        scores = match_all(model.system.match, pictures(), text_ids, text_mask, run.settings.evaluation.batch_size)
    place = {image: row for row, image in enumerate(shown)}
    texts = np.array([text for text, image in enumerate(images.tolist()) if image in place])
    found = retrieval(scores[:, texts], np.array([place[image] for image in images[texts].tolist()]))
    return {
        "metrics": {
            "eval/recall": found.mean,
            "eval/text_to_image_R@1": found.text_to_image,
            "eval/image_to_text_R@1": found.image_to_text,
        },
        "chance": {
            "eval/recall": found.mean_chance,
            "eval/text_to_image_R@1": found.text_to_image_chance,
            "eval/image_to_text_R@1": found.image_to_text_chance,
        },
        "items": len(texts),
        "images": len(shown),
        "bad": bad,
    }
