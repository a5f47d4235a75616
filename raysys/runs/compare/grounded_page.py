"""The page of the grounded systems, from the folders of their runs."""

import dataclasses
from collections.abc import Mapping, Sequence

from raysys.evaluation.grounded_page.data import GroundedComparison, averaged, in_text_space
from raysys.evaluation.grounded_page.examples import FILE, Examples
from raysys.evaluation.grounded_page.page import write_grounded_page
from raysys.evaluation.grounded_page.paper import TABLE_1, TABLE_3, TEXT
from raysys.evaluation.grounded_page.record import record
from raysys.evaluation.grounded_page.samples import TEXTUAL, THIS
from raysys.evaluation.side_by_side.row import Row
from raysys.runs.compare.entries import Entry, finished_scores
from raysys.runs.compare.gather import further_rows, gather_runs, length_of, numbered
from raysys.runs.compare.globetrotter_page import store_page
from raysys.runs.grounded.settings import GroundedSettings
from raysys.runs.run import Log, SavedRun, load_run
from raysys.storage import Storage
from raysys.systems.grounded.names import GROUNDED_TITLES, parts_of

_LABELS = {**GROUNDED_TITLES, "cm": "CM (vis.)", f"cm{TEXT}": "CM (text)"}
"""What rows are called: CM has two in Table 1, one for each space."""
GroundedEntry = Entry[GroundedSettings]


def gather(made: Sequence[GroundedEntry], steps: Mapping[str, int | None], also: Sequence[SavedRun], title: str) -> GroundedComparison:
    """What the page is made from, but for examples.

    Args:
        made: the runs that belong to the comparison, finished or not.
        steps: name of a run → its steps, as :func:`raysys.runs.compare.entries.progress` takes them.
        also: further runs. Those called <name>-seed-<number> are the seeds of one row.
        title: heading.
    """
    seeds = sorted({entry.seed for entry in made})
    found = gather_runs(made, lambda entry: steps[entry.name], TEXTUAL)
    beyond = further_rows(found, also, next((entry for entry in made if entry.system == THIS), made[0]))
    if "cm" in found.results:
        found.results[f"cm{TEXT}"] = {seed: in_text_space(results) for seed, results in found.results["cm"].items()}
    settings = made[0].settings
    text = settings.model.text
    texts, captions = (list(dict.fromkeys(name for entry in made for name in of(entry))) for of in (_texts, _captions))
    rows = [Row(name, _LABELS[name], found.results[name], len(seeds)) for name in {**TABLE_1, **TABLE_3} if name in found.results]
    # One average for all rows: over what every run was tested on.
    complete = averaged([*rows, *beyond])
    return GroundedComparison(
        title=title,
        summary=f"{numbered(len({entry.system for entry in made}), 'system')}, each trained with {numbered(len(seeds), 'seed')} on "
        f"the same data, in {length_of(settings.training.steps, settings)}." + _beginning(made),
        facts=[
            ("Seeds", ", ".join(map(str, seeds))),
            ("Language", settings.data.language),
            ("Sentences", ", ".join(texts)),
            ("Pictures", ", ".join(captions)),
            ("Test data", ", ".join(found.data)),
            ("Sizes", f"words {text.word_size}, sentences {text.size}, grounded space {settings.model.space.size}"),
            ("Weights", ", ".join(f"{name} {max(weights):g}" for name, weights in _weights(made).items() if any(weights))),
            ("Margins", ", ".join(f"{name} {margin:g}" for name, margin in settings.objective.margins)),
            ("Learning rate", f"{settings.training.learning_rate:g}"),
        ],
        rows=complete[: len(rows)],
        references=[Row(name, name, results) for name, results in found.beside.items()],
        also=complete[len(rows) :],
        missing=found.missing,
    )


def _weights(made: Sequence[GroundedEntry]) -> dict[str, list[float]]:
    """Loss → its weight in every run; 0 in those that have it not."""
    every = [entry.settings.objective.weights.model_dump() for entry in made]
    return {name: [weights[name] for weights in every] for name in every[0]}


def _beginning(made: Sequence[GroundedEntry]) -> str:
    """What the encoders begin as, in a sentence."""
    if not any(entry.settings.model.base for entry in made if not parts_of(entry.system)["base"]):
        return ""
    return " All encoders but that of T begin as T's after its own training, so that they have had its steps besides."


def _texts(entry: GroundedEntry) -> Sequence[str]:
    return entry.settings.data.text


def _captions(entry: GroundedEntry) -> Sequence[str]:
    return entry.settings.data.captions


def with_examples(data: GroundedComparison, made: Sequence[GroundedEntry], log: Log = print) -> GroundedComparison:
    """The comparison with the examples of the textual and the grounded run of one seed: the first that has both, or else any."""
    found: dict[int, dict[str, Examples]] = {}
    for entry in made:
        row = data.row(entry.system)
        scored = entry.system in (TEXTUAL, THIS) and row is not None and entry.seed in row.seeds
        if scored and (examples := _examples(entry, log)) is not None:
            found.setdefault(entry.seed, {})[entry.system] = examples
    if not found:
        return data
    seed = max(found, key=lambda one: (len(found[one]), -one))
    return dataclasses.replace(data, examples=found[seed], examples_seed=seed)


def _examples(entry: GroundedEntry, log: Log) -> Examples | None:
    """Of a finished run; None, and a line why, where it has none of the checkpoint that was scored."""
    run, place = entry.saved(), entry.folder.path(FILE)
    if not run.folder.storage.exists(place):
        return None
    try:
        examples = Examples.loads(run.folder.read_text(FILE))
    except ValueError as error:
        log(f"no examples of {entry.name}: {place}: {error}")
        return None
    scores = finished_scores(run, {})
    if scores is None or scores["step"] != examples.step:
        log(f"no examples of {entry.name}: {place} is of step {examples.step}, which is not the one that was scored")
        return None
    return examples


def write_page(
    made: Sequence[GroundedEntry],
    steps: Mapping[str, int | None],
    also: Sequence[str],
    title: str,
    commands: Sequence[tuple[str, str]],
    log: Log = print,
) -> str:
    """Write ``comparison.html`` and ``comparison.json`` beside the runs, from those that are finished; returns where the page lies.

    Args:
        made, steps, title: as :func:`gather` takes them.
        also: folders of further runs.
        commands: (what it does, command line) to show.
        log: takes a line for people.

    Raises:
        UserError: there is no such run in `also`.
    """
    base = made[0].settings
    data = gather(made, steps, [load_run(one, base.storage) for one in also], title)
    data = dataclasses.replace(with_examples(data, made, log), commands=commands)
    return store_page(base.run.storage, Storage(base.storage), write_grounded_page(data), record(data))
