"""What a run can say of itself in the model card of its export."""

import contextlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow.compute as pc

from raysys.data.pairs import parallel_counts
from raysys.data.samples import Samples
from raysys.evaluation.table import render, score_table
from raysys.runs.run import SavedRun
from raysys.shards.manifest import NAME, Manifest, load_or_build
from raysys.shards.reader import RawSample, try_read_samples
from raysys.shards.sample import SampleError, decode_json
from raysys.storage import Storage, join
from raysys.systems.encoder import CARD
from raysys.systems.export.model_card import FILE, DataFacts, with_scores

SCORES = "scores.json"
"""The file of scores in a run's folder."""
_LOOKED_AT = 64  # samples of each data set whose licence is read


def data_facts(run: SavedRun) -> list[DataFacts]:
    """The data sets that the run was trained on, by their manifests; none where one of them is not at hand."""
    data, storage = run.settings.data, run.folder.storage
    if not all(storage.exists(join(data.locate(name), NAME)) for name in data.train):
        return []
    facts = []
    for name in data.train:
        if name in getattr(data, "text", ()):
            facts.append(_sentences(name, load_or_build(storage, data.locate(name), lambda line: None), data.language))
            continue
        if name in getattr(data, "parallel", ()):
            facts.append(_parallel(name, load_or_build(storage, data.locate(name), lambda line: None), data.languages, storage))
            continue
        everything = data.load([name], (), storage, log=lambda line: None)
        languages = [language for language in data.languages if language in everything.languages]
        samples = Samples(everything.manifests, languages, storage, data.layout, data.policy)
        captions = dict.fromkeys(languages, 0)
        for tags, counts in zip(samples.column("languages"), samples.column("captions"), strict=True):
            for language, count in zip(tags, counts, strict=True):
                if language in captions:
                    captions[language] += int(count)
        facts.append(DataFacts(name, samples.counts(), captions, _licences(samples)))
    return facts


def _sentences(name: str, manifest: Manifest, language: str) -> DataFacts:
    """Of ordered sentences: pieces of documents, and the sentences in them, with those that a piece repeats of the one before."""
    tags, faults = (manifest.table[column].to_pylist() for column in ("languages", "fault"))
    table = manifest.table.filter([language in own and fault is None for own, fault in zip(tags, faults, strict=True)])
    return DataFacts(name, {language: len(table)}, {language: len(pc.list_flatten(table["sentences"]))}, ())


def _parallel(name: str, manifest: Manifest, languages: Sequence[str], storage: Storage) -> DataFacts:
    """Of parallel texts, of which a sample may hold many."""
    rows, _ = parallel_counts(manifest, languages)
    tags, captions, many = (manifest.table[column].take(rows).to_pylist() for column in ("languages", "captions", "texts"))
    samples, texts = Counter[str](), Counter[str]()
    for own, *numbers in zip(tags, captions, many, strict=True):
        samples.update(own)
        for language, *counts in zip(own, *numbers, strict=True):
            texts[language] += sum(counts)
    some = rows[np.unique(np.linspace(0, len(rows) - 1, _LOOKED_AT, dtype=np.int64))]
    fields = []
    for sample in try_read_samples(storage, manifest, some):
        with contextlib.suppress(SampleError):  # training has said so, or will
            if isinstance(sample, RawSample) and "json" in sample.members:
                fields.append(decode_json(sample.members["json"], sample.where))
    in_use = [{language: found[language] for language in languages} for found in (samples, texts)]
    return DataFacts(name, in_use[0], in_use[1], _named_licences(fields))


def _named_licences(fields: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    """What the free fields of samples name as `licence` or `license`."""
    return tuple(sorted({str(one.get("licence") or one.get("license") or "") for one in fields} - {""}))


def _licences(samples: Samples) -> tuple[str, ...]:
    """What samples all over a data set name as `licence` or `license`."""
    ids = np.unique(np.linspace(0, len(samples) - 1, _LOOKED_AT, dtype=np.int64))
    found = []
    for sample in samples.try_read(ids):
        if isinstance(sample, RawSample):
            with contextlib.suppress(SampleError):  # training has said so, or will
                found.append(samples.captions(sample).extra)
    return _named_licences(found)


def training_facts(run: SavedRun) -> dict[str, Any]:
    """The settings of the run that a reader of its card will ask for."""
    training, objective = run.settings.training, run.settings.objective
    weights = {name: weight for name, weight in objective.weights.model_dump().items() if weight}
    own = run.settings.system in ("muve", "lample-conneau")
    return {
        **({} if own else {"losses and their weights": ", ".join(f"{name} {weight:g}" for name, weight in weights.items())}),
        "length": f"{training.steps} steps" if training.steps else f"{training.epochs:g} epochs",
        "global batch": training.global_batch,
        "learning rate": f"{training.learning_rate:g} ({training.schedule})",
        "precision": training.precision,
        "workers": f"{training.workers}, ZeRO {training.zero_stage}",
        "seed": training.seed,
    }


def score_text(run: SavedRun, step: int) -> str | None:
    """The run's scores of step `step` as a table; None where it has none."""
    if not run.folder.storage.exists(run.folder.path(SCORES)):
        return None
    scores = json.loads(run.folder.read_text(SCORES))
    return render(score_table(scores["results"])) if scores["step"] == step and scores["results"] else None


def update_card(run: SavedRun) -> None:
    """Put the run's scores into the card of its export, where it has one and they are of the same step."""
    storage, card = run.folder.storage, run.folder.path("export", FILE)
    if not storage.exists(card):
        return
    info = json.loads(storage.read(run.folder.path("export", CARD)))["info"]
    if scores := score_text(run, info["step"]):
        storage.write(card, with_scores(storage.read(card).decode(), scores).encode())
