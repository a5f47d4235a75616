"""Turn public data into shards: `python jobs/prepare.py emoji --out data/emoji`.

Runs the recipe `datasets/<name>/recipe.py` and writes `<out>/<split>/NNNNNN.tar` with a manifest beside them for every split. A
recipe has either `samples`, for what it fetches or makes up by itself, or `parts`, for files that a person downloaded (`--source`);
parts are written in parallel on Ray, and an interrupted preparation goes on when the same command is given again. What is no set of
samples (dictionaries) has `files`, which are written into `<out>` as they are.
"""

import importlib
import itertools
import logging
import os
import sys
import types
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import pydantic
import tyro

from raysys.errors import RunFailed, UserError, run_program
from raysys.settings import Settings, from_command_line
from raysys.shards.languages import normalise_language
from raysys.shards.manifest import Manifest, find_datasets
from raysys.shards.parts import Counts, write_parts
from raysys.shards.tasks import RECIPES as RECIPES_PACKAGE
from raysys.shards.writer import write_shards
from raysys.storage import Storage, StorageSettings, is_remote, join

RECIPES = Path(__file__).resolve().parents[1] / "datasets"


class PrepareSettings(Settings):
    """What to prepare and where to put it."""

    dataset: Annotated[str, tyro.conf.Positional]
    """The data set: a folder of `datasets/`, such as emoji, tuxpaint, shapes, coco or dictionaries."""
    out: str
    """Folder or s3://… prefix to write into; a folder per split is made beneath it."""
    source: str = ""
    """Folder of the files you downloaded, for data sets made from such files (their card in `datasets/` says which)."""
    shards: Annotated[int, pydantic.Field(ge=1)] = 4
    """Tars per split."""
    seed: int = 0
    """Seed of the splits and of who speaks which language."""
    languages: tuple[str, ...] = ()
    """Languages, as BCP-47 tags; the recipe's default languages if empty."""
    caption_columns: tuple[str, ...] = ()
    """Columns that captions are taken from, in order of preference, for data sets with several (wit); the recipe's choice if empty."""
    prose: bool = False
    """Whether text files hold running text, which is divided into sentences, not a sentence a line (ordered_text)."""
    multilingual: bool = False
    """Whether pictures to train and validate on have texts in all languages instead of in one: translations, where there are some
    (tuxpaint), else other words for the same thing (emoji)."""
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
    if RECIPES_PACKAGE not in sys.modules:
        package = types.ModuleType(RECIPES_PACKAGE)
        package.__path__ = [str(RECIPES)]
        sys.modules[RECIPES_PACKAGE] = package
    try:
        return importlib.import_module(f"{RECIPES_PACKAGE}.{name}.recipe")
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


def check_prose(settings: PrepareSettings, recipe: types.ModuleType) -> None:
    """Raise UserError for `prose` where the recipe divides no text into sentences."""
    if settings.prose and not getattr(recipe, "TAKES_PROSE", False):
        raise UserError(f"--prose: the data set {settings.dataset!r} is not made from running text")


def check_multilingual(settings: PrepareSettings, recipe: types.ModuleType) -> None:
    """Raise UserError for `multilingual` where the recipe does not deal one language to each picture."""
    if settings.multilingual and not getattr(recipe, "TAKES_MULTILINGUAL", False):
        raise UserError(f"--multilingual: the pictures of the data set {settings.dataset!r} have the languages that they have")


def check_columns(settings: PrepareSettings, recipe: types.ModuleType) -> None:
    """Raise UserError for a column of captions that the data set does not have."""
    known = getattr(recipe, "CAPTION_COLUMNS", ())
    for column in settings.caption_columns:
        if column not in known:
            has = f"it has {' '.join(known)}" if known else "its captions lie in one place"
            raise UserError(f"--caption-columns: the data set {settings.dataset!r} has no column {column!r} of captions; {has}")


def prepare(settings: PrepareSettings) -> dict[str, Manifest]:
    """Write the data set; split → manifest of every split that has samples (none of dictionaries). Prints what was written.

    Raises:
        UserError: a setting does not fit the data set, or what the recipe reads is missing or cannot be fetched.
        RunFailed: no sample could be made of the files in `source`.
    """
    recipe = load_recipe(settings.dataset)
    languages = choose_languages(settings.languages, recipe, settings.dataset)
    check_columns(settings, recipe)
    check_prose(settings, recipe)
    check_multilingual(settings, recipe)
    storage = Storage(settings.storage)
    if hasattr(recipe, "files"):
        _write_plain(settings, recipe, languages, storage)
        return {}
    from_files = hasattr(recipe, "parts")
    manifests = (_write_files if from_files else _write_samples)(settings, recipe, languages, storage)
    for folder in find_datasets(storage, settings.out):
        if folder not in {manifest.folder for manifest in manifests.values()}:
            print(f"note: {folder} was there before and is no part of this data set")
    print(f"look at it: python jobs/shards.py inspect {settings.out}")
    return manifests


def _write_samples(
    settings: PrepareSettings, recipe: types.ModuleType, languages: tuple[str, ...], storage: Storage
) -> dict[str, Manifest]:
    """Of a recipe that yields samples, split after split."""
    _refuse_source(settings)
    manifests: dict[str, Manifest] = {}
    more: dict[str, Any] = {"multilingual": True} if settings.multilingual else {}
    samples = recipe.samples(_cache(settings), seed=settings.seed, languages=languages, count=settings.samples, **more)
    for split, its_samples in itertools.groupby(samples, key=lambda sample: sample.split):
        assert split not in manifests, f"the recipe of {settings.dataset} does not yield split after split: {split} comes twice"
        folder = join(settings.out, split)
        write_shards(its_samples, folder, settings.shards, storage)
        manifests[split] = _index(folder, storage)
    return manifests


def _write_plain(settings: PrepareSettings, recipe: types.ModuleType, languages: tuple[str, ...], storage: Storage) -> None:
    """Of a recipe that yields files: their names and contents."""
    _refuse_source(settings)
    if settings.samples is not None:
        raise UserError(f"--samples: the size of the data set {settings.dataset!r} is fixed by its source")
    for name, content in recipe.files(_cache(settings), languages=languages, seed=settings.seed):
        path = join(settings.out, name)
        storage.write(path, content)
        print(f"{path}: {len(content.splitlines())} lines", flush=True)


def _refuse_source(settings: PrepareSettings) -> None:
    if settings.source:
        raise UserError(f"--source: the data set {settings.dataset!r} gets by itself what it is made from")


def _cache(settings: PrepareSettings) -> Path:
    return settings.cache or (Path("data") if is_remote(settings.out) else Path(settings.out.removeprefix("file://")).parent) / ".cache"


def _write_files(settings: PrepareSettings, recipe: types.ModuleType, languages: tuple[str, ...], storage: Storage) -> dict[str, Manifest]:
    """Of a recipe that divides downloaded files into parts."""
    if not settings.source:
        raise UserError(
            f"the data set {settings.dataset!r} is made from files you download; name their folder with --source. {recipe.SOURCE}"
        )
    if settings.samples is not None:
        raise UserError(f"--samples: the size of the data set {settings.dataset!r} is that of its files")
    more: dict[str, Any] = {"caption_columns": settings.caption_columns} if settings.caption_columns else {}
    more |= {"prose": True} if settings.prose else {}
    source = settings.source if "://" in settings.source else os.path.abspath(os.path.expanduser(settings.source))
    if storage.endpoint:
        os.environ["AWS_ENDPOINT_URL_S3"] = storage.endpoint  # recipes open their source by themselves, in Ray's workers too
    start_ray()
    splits = recipe.parts(source, languages=languages, shards=settings.shards, seed=settings.seed, **more)
    manifests: dict[str, Manifest] = {}
    for split, parts in splits.items():
        folder = join(settings.out, split)
        try:
            counts = write_parts(parts, folder, storage)
        except KeyboardInterrupt:
            print("stopped; finished parts are kept: the same command goes on from there")
            raise
        for line in _outcome(folder, counts):
            print(line, flush=True)
        if counts.written:
            manifests[split] = _index(folder, storage)
    if not manifests:
        raise RunFailed(f"nothing was written into {settings.out}: not one record in {settings.source} gave a sample. {recipe.SOURCE}")
    return manifests


def start_ray() -> None:
    """Connect to the cluster given by RAY_ADDRESS, or start a Ray of our own with a worker per CPU; if none runs yet."""
    import ray  # takes a second, which only those who need it pay

    if ray.is_initialized():
        return
    if os.environ.get("RAY_ADDRESS"):
        ray.init(log_to_driver=False, logging_level=logging.ERROR)
        return
    # This Ray is ours alone, on the loopback interface, and ends with the job.
    os.environ.setdefault("RAY_AUTH_MODE", "disabled")
    ray.init("local", num_cpus=os.cpu_count(), include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)


def _index(folder: str, storage: Storage) -> Manifest:
    manifest = Manifest.build(storage, folder)
    manifest.save(storage)
    print(_counts(manifest), flush=True)
    return manifest


def _outcome(folder: str, counts: Counts) -> list[str]:
    skipped = counts.skipped.most_common()
    return [
        f"{folder}: {counts.read} records read, {counts.written} samples written, {counts.read - counts.written} records skipped",
        *(f"  {count} × {cause}; the first: {counts.examples[cause]}" for cause, count in skipped),
    ]


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
