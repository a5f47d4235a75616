"""The page of RC³, from the folders of its runs."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from raysys.errors import UserError
from raysys.evaluation.figures import Curve
from raysys.evaluation.rc3_page.data import Link, Rc3Comparison, averaged, flattened
from raysys.evaluation.rc3_page.page import write_rc3_page
from raysys.evaluation.rc3_page.paper import MMT, ROWS, TASKS
from raysys.evaluation.rc3_page.record import record
from raysys.evaluation.side_by_side.row import Row
from raysys.runs.compare.entries import Entry
from raysys.runs.compare.gather import Gathered, gather_runs, length_of, numbered
from raysys.runs.compare.globetrotter_page import store_page
from raysys.runs.compare.rc3_tasks import task_of
from raysys.runs.finetune.settings import FinetuneSettings
from raysys.runs.rc3.settings import Rc3DataSettings, Rc3Settings
from raysys.runs.report import REPORT
from raysys.runs.run import Log
from raysys.shards.language_pairs import LanguagePairs, count_pairs
from raysys.shards.manifest import load_or_build
from raysys.storage import Storage
from raysys.systems.rc3.names import RC3_TITLES

_POINTS = 200
"""Of a curve, at most about so many."""


@dataclass(frozen=True)
class Tuned(Entry[Any]):
    """A run that fine-tunes a network; `system` says row and task for people."""

    row: str = ""
    """Row of the paper's tables."""
    part: str = ""
    """What it is fine-tuned on: a task, or of mmt one with its target language."""

    @property
    def stands_on(self) -> Entry[Rc3Settings]:
        """The run that pre-trains its network."""
        assert self.base is not None
        return self.base


Made = Sequence[Entry[Rc3Settings] | Tuned]


def gather(made: Made, steps: Mapping[str, int | None], title: str) -> Rc3Comparison:
    """What the page is made from, but for what is read from the data.

    Args:
        made: the runs that belong to the comparison, finished or not.
        steps: name of a run → its steps, as :func:`raysys.runs.compare.entries.progress` takes them.
        title: heading.
    """
    seeds = sorted({entry.seed for entry in made})
    networks = [entry for entry in made if not isinstance(entry, Tuned)]
    tuned = [entry for entry in made if isinstance(entry, Tuned)]
    # Tests of different tasks have the same names, those of languages.
    parts = {part: _gathered([entry for entry in tuned if entry.part == part], steps) for part in dict.fromkeys(e.part for e in tuned)}
    trained = _gathered(networks, steps)
    rows: dict[str, dict[int, dict[str, Any]]] = {name: {} for name in ROWS}
    for entry in tuned:
        results = parts[entry.part].results[entry.system].get(entry.seed)
        if results is not None:
            _add(rows[entry.row].setdefault(entry.seed, {}), flattened(task_of(entry.part), named_tests(entry.settings, results)))
    done = [entry for entry in tuned if entry.seed in parts[entry.part].results[entry.system]]
    settings = networks[0].settings
    network = settings.model.network
    return averaged(
        Rc3Comparison(
            title=title,
            summary=f"{numbered(len({entry.system for entry in networks}), 'network')}, each pre-trained with "
            f"{numbered(len(seeds), 'seed')} on the same data, in {length_of(settings.training.steps, settings)}, and fine-tuned in "
            f"English on {', '.join(dict.fromkeys(TASKS[task_of(part)] for part in parts))}.",
            facts=[
                ("Seeds", ", ".join(map(str, seeds))),
                *((label, ", ".join(getattr(settings.data, name))) for label, name in _STREAMS.items() if getattr(settings.data, name)),
                ("Network", f"{network.layers} + {network.decoder_layers} layers of size {network.size}"),
                ("Batches", "of every stream that a system reads as many samples a step as any other that reads it"),
                ("Learning rate", f"{settings.training.learning_rate:g}"),
                ("Begins as", network.pretrained or "random weights"),
            ],
            rows=[Row(name, ROWS[name].label, found, len(seeds)) for name, found in rows.items()],
            missing=_missing([trained, *parts.values()]),
            curves=curves(networks),
            links=[
                *(_link(RC3_TITLES[entry.system], "", entry) for entry in networks if entry.seed in trained.results[entry.system]),
                *(_link(ROWS[entry.row].label, _part_title(entry.part), entry) for entry in done),
            ],
        )
    )


_STREAMS = {"Strictly aligned": "strict", "Weakly aligned": "weak", "Parallel text": "parallel"}


def _gathered(entries: Made, steps: Mapping[str, int | None]) -> Gathered:
    return gather_runs(entries, lambda entry: steps[entry.name], "")


def _add(into: dict[str, Any], results: Mapping[str, Any]) -> None:
    """Of mmt, several runs have tests of one task."""
    for task, result in results.items():
        before = into.get(task, {})
        into[task] = {name: {**before.get(name, {}), **value} for name, value in result.items()}


def named_tests(settings: FinetuneSettings, results: Mapping[str, Any]) -> dict[str, Any]:
    """Test → scores; tests of translation are called by their set and languages, such as `2016 en-de`."""
    if settings.system != MMT:
        return dict(results)

    def name(test: str) -> str:
        source, target = settings.data.pair_of(test)
        return f"{test.rpartition('/')[0] or test} {source}-{target}"

    return {name(test): result for test, result in results.items()}


def _missing(found: Sequence[Gathered]) -> list[tuple[str, str]]:
    """(run, why), many runs of one system with the same fault in one line."""
    lines = [(*name.rsplit(", seed ", 1), why) for one in found for name, why in one.missing]
    grouped: dict[tuple[str, str], list[str]] = {}
    for system, seed, why in lines:
        grouped.setdefault((system, why), []).append(seed)
    return [(f"{system}, seed {', '.join(seeds)}", why) for (system, why), seeds in grouped.items()]


def _part_title(part: str) -> str:
    task, _, more = part.partition("-")
    return f"{TASKS[task]} {more}".strip()


def _link(row: str, task: str, entry: Entry[Any]) -> Link:
    return Link(row, task, entry.seed, f"{entry.settings.run.name}/{REPORT}")


def curves(networks: Sequence[Entry[Rc3Settings]]) -> dict[str, dict[str, Curve]]:
    """Loss → system as it is called → its steps; of each system the run of the first seed that has begun."""
    found: dict[str, dict[str, Curve]] = {}
    seen: set[str] = set()
    for entry in networks:
        if entry.system in seen or not (lines := entry.folder.metrics()):
            continue
        seen.add(entry.system)
        for name in dict.fromkeys(name for line in lines for name in line if name.startswith("train/loss")):
            points = [(int(line["step"]), float(line[name])) for line in lines if line.get(name) is not None]
            # The last one is what the legend says.
            thinned = [*itertools.islice(points[:-1], 0, None, max(1, len(points) // _POINTS)), *points[-1:]]
            if thinned:
                title, loss = RC3_TITLES[entry.system], name.removeprefix("train/").removeprefix("loss_")
                found.setdefault(loss, {})[title] = Curve(title, [step for step, _ in thinned], [value for _, value in thinned])
    return found


def weak_pairs(data: Rc3DataSettings, storage: Storage, log: Log) -> LanguagePairs | None:
    """Table 5 of the weakly aligned folders together; None, and a line why, where they are not here."""
    if not data.weak:
        return None
    try:
        manifests = [load_or_build(storage, data.locate(name), lambda line: None) for name in data.weak]
    except UserError as error:
        log(f"the page has no Table 5: {error}")
        return None
    tags = list(data.languages) or list(dict.fromkeys(tag for manifest in manifests for tag in manifest.languages()))
    found = [count_pairs(manifest, tags) for manifest in manifests]
    return LanguagePairs(
        ", ".join(data.weak),
        sum(one.samples for one in found),
        sum(one.images for one in found),
        tuple(tags),
        sum((one.counts for one in found[1:]), start=found[0].counts),
    )


def write_page(made: Made, steps: Mapping[str, int | None], title: str, commands: Sequence[tuple[str, str]], log: Log = print) -> str:
    """Write ``comparison.html`` and ``comparison.json`` beside the runs, from those that are finished; returns where the page lies.

    Args:
        made, steps, title: as :func:`gather` takes them.
        commands: (what it does, command line) to show.
        log: takes a line for people.
    """
    base: Rc3Settings = made[0].settings
    weak = next((entry.settings.data for entry in made if not isinstance(entry, Tuned) and entry.settings.data.weak), base.data)
    storage = Storage(base.storage)
    data = replace(gather(made, steps, title), commands=commands, weak=weak_pairs(weak, storage, log))
    return store_page(base.run.storage, storage, write_rc3_page(data), record(data))
