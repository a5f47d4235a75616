"""All captions of a data set, and of a sample."""

from collections.abc import Iterator

import numpy as np

from raysys.data.samples import Samples
from raysys.shards.sample import Captions, SampleError, captions_by_language

PARAPHRASES = "paraphrases"
"""Free field of a sample's json, ``{"paraphrases": {"en": ["…"]}}``: what else is said of the picture, in languages as in `captions`."""


def visually_equivalent(text: Captions, language: str, where: str = "") -> list[str]:
    """Everything that a sample says of its picture in `language`: its captions, then its paraphrases, each string once.

    Args:
        text: of the sample.
        language: BCP-47 tag.
        where: how errors call the sample.

    Raises:
        SampleError: paraphrases that are none, or there is nothing in this language.
    """
    more = text.extra.get(PARAPHRASES, {})
    if not isinstance(more, dict):
        raise SampleError(where, f"its {PARAPHRASES} are not lists of sentences by language", "json")
    others = captions_by_language(more, where, "json", "drop") if more else {}
    found = list(dict.fromkeys([*text.captions.get(language, ()), *others.get(language, ())]))
    if not found:
        raise SampleError(where, f"it has no caption in {language}")
    return found


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
