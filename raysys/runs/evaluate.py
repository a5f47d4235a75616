"""Score a run on its test splits, beside chance, the untrained networks and other runs."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from transformers import PreTrainedTokenizerFast

from raysys.data.bad import BadSample
from raysys.data.images import ImageError, ImagePreprocessor, ImagePreprocessorSettings
from raysys.data.samples import Samples
from raysys.errors import UserError
from raysys.evaluation.centring import centred, language_means
from raysys.evaluation.lexicon import read_dictionaries
from raysys.evaluation.references import contents_of_reference, load_reference
from raysys.evaluation.scores import EncodedItems, Item
from raysys.evaluation.table import render, score_table
from raysys.evaluation.word_scores import WORDS
from raysys.runs.card import SCORES, update_card
from raysys.runs.export import make_encoder
from raysys.runs.run import Log, SavedRun, open_folder
from raysys.runs.scoring import Scoring
from raysys.runs.words import located, make_word_task, training_texts
from raysys.shards.reader import RawSample
from raysys.shards.sample import SampleError
from raysys.storage import join
from raysys.systems.encoder import Encoder
from raysys.training.ledger import LEDGER, Ledger
from raysys.training.run_folder import RunFolder

UNTRAINED = "untrained"
"""What the networks as they were before training are called."""


@dataclass(frozen=True)
class Evaluation:
    """What :func:`evaluate_run` found."""

    scores: dict[str, Any]
    """``{"step": …, "data": split → fingerprint, "results": system → split → result of
    :func:`raysys.evaluation.scores.score`}``; the run itself is the last system."""
    items: dict[str, list[Item]]
    """Test split → its samples."""
    encoded: dict[str, EncodedItems]
    """Test split → the samples as the run's encoder sees them."""


def evaluate_run(
    run: SavedRun, tokenizer: PreTrainedTokenizerFast, encoder: Encoder, log: Log = print, tests: Mapping[str, str] | None = None
) -> "Evaluation":
    """Score `encoder` and what it is to be compared with, write ``scores.json`` and print the table.

    Args:
        run: whose settings say what is scored, in which languages, and beside what.
        tokenizer: the run's, for the untrained networks.
        encoder: what the run has trained.
        log: takes a line for people.
        tests: splits to score, name → folder; by default `data.tests`. Scores of other splits that ``scores.json`` has from
            the same step are kept there.

    Returns:
        What was scored now.
    """
    settings = run.settings.evaluation
    splits = {name: load_split(run, folder) for name, folder in (run.settings.data.tests if tests is None else tests).items()}
    items = {name: load_items(samples, encoder.preprocess.settings, run.folder, log) for name, samples in splits.items()}
    fingerprints = {name: samples.fingerprint for name, samples in splits.items()}
    training = training_texts(run) if tests is None or settings.centred else None
    if settings.centred and training is None:
        raise UserError("evaluation.centred: the means are those of the training captions, and the training data is not at hand")
    task = None
    if tests is None and training is not None and len(training) > 1:
        task, fingerprints[WORDS] = make_word_task(run, training, items, splits, log)
    scoring = Scoring(items, settings.held_out, task, located(run))
    beside = [scores_of(run, name, fingerprints) for name in settings.beside]
    results: dict[str, Any] = {}
    if settings.untrained:
        results[UNTRAINED] = scoring.of(make_encoder(run, tokenizer, None))
    for name in settings.references:
        results[name] = _reference_scores(run, name, scoring, fingerprints, log)
    for others in beside:
        results |= others
    encoded = scoring.encode(encoder)
    if settings.centred:
        means = language_means(encoder, training or {})
        encoded = {name: centred(split, means) for name, split in encoded.items()}
    results[run.name] = scoring.of_encoded(encoded) | scoring.words(encoder)
    if error := results[run.name].get(WORDS, {}).get("procrustes", {}).get("error"):
        log(error)
    scores = {"step": encoder.info.get("step"), "data": fingerprints, "results": results}
    kept = scores if tests is None else beside_others(run, scores)
    run.folder.write_text(SCORES, json.dumps(kept, indent=2, allow_nan=False) + "\n")
    update_card(run)
    if results and splits:
        log("\n" + render(score_table(results)) + "\n")
    return Evaluation(scores, items, encoded)


def _reference_scores(run: SavedRun, name: str, scoring: Scoring, fingerprints: Mapping[str, str], log: Log) -> dict[str, Any]:
    """Scores of a pretrained encoder, kept beside the runs: it is the same for all of them."""
    data = {split: found for split, found in fingerprints.items() if split != WORDS}
    told = json.dumps([name, contents_of_reference(name), data, list(scoring.held_out), run.settings.data.languages], sort_keys=True)
    uri = run.folder.beside(join("references", hashlib.blake2b(told.encode(), digest_size=12).hexdigest() + ".json"))
    storage = run.folder.storage
    if not storage.exists(uri):
        log(f"scoring {name}")
        storage.write(uri, json.dumps(scoring.of_reference(load_reference(name)), allow_nan=False).encode())
    return json.loads(storage.read(uri))


def beside_others(run: SavedRun, scores: dict[str, Any]) -> dict[str, Any]:
    """`scores` together with those of other splits that were written before for the same step."""
    if not run.folder.storage.exists(run.folder.path(SCORES)):
        return scores
    before = json.loads(run.folder.read_text(SCORES))
    if before.get("step") != scores["step"]:
        return scores
    systems = [name for name in {**before["results"], **scores["results"]} if name != run.name] + [run.name]
    results = {name: before["results"].get(name, {}) | scores["results"].get(name, {}) for name in systems}
    return {"step": scores["step"], "data": before["data"] | scores["data"], "results": results}


def check_evaluation(run: SavedRun) -> None:
    """Raise UserError for what would stop :func:`evaluate_run` after hours of training: test data or other runs that are not there."""
    splits = {name: load_split(run, folder) for name, folder in run.settings.data.tests.items()}
    fingerprints = {name: split.fingerprint for name, split in splits.items()}
    settings = run.settings.evaluation
    there = {language for split in splits.values() for language in split.languages}
    if unknown := set(settings.held_out) - there:
        raise UserError(f"evaluation.held_out: no test split has a caption in {', '.join(sorted(unknown))}")
    for name in settings.references:
        load_reference(name)
    words = located(run)
    if words.dictionaries:
        languages = [*run.settings.data.languages, *filter(None, [words.through])]
        read_dictionaries(words.dictionaries, languages, run.folder.storage)
    for name in settings.beside:
        scores_of(run, name, fingerprints)


def load_split(run: SavedRun, folder: str) -> Samples:
    """A test split in the run's languages; those that the split lacks are left out."""
    storage, wanted = run.folder.storage, run.settings.data.languages
    data = run.settings.data
    everything = data.load([folder], (), storage, log=lambda line: None)
    languages = [language for language in (*wanted, *run.settings.evaluation.held_out) if language in everything.languages]
    if wanted and not languages:
        raise UserError(f"data.tests: {folder} has none of the run's languages ({', '.join(wanted)})")
    return Samples(everything.manifests, languages, storage, data.layout, data.policy)


def load_items(samples: Samples, image: ImagePreprocessorSettings, folder: RunFolder, log: Log = print, chunk: int = 1024) -> list[Item]:
    """The samples of a test split in memory, in order; bad ones are left out and named in the run's ledger, where they are allowed.

    Raises:
        BadDataError: a bad sample, where the policy is `raise`; otherwise more of them than it allows.
    """
    items, bad = [], []
    for start in range(0, len(samples), chunk):
        ids = np.arange(start, min(start + chunk, len(samples)))
        for number, sample in zip(ids.tolist(), samples.try_read(ids), strict=True):
            try:
                items.append(_item(samples, sample, image))
            except SampleError as error:
                bad.append(samples.policy.accept(samples.describe_bad(number, error)))
    tell_bad(samples, bad, folder, log)
    return items


def tell_bad(samples: Samples, bad: Sequence[BadSample], folder: RunFolder, log: Log) -> None:
    """Name the samples of a test split that are not scored in the run's ledger: `bad` ones, and those that indexing found.

    Raises:
        BadDataError: more of them than the policy allows.
    """
    if every := [*bad, *samples.bad]:
        ledger = Ledger(folder, [samples])
        for one in every:
            ledger.add(one)
        ledger.flush()
        log(f"{len(every)} bad samples are not scored, named in {folder.path(LEDGER)}; one of them: {every[0]}")
        samples.policy.check(len(every), samples.total, str(every[0]))


def _item(samples: Samples, sample: RawSample | SampleError, image: ImagePreprocessorSettings) -> Item:
    if isinstance(sample, SampleError):
        raise sample
    found = samples.captions(sample)
    captions = {language: found.captions[language] for language in samples.languages if language in found.captions}
    if samples.layout.image_extension(list(sample.members)) is None:
        return Item(None, captions, found.extra.get("trained_languages"), sample.key)  # a text of a split of texts
    member, data = samples.picture(sample)
    try:  # the encoder decodes it again, and could not say whose it is
        ImagePreprocessor(image)(data)
    except ImageError as error:
        raise SampleError(sample.where, error.reason, member, "image") from None
    return Item(data, captions, found.extra.get("trained_languages"), sample.key)


def scores_of(run: SavedRun, name: str, fingerprints: dict[str, str]) -> dict[str, Any]:
    """Another run's scores, as it wrote them itself, of the splits that both were scored on.

    Raises:
        UserError: it has none, or they are of other test data.
    """
    other = open_folder(run.folder.storage, name if "/" in name else run.folder.beside(name))
    advice = f"python jobs/evaluate.py --run {other.uri}"
    if not run.folder.storage.exists(other.path(SCORES)):
        raise UserError(f"evaluation.beside: {other.uri} has no {SCORES}: train it first, or run {advice}")
    scores = json.loads(other.read_text(SCORES))
    common = [split for split in fingerprints if split in scores["data"]]
    different = [split for split in common if scores["data"][split] != fingerprints[split]]
    if WORDS in different:  # of other training data, whose words are others; sentences can be compared
        different.remove(WORDS)
        common.remove(WORDS)
    if different:
        raise UserError(f"evaluation.beside: {other.uri} was scored on other data for {', '.join(different)}: run {advice}")
    own = list(scores["results"])[-1]
    if own in (run.name, UNTRAINED):
        raise UserError(f"evaluation.beside: {other.uri} is also called {own}: two rows of the table cannot have one name")
    return {own: {split: scores["results"][own][split] for split in common}}
