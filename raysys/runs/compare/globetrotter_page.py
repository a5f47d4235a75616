"""The page of a comparison, from the folders of its runs."""

import dataclasses
import json
from collections.abc import Mapping, Sequence
from typing import Any

from raysys.data.samples import Samples
from raysys.errors import RunFailed, UserError
from raysys.evaluation.comparison.data import Comparison, WordExample
from raysys.evaluation.comparison.figures import SENTENCES, THIS
from raysys.evaluation.comparison.page import write_comparison
from raysys.evaluation.comparison.paper import SYSTEMS
from raysys.evaluation.comparison.record import record
from raysys.evaluation.comparison.words import word_examples
from raysys.evaluation.examples import failures, translation_examples
from raysys.evaluation.procrustes import TooFewPairs, align
from raysys.evaluation.scores import Item
from raysys.evaluation.side_by_side.row import Row
from raysys.evaluation.word_scores import WORDS
from raysys.runs.compare.entries import Entry
from raysys.runs.compare.gather import further_rows, gather_runs, length_of, numbered
from raysys.runs.evaluate import load_items, load_split
from raysys.runs.export import trained_encoder
from raysys.runs.run import Log, SavedRun, load_run
from raysys.runs.scoring import Scoring
from raysys.runs.settings import GlobetrotterSettings
from raysys.runs.words import located, make_word_task, training_texts, vectors_of_words
from raysys.storage import Storage, join
from raysys.systems.encoder import Encoder
from raysys.systems.settings import TITLES

PAGE, NUMBERS = "comparison.html", "comparison.json"
GlobetrotterEntry = Entry[GlobetrotterSettings]


def gather(
    made: Sequence[GlobetrotterEntry], total_steps: int | None, also: Sequence[SavedRun], human: Sequence[str], title: str
) -> Comparison:
    """What the page is made from, but for examples.

    Args:
        made: the runs that belong to the comparison, finished or not.
        total_steps: as :func:`raysys.runs.compare.entries.progress` takes it.
        also: further runs. Those called <name>-seed-<number> are the seeds of one row.
        human: parts of the names of test splits that were translated by people.
        title: heading.
    """
    seeds = sorted({entry.seed for entry in made})
    found = gather_runs(made, lambda entry: total_steps, THIS)
    beyond = further_rows(found, also, next((entry for entry in made if entry.system == THIS), None))
    splits = [split for split in found.data if split != WORDS]
    settings = made[0].settings
    return Comparison(
        title=title,
        summary=f"{numbered(len(found.results), 'system')}, each trained with {numbered(len(seeds), 'seed')} on the same data, in "
        f"{length_of(total_steps, settings)}.",
        facts=[("Seeds", ", ".join(map(str, seeds))), ("Training data", ", ".join(settings.data.train)), ("Test data", ", ".join(splits))],
        rows=[Row(name, TITLES[name], found.results[name], len(seeds)) for name in SYSTEMS if name in found.results],
        references=[Row(name, name, results) for name, results in found.beside.items()],
        also=beyond,
        human=[split for split in splits if any(part in split for part in human)],
        missing=found.missing,
    )


def shown_entry(data: Comparison, made: Sequence[GlobetrotterEntry]) -> GlobetrotterEntry | None:
    """The run whose examples are shown: Globetrotter with the first seed that was scored, or else the first run; None without scores.

    Not the one that the test splits like best.
    """
    scored = [entry for entry in made if (row := data.row(entry.system)) is not None and entry.seed in row.seeds]
    return next((entry for entry in scored if entry.system == THIS), next(iter(scored), None))


def with_examples(data: Comparison, entry: GlobetrotterEntry, log: Log = print) -> Comparison:
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
    made: Sequence[GlobetrotterEntry],
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
    return store_page(base.run.storage, Storage(base.storage), write_comparison(data), record(data))


def store_page(folder: str, storage: Storage, page: str, numbers: Mapping[str, Any]) -> str:
    """Write the page and its numbers into the folder of the runs; returns where the page lies."""
    storage.write(join(folder, NUMBERS), (json.dumps(numbers, indent=1, allow_nan=False) + "\n").encode())
    storage.write(join(folder, PAGE), page.encode())
    return join(folder, PAGE)
