"""Translations that samples carry beside their captions: what the supervised system is told, and no other."""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from raysys.data.samples import Samples
from raysys.errors import UserError
from raysys.shards.sample import Captions, SampleError, UnknownLanguages, captions_by_language, kind_of


def translations_of(extra: Mapping[str, Any], where: str, unknown_languages: UnknownLanguages = "raise") -> dict[str, list[str]]:
    """The free field ``translations`` of a sample: its caption in other languages, by BCP-47 tag; empty where it has none.

    Raises:
        SampleError: it is there, and is no such thing.
    """
    found = extra.get("translations") or {}
    if not isinstance(found, dict):
        raise SampleError(where, f"its 'translations' is {kind_of(found)} where an object of languages was expected", "json", "text")
    return captions_by_language(found, where, "json", unknown_languages)


def concept_of(text: Captions, translations: Mapping[str, Sequence[str]]) -> int:
    """A number for what a sample says: of its free field ``concept``, or else of its first texts in all languages."""
    firsts = sorted((language, texts[0]) for language, texts in {**translations, **text.captions}.items())
    named = text.extra.get("concept")
    described = repr(firsts if named is None else named)
    return int.from_bytes(hashlib.blake2b(described.encode("utf-8", "surrogatepass"), digest_size=8).digest(), signed=True)


def check_translations(samples: Samples, looked_at: int = 256) -> None:
    """Raise UserError where none of a number of samples, evenly spaced, has a translation."""
    ids = np.unique(np.linspace(0, len(samples) - 1, looked_at, dtype=np.int64))
    for sample in samples.try_read(ids):
        if isinstance(sample, SampleError):
            continue  # training meets it, and says so
        text = samples.captions(sample)
        found = translations_of(text.extra, sample.where, samples.layout.unknown_languages)
        if any(language not in text.captions for language in found):
            return
    folders = ", ".join(manifest.folder for manifest in samples.manifests)
    raise UserError(
        f"system supervised: {folders} has no translations to learn from: samples need a field 'translations' in their .json, "
        'such as {"translations": {"fr": ["une pomme rouge"]}}; prepare the data anew where it was made before there was one'
    )
