"""The page of a comparison, from the folders of its runs."""

import dataclasses
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from raysys.data.samples import Samples
from raysys.errors import RunFailed, UserError
from raysys.evaluation.comparison.data import Comparison, Row, WordExample
from raysys.evaluation.comparison.figures import SENTENCES, THIS
from raysys.evaluation.comparison.page import write_comparison
from raysys.evaluation.comparison.paper import SYSTEMS
from raysys.evaluation.comparison.record import record
from raysys.evaluation.comparison.words import word_examples
from raysys.evaluation.examples import failures, translation_examples
from raysys.evaluation.procrustes import TooFewPairs, align
from raysys.evaluation.scores import Item
from raysys.evaluation.word_scores import WORDS
from raysys.runs.comparison import Entry, differences, finished_scores, progress
from raysys.runs.evaluate import load_items, load_split
from raysys.runs.export import trained_encoder
from raysys.runs.run import Log, SavedRun, load_run
from raysys.runs.scoring import Scoring
from raysys.runs.words import located, make_word_task, training_texts, vectors_of_words
from raysys.storage import Storage, join
from raysys.systems.encoder import Encoder
from raysys.systems.settings import TITLES

PAGE, NUMBERS = "comparison.html", "comparison.json"


class _Gathered:
    """Scores of runs, all of the same test data."""

    def __init__(self) -> None:
        self.data: dict[str, str] = {}
        """Split → fingerprint, of the first run that has it."""
        self.references: dict[str, dict[int, Any]] = {}
        """What Globetrotter's runs were scored beside → seed → results."""
        self.missing: list[tuple[str, str]] = []

    def results(self, name: str, run: SavedRun, seed: int, references: bool = False) -> dict[str, Any] | None:
        """Split → scores of one run; None, and a note why, where there are none that can be compared."""
        scores = finished_scores(run, {})
        if scores is None:
            self.missing.append((name, "it has no scores of its best checkpoint"))
            return None
        other = [split for split, fingerprint in scores["data"].items() if self.data.setdefault(split, fingerprint) != fingerprint]
        if other:
            self.missing.append((name, f"it was scored on other test data ({', '.join(other)}) than the runs before it"))
            return None
        results = dict(scores["results"])
        own: dict[str, Any] = results.pop(run.name)
        for reference, result in results.items() if references else ():
            self.references.setdefault(reference, {})[seed] = result
        return own


def gather(made: Sequence[Entry], total_steps: int | None, also: Sequence[SavedRun], human: Sequence[str], title: str) -> Comparison:
    """What the page is made from, but for examples.

    Args:
        made: the runs that belong to the comparison, finished or not.
        total_steps: as :func:`raysys.runs.comparison.progress` takes it.
        also: further runs. Those called <name>-seed-<number> are the seeds of one row.
        human: parts of the names of test splits that were translated by people.
        title: heading.
    """
    found, seeds = _Gathered(), sorted({entry.seed for entry in made})
    systems: dict[str, dict[int, Any]] = {entry.system: {} for entry in made}
    for entry in made:
        done = progress(entry, total_steps)
        if done is not None:
            found.missing.append((entry.name, f"{done} of {total_steps or 'its'} steps are done" if done else "it is not trained yet"))
        elif (results := found.results(entry.name, entry.saved(), entry.seed, references=entry.system == THIS)) is not None:
            systems[entry.system][entry.seed] = results
    beyond: dict[str, dict[int, Any]] = {}
    changes: dict[str, Any] = {}
    base = next((entry for entry in made if entry.system == THIS), None)
    for run in also:
        numbered = re.fullmatch(r"(.+)-seed-(\d+)", run.name)
        group, seed = (numbered[1], int(numbered[2])) if numbered else (run.name, run.settings.training.seed)
        if (results := found.results(run.name, run, seed)) is not None:
            beyond.setdefault(group, {})[seed] = results
            changed = differences(base.settings, run.settings) if base else {}
            changes[group] = {key: change for key, change in changed.items() if key not in ("training.seed", "data.languages")}
    splits = [split for split in found.data if split != WORDS]
    settings = made[0].settings
    training = settings.training
    length = f"{total_steps or training.steps} steps" if total_steps or training.steps else f"{training.epochs:g} epochs"
    return Comparison(
        title=title,
        summary=f"{len(systems)} systems, each trained with {len(seeds)} seed{'s' if len(seeds) > 1 else ''} on the same data, in "
        f"{length} of {training.global_batch} samples.",
        facts=[("Seeds", ", ".join(map(str, seeds))), ("Training data", ", ".join(settings.data.train)), ("Test data", ", ".join(splits))],
        rows=[Row(name, TITLES[name], systems[name], len(seeds)) for name in SYSTEMS if name in systems],
        references=[Row(name, name, results) for name, results in found.references.items()],
        also=[Row(name, name, results, changes=changes[name]) for name, results in beyond.items()],
        human=[split for split in splits if any(part in split for part in human)],
        missing=found.missing,
    )


def shown_entry(data: Comparison, made: Sequence[Entry]) -> Entry | None:
    """The run whose examples are shown: Globetrotter with the first seed that was scored, or else the first run; None without scores.

    Not the one that the test splits like best.
    """
    scored = [entry for entry in made if (row := data.row(entry.system)) is not None and entry.seed in row.seeds]
    return next((entry for entry in scored if entry.system == THIS), next(iter(scored), None))


def with_examples(data: Comparison, entry: Entry, log: Log = print) -> Comparison:
    """The comparison with examples of one of its runs, for which the test data and the run's export are read."""
    run = entry.saved()
    encoder = trained_encoder(run, log)
    splits = {name: load_split(run, folder) for name, folder in run.settings.data.tests.items()}
    items = {name: load_items(samples, encoder.preprocess.settings, run.folder, log) for name, samples in splits.items()}
    # The encoder sees no picture of them: they are shown, not searched.
    blind = {name: [dataclasses.replace(item, image=None) for item in split] for name, split in items.items()}
    encoded = Scoring(blind).encode(encoder)
    hardest = min(items, key=lambda name: data.row(entry.system).seeds[entry.seed][name]["metrics"].get(SENTENCES, 1.0))  # type: ignore[union-attr]
    return dataclasses.replace(
        data,
        example_of=f"{TITLES[entry.system]}, seed {entry.seed}",
        translations={name: translation_examples(encoded[name], items[name]) for name in items},
        failures=failures(encoded[hardest], items[hardest]),
        words=_words(run, encoder, items, splits),
    )


def _words(run: SavedRun, encoder: Encoder, items: Mapping[str, Sequence[Item]], splits: Mapping[str, Samples]) -> list[WordExample]:
    """Words and what is nearest to them after Procrustes; none where too few words are pairs, or the training data is elsewhere."""
    training, settings = training_texts(run), located(run)
    if training is None or len(training) < 2:
        return []
    task, _ = make_word_task(run, training, items, splits, lambda line: None)
    vectors = vectors_of_words(encoder, task)
    try:
        vectors = align(vectors, neighbours=settings.neighbours, least_pairs=settings.least_pairs).apply(vectors)
    except TooFewPairs:
        return []
    # A dictionary knows better than captions which words are translations.
    return word_examples(vectors, task.vocabularies, list(task.truths.values())[-1])


def write_page(
    made: Sequence[Entry],
    total_steps: int | None,
    also: Sequence[str],
    human: Sequence[str],
    title: str,
    commands: Sequence[tuple[str, str]],
    log: Log = print,
) -> str:
    """Write ``comparison.html`` and ``comparison.json`` beside the runs, from those that are finished; returns where the page lies.

    Args:
        made, total_steps, human, title: as :func:`gather` takes them.
        also: folders of further runs.
        commands: (what it does, command line) to show.
        log: takes a line for people.

    Raises:
        UserError: there is no such run in `also`.
    """
    base = made[0].settings
    data = gather(made, total_steps, [load_run(one, base.storage) for one in also], human, title)
    entry = shown_entry(data, made)
    if entry is not None:
        try:
            data = with_examples(data, entry, log)
        except (UserError, RunFailed) as error:  # the data may be elsewhere by now; the numbers do not need it
            log(f"the page has no examples: {error}")
    data = dataclasses.replace(data, commands=commands)
    storage = Storage(base.storage)
    storage.write(join(base.run.storage, NUMBERS), (json.dumps(record(data), indent=1, allow_nan=False) + "\n").encode())
    storage.write(join(base.run.storage, PAGE), write_comparison(data).encode())
    return join(base.run.storage, PAGE)
