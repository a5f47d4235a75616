"""Turn public data into shards: `python jobs/prepare.py emoji --out data/emoji`.

Runs the recipe `datasets/<name>/recipe.py` and writes `<out>/<split>/NNNNNN.tar` with a manifest beside them for every split.
"""

import importlib
import itertools
import sys
import types
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import pydantic
import tyro

from raysys.errors import UserError, run_program
from raysys.settings import Settings, from_command_line
from raysys.shards.languages import normalise_language
from raysys.shards.manifest import Manifest, find_datasets
from raysys.shards.writer import write_shards
from raysys.storage import Storage, StorageSettings, is_remote, join

RECIPES = Path(__file__).resolve().parents[1] / "datasets"
_PACKAGE = "raysys_datasets"


class PrepareSettings(Settings):
    """What to prepare and where to put it."""

    dataset: Annotated[str, tyro.conf.Positional]
    """The data set: a folder of `datasets/`, such as emoji, tuxpaint or shapes."""
    out: str
    """Folder or s3://… prefix to write into; a folder per split is made beneath it."""
    shards: Annotated[int, pydantic.Field(ge=1)] = 4
    """Tars per split."""
    seed: int = 0
    """Seed of the splits and of who speaks which language."""
    languages: tuple[str, ...] = ()
    """Languages, as BCP-47 tags; the recipe's default languages if empty."""
    samples: Annotated[int, pydantic.Field(ge=1)] | None = None
    """Number of samples to make, for data sets that are made up (shapes)."""
    cache: Path | None = None
    """Where fetched archives are kept; `.cache` beside the output folder if not given (`data/.cache` for s3://…)."""
    storage: StorageSettings = StorageSettings()
    """How to reach object storage."""


def load_recipe(name: str) -> types.ModuleType:
    """The module `datasets/<name>/recipe.py`; its relative imports work, beneath the package `raysys_datasets`.

    Raises:
        UserError: there is no such recipe, or a package it needs is not installed.
    """
    known = sorted(path.parent.name for path in RECIPES.glob("*/recipe.py"))
    if name not in known:
        raise UserError(f"there is no data set {name!r} in {RECIPES}; there are {', '.join(known)}")
    if _PACKAGE not in sys.modules:
        package = types.ModuleType(_PACKAGE)
        package.__path__ = [str(RECIPES)]
        sys.modules[_PACKAGE] = package
    try:
        return importlib.import_module(f"{_PACKAGE}.{name}.recipe")
    except ModuleNotFoundError as error:
        raise UserError(f"the data set {name!r} needs the Python package {error.name!r}; try: pip install 'raysys[datasets]'") from None


def choose_languages(wanted: Sequence[str], recipe: types.ModuleType, name: str) -> tuple[str, ...]:
    """The languages `wanted` in their normal spelling, each once; the recipe's default languages if none are wanted.

    Raises:
        UserError: not a language tag, or a language the data set does not have.
    """
    chosen: dict[str, None] = {}
    for tag in wanted:
        try:
            language = normalise_language(tag)
        except ValueError as error:
            raise UserError(f"--languages: {error}") from None
        if language not in recipe.AVAILABLE:
            raise UserError(f"--languages: the data set {name!r} has nothing in {tag!r}; it has {' '.join(recipe.AVAILABLE)}")
        chosen[language] = None
    return tuple(chosen) or tuple(recipe.LANGUAGES)


def prepare(settings: PrepareSettings) -> dict[str, Manifest]:
    """Write the data set; split → manifest. Prints a line of counts for each split."""
    recipe = load_recipe(settings.dataset)
    languages = choose_languages(settings.languages, recipe, settings.dataset)
    storage = Storage(settings.storage)
    cache = settings.cache or (Path("data") if is_remote(settings.out) else Path(settings.out.removeprefix("file://")).parent) / ".cache"

    manifests: dict[str, Manifest] = {}
    samples = recipe.samples(cache, seed=settings.seed, languages=languages, count=settings.samples)
    for split, its_samples in itertools.groupby(samples, key=lambda sample: sample.split):
        assert split not in manifests, f"the recipe of {settings.dataset} does not yield split after split: {split} comes twice"
        folder = join(settings.out, split)
        write_shards(its_samples, folder, settings.shards, storage)
        manifest = Manifest.build(storage, folder)
        manifest.save(storage)
        manifests[split] = manifest
        print(_counts(manifest), flush=True)
    for folder in find_datasets(storage, settings.out):
        if folder not in {manifest.folder for manifest in manifests.values()}:
            print(f"note: {folder} was there before and is no part of this data set")
    print(f"look at it: python jobs/shards.py inspect {settings.out}")
    return manifests


def _counts(manifest: Manifest) -> str:
    languages = Counter(manifest.languages())
    counts = " ".join(f"{language} {count}" for language, count in sorted(languages.items(), key=lambda item: (-item[1], item[0])))
    return f"{manifest.folder}: {len(manifest)} samples in {len(manifest.shards)} shards; {counts}"


def main() -> None:
    """Entry point of the command line."""
    arguments = sys.argv[1:]
    prepare(from_command_line(PrepareSettings, arguments, "prepare.py", "Turn public data into shards with a manifest."))


if __name__ == "__main__":
    run_program(main)
