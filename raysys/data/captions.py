"""All captions of a data set."""

from collections.abc import Iterator

import numpy as np

from raysys.data.samples import Samples
from raysys.shards.sample import SampleError


def all_captions(samples: Samples, most: int | None = None, chunk: int = 1024) -> Iterator[tuple[str, str]]:
    """(language, caption) of every caption of all samples in the languages in use, in order.

    Args:
        samples: whose captions. Samples that cannot be used are passed over, where the policy allows it: training names them.
        most: samples to read at most, evenly spaced; None: all.
        chunk: samples that are read at a time.

    Raises:
        BadDataError: a bad sample, where the policy is `raise`.
    """
    total = len(samples)
    chosen = np.arange(total) if most is None or most >= total else np.arange(most) * total // most
    for start in range(0, len(chosen), chunk):
        ids = chosen[start : start + chunk]
        for number, sample in zip(ids.tolist(), samples.try_read(ids), strict=True):
            try:
                if isinstance(sample, SampleError):
                    raise sample
                captions = samples.captions(sample).captions
            except SampleError as error:
                samples.policy.accept(samples.describe_bad(number, error))
                continue
            for language in samples.languages:
                yield from ((language, caption) for caption in captions.get(language, ()))
