"""What a grounded run shows beside its scores: neighbours of sentences and of captions, and a map of scenes."""

import functools
import io
from collections.abc import Mapping

from PIL import Image

from raysys.data.images import ImagePreprocessor
from raysys.evaluation.concreteness import AbstractQuery, abstract_queries, read_ratings
from raysys.evaluation.grounded_page.examples import FILE, Examples
from raysys.evaluation.neighbours import choose_captions, nearest_sentences, picture_neighbours
from raysys.evaluation.scenes import choose_scenes, scene_map
from raysys.evaluation.senteval.tasks import find_tasks, missing_files, read_task, task_named, tasks_folder
from raysys.runs.grounded.pictures import Pictures
from raysys.runs.run import SavedRun
from raysys.systems.encoder import Encoder

__all__ = ["FILE", "examples_of", "ratings_of"]

_CAPTIONS, _NEIGHBOURS, _QUERIES = 4, 6, 8
_SHOWN_SIZE = 128  # pixels


def examples_of(run: SavedRun, encoder: Encoder, splits: Mapping[str, Pictures]) -> Examples:
    """Examples in the space in which the encoder's sentences are compared, the same for all runs with these test splits.

    Args:
        run: whose settings say where sentences with abstract words and ratings lie.
        encoder: of the run.
        splits: test splits; at least one. The first is that whose pictures are shown.
    """
    first = next(iter(splits.values()))
    searched = list(dict.fromkeys(text for split in splits.values() for text in split.texts))
    vectors = encoder.encode_texts(first.texts)
    chosen = choose_captions(first.image_of, _CAPTIONS)
    show = functools.partial(_thumbnail, run, first)
    of_scenes = next((rows for split in splits.values() if (rows := _scene_rows(split))), None)
    return Examples(
        step=encoder.info["step"],
        space=encoder.spaces[-1],
        searched=f"{len(searched):,} captions of {', '.join(splits)}",
        queries=nearest_sentences(encoder.encode_texts, _queries(run), searched, _NEIGHBOURS // 2),
        pictures=[picture_neighbours(vectors, first.texts, first.image_of, first.vectors, row, _NEIGHBOURS, show) for row in chosen],
        scenes=scene_map(encoder.encode_texts(of_scenes[0]), *of_scenes) if of_scenes else None,
    )


def _scene_rows(split: Pictures) -> tuple[list[str], list[str]] | None:
    """Sentences and their scenes; None where the split has too few."""
    rows = choose_scenes(split.texts, split.scenes)
    return ([split.texts[row] for row in rows], [str(split.scenes[row]) for row in rows]) if rows else None


def ratings_of(run: SavedRun) -> dict[str, float]:
    """Ratings of concreteness in the run's language; none where the settings name no folder. Raises UserError where it has none."""
    settings, data = run.settings.evaluation, run.settings.data
    return read_ratings(data.locate(settings.concreteness), data.language, run.folder.storage) if settings.concreteness else {}


def _queries(run: SavedRun) -> list[AbstractQuery]:
    """Sentences with abstract words, from the tasks of single sentences."""
    settings, storage, ratings = run.settings.evaluation, run.folder.storage, ratings_of(run)
    if not (settings.senteval and ratings):
        return []
    folder = tasks_folder(run.settings.data.locate(settings.senteval), storage)
    sentences: list[str] = []
    for task in map(task_named, find_tasks(folder, storage)):
        if task.protocol == "nested" and not missing_files(task, folder, storage):
            parts, _ = read_task(task, folder, storage)
            sentences += [text for part in parts.values() for text in part.first]
    return abstract_queries(sentences, ratings, _QUERIES)


def _thumbnail(run: SavedRun, pictures: Pictures, picture: int) -> bytes:
    """A small PNG of a picture of a split."""
    (raw,) = pictures.samples.read(pictures.numbers[[picture]])
    preprocess = ImagePreprocessor(run.settings.data.image.model_copy(update={"size": _SHOWN_SIZE}))
    buffer = io.BytesIO()
    Image.fromarray(preprocess(pictures.samples.picture(raw)[1]).permute(1, 2, 0).numpy()).save(buffer, "PNG")
    return buffer.getvalue()
