"""Five cross-lingual tasks about pictures of the drawn world, in the files of the published tasks and through their readers."""

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from raysys.errors import UserError
from raysys.shards.parts import Part, Skipped
from raysys.shards.sample import Sample

from ..iglue import recipe as iglue
from ..multi30k import recipe as multi30k
from ..shapes.grammar import LANGUAGES as GRAMMARS
from . import entailment, questions, retrieval, translation, two_images

LANGUAGES: tuple[str, ...] = ("en", "de", "fr", "ja", "zh-Hans", "id", "cs")
AVAILABLE: tuple[str, ...] = tuple(tag for tag, grammar in GRAMMARS.items() if grammar.more)
COUNT = 4000
LEAST, MOST = 80, 20_000
TASKS = (entailment, questions, two_images, retrieval, translation)


def samples(cache: Path, *, seed: int, languages: Sequence[str] = LANGUAGES, count: int | None = None) -> Iterator[Sample]:
    """Make every task with `count` records to train on (default 4 000), a tenth as many for validation, a fifth for each test.

    The published files are written into a folder of `cache`, and read from there as downloaded ones would be. Yields the splits of
    the tasks, English for training and all `languages` for tests, then `images`: all pictures by key. The same seed, languages and
    count give the same bytes.

    Raises:
        UserError: a count that is too small, or too large for there to be enough scenes.
    """
    count = COUNT if count is None else count
    if not LEAST <= count <= MOST:
        raise UserError(f"--samples: shapes_tasks can be made with {LEAST} to {MOST} records to train on, not {count}")
    sizes = {"train": count, "validation": count // 10, "test": count // 5}
    spoken = tuple(languages)
    tasks = [task.publish(sizes, spoken, seed) for task in TASKS]
    source = Path(cache, "shapes_tasks", f"{count}-{seed}-{'-'.join(spoken)}")
    shutil.rmtree(source, ignore_errors=True)
    for task in tasks:
        for path, text in task.files.items():
            (source / path).parent.mkdir(parents=True, exist_ok=True)
            (source / path).write_text(text, encoding="utf-8")
    known = tuple(dict.fromkeys(("en", *spoken)))
    yield from _read(iglue.parts(str(source), languages=known, shards=1, seed=seed))
    translated = [tag for tag in translation.AVAILABLE if tag in known]
    if len(translated) > 1:
        for sample in _read(multi30k.parts(str(source), languages=translated, shards=1, seed=seed)):
            yield replace(sample, split=f"mmt-{sample.split}")
    for task in tasks:
        for picture in task.pictures:
            yield picture.sample(seed)


def _read(splits: dict[str, list[Part]]) -> Iterator[Sample]:
    for parts in splits.values():
        for part in parts:
            for item in part():
                assert not isinstance(item, Skipped), item
                yield item
