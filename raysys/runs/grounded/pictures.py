"""Test splits of captioned pictures in memory."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from raysys.data.samples import Samples
from raysys.runs.evaluate import tell_bad
from raysys.runs.grounded.build import picture_features, picture_texts
from raysys.runs.run import Log, SavedRun
from raysys.shards.sample import SampleError


@dataclass(frozen=True)
class Pictures:
    """A test split."""

    samples: Samples
    texts: list[str]
    """All captions, M."""
    image_of: np.ndarray
    """int64 [M], the picture of each caption as a row of `vectors`."""
    vectors: np.ndarray
    """float32 [K, D], of the frozen image network."""
    numbers: np.ndarray
    """int64 [K], the sample of each picture."""
    scenes: list[str | None]
    """Of each caption, the kind of thing that its picture shows, as far as the data set says so."""


def load_pictures(run: SavedRun, folder: str, log: Log = print) -> Pictures:
    """A test split: all its captions in the run's language, and the vectors of its pictures; bad samples are named in the run's ledger.

    Raises:
        BadDataError: a bad sample, where the policy is `raise`; otherwise more of them than it allows.
    """
    data = run.settings.data
    samples = data.load([folder], (data.language,), run.folder.storage, lambda line: None)
    features = picture_features(run, samples, log)
    bad = [samples.describe_bad(number, SampleError("", reason, cause="image")) for number, reason in features.bad.items()]
    everything = list(picture_texts(samples, data.language, bad))
    said = [(number, texts, extra) for number, texts, extra in everything if number not in features.bad]
    tell_bad(samples, bad, run.folder, log)
    numbers = np.array([number for number, _, _ in said], dtype=np.int64)
    return Pictures(
        samples,
        [text for _, texts, _ in said for text in texts],
        np.repeat(np.arange(len(said)), [len(texts) for _, texts, _ in said]),
        features.read(numbers)[:, 0].astype(np.float32),
        numbers,
        [_scene(extra) for _, texts, extra in said for _ in texts],
    )


def _scene(extra: dict[str, Any]) -> str | None:
    """The first part of a category (`animals/birds`); otherwise the group of pictures of one thing."""
    category = extra.get("category")
    if isinstance(category, str) and category:
        return category.partition("/")[0]
    group = extra.get("group")
    return group if isinstance(group, str) else None
