"""Score a grounded run: the structure of its spaces, relatedness of sentences, classification on frozen vectors."""

import functools
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from transformers import PreTrainedTokenizerFast

from raysys.errors import UserError
from raysys.evaluation import senteval
from raysys.evaluation.concreteness import of_sets
from raysys.evaluation.rated_pairs import Sets, load
from raysys.evaluation.relatedness import score_sets
from raysys.evaluation.senteval.tasks import missing_files, read_task, task_named, tasks_folder
from raysys.evaluation.structure import structure
from raysys.evaluation.table import render, score_table
from raysys.runs.card import SCORES, update_card
from raysys.runs.evaluate import UNTRAINED, beside_others, scores_of
from raysys.runs.export import make_encoder
from raysys.runs.grounded.examples import FILE, examples_of, ratings_of
from raysys.runs.grounded.pictures import Pictures, load_pictures
from raysys.runs.grounded.settings import RELATEDNESS, SENTEVAL
from raysys.runs.run import Log, SavedRun
from raysys.systems.encoder import Encoder


@dataclass(frozen=True)
class GroundedEvaluation:
    """What :func:`evaluate_grounded` found."""

    scores: dict[str, Any]
    """``{"step": …, "data": split → fingerprint, "results": system → split → scores}``; the run itself is the last system."""
    splits: dict[str, Pictures]
    """Test split → its captions and pictures."""


def evaluate_grounded(
    run: SavedRun, tokenizer: PreTrainedTokenizerFast, encoder: Encoder, log: Log = print, tests: Mapping[str, str] | None = None
) -> GroundedEvaluation:
    """Score `encoder` and what it is to be compared with, write ``scores.json`` and print the table.

    Args:
        run: whose settings say what is scored, and beside what.
        tokenizer: the run's, for the untrained networks.
        encoder: what the run has trained.
        log: takes a line for people.
        tests: splits of captioned pictures to score, name → folder; by default all of the run's, and sentences. Scores of other splits
            that ``scores.json`` has from the same step are kept there.
    """
    settings, data = run.settings.evaluation, run.settings.data
    splits = {name: load_pictures(run, folder, log) for name, folder in (data.tests if tests is None else tests).items()}
    fingerprints = {name: f"{split.samples.fingerprint} K {settings.neighbours}" for name, split in splits.items()}
    sentences = tests is None and bool(settings.senteval)
    if sentences:
        fingerprints |= sentence_fingerprints(run)

    def scores_by(encoder: Encoder) -> dict[str, Any]:
        found = {name: score_pictures(encoder, split, settings.neighbours) for name, split in splits.items()}
        return found | (score_sentences(run, encoder, log) if sentences else {})

    results: dict[str, Any] = {}
    if settings.untrained and run.settings.trained:
        results[UNTRAINED] = scores_by(make_encoder(run, tokenizer, None))
    for name in settings.beside:
        results |= scores_of(run, name, fingerprints)
    results[run.name] = scores_by(encoder)
    scores = {"step": encoder.info.get("step"), "data": fingerprints, "results": results}
    kept = scores if tests is None else beside_others(run, scores)
    run.folder.write_text(SCORES, json.dumps(kept, indent=2, allow_nan=False) + "\n")
    update_card(run)
    if splits and tests is None:
        run.folder.write_text(FILE, examples_of(run, encoder, splits).dumps())
    if splits or sentences:
        log("\n" + render(score_table(results)) + "\n")
    return GroundedEvaluation(scores, splits)


def score_pictures(encoder: Encoder, pictures: Pictures, neighbours: int) -> dict[str, Any]:
    """The structure of a split in the space that the paper scores and, with its name behind the metrics, in the others."""
    metrics: dict[str, float] = {}
    chance: dict[str, float] = {}
    for space in reversed(encoder.spaces):
        vectors = encoder.encode_in_space(pictures.texts, space)
        found = structure(vectors, pictures.image_of, pictures.vectors, neighbours)
        ending = "" if space == encoder.spaces[-1] else f"_{space}"
        metrics |= {name + ending: value for name, value in found.metrics.items()}
        chance |= {name + ending: value for name, value in found.chance.items()}
    return {"items": len(pictures.numbers), "captions": len(pictures.texts), "metrics": metrics, "chance": chance}


def score_sentences(run: SavedRun, encoder: Encoder, log: Log) -> dict[str, Any]:
    """Relatedness in the space that the paper scores and, with its name behind the metrics, in the others; classification by the sentence
    encoder's own vectors."""
    settings, storage = run.settings.evaluation, run.folder.storage
    folder = _sets_folder(run)
    pairs = rated_pairs(run)
    related = score_sets(encoder.encode_texts, pairs)
    metrics, chance = dict(related.metrics), dict(related.chance)
    for space in encoder.spaces[:-1]:
        elsewhere = score_sets(functools.partial(encoder.encode_in_space, space=space), pairs)
        metrics |= {f"{name}_{space}": value for name, value in elsewhere.metrics.items()}
        chance |= {f"{name}_{space}": value for name, value in elsewhere.chance.items()}
    concrete = {name: one.mean for name, one in of_sets(pairs, ratings_of(run)).items()}
    log("training classifiers on the sentences' vectors")
    tasks = senteval.run(lambda texts: encoder.encode_in_space(texts, "text"), folder, settings.tasks or None, storage=storage)
    if stopped := [name for name, task in tasks.items() if task.unfinished]:
        log(f"classifiers that were stopped before their best, whose accuracy could be a little higher: {', '.join(stopped)}")
    return {
        RELATEDNESS: {
            "metrics": metrics,
            "chance": chance,
            "lacking": related.lacking,
            "concreteness": concrete,
        },
        SENTEVAL: {
            "metrics": {name: value for task in tasks.values() for name, value in task.metrics.items()},
            "chance": {name: value for task in tasks.values() for name, value in task.chance.items()},
            "lacking": {name: task.missing for name, task in tasks.items() if task.missing},
            "correct": {name: "".join("01"[right] for right in task.correct.tolist()) for name, task in tasks.items() if not task.missing},
        },
    }


def rated_pairs(run: SavedRun) -> Sets:
    """The rated pairs of sentences that lie in the folder of sets."""
    return load(_sets_folder(run), run.folder.storage)


def _sets_folder(run: SavedRun) -> str:
    """Where the sets of sentences lie: in what the settings name, or beneath it, as SentEval's scripts leave them."""
    return tasks_folder(run.settings.data.locate(run.settings.evaluation.senteval), run.folder.storage)


def sentence_fingerprints(run: SavedRun) -> dict[str, str]:
    """Split of sentences → hex digest of the names and contents of its files: rated pairs, and tasks."""
    folder, storage = _sets_folder(run), run.folder.storage
    digests = {name: hashlib.blake2b(digest_size=16) for name in (RELATEDNESS, SENTEVAL)}
    for entry in storage.list(folder):
        path = entry.uri[len(folder.rstrip("/")) + 1 :]
        content = path.encode() + b"\0" + storage.read(entry.uri)
        for name, own in ((RELATEDNESS, path.startswith(("STS/", "SICK/"))), (SENTEVAL, not path.startswith("STS/"))):
            if own:
                digests[name].update(content)
    return {name: digest.hexdigest() for name, digest in digests.items()}


def check_grounded(run: SavedRun) -> None:
    """Raise UserError for what would stop :func:`evaluate_grounded` after hours of training: data or other runs that are not there."""
    settings, data, storage = run.settings.evaluation, run.settings.data, run.folder.storage
    fingerprints = {
        name: f"{data.load([folder], (data.language,), storage, lambda line: None).fingerprint} K {settings.neighbours}"
        for name, folder in data.tests.items()
    }
    if settings.senteval:
        folder = data.locate(settings.senteval)
        if not storage.exists(folder):
            raise UserError(
                f"evaluation.senteval: nothing lies in {folder}; python jobs/prepare.py senteval --out {folder} "
                f"--languages {data.language} makes sets"
            )
        folder = _sets_folder(run)
        for task in map(task_named, settings.tasks or senteval.find_tasks(folder, storage)):
            if not missing_files(task, folder, storage):
                read_task(task, folder, storage)
        rated_pairs(run)
        fingerprints |= sentence_fingerprints(run)
    ratings_of(run)
    for name in settings.beside:
        scores_of(run, name, fingerprints)
