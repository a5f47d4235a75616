"""A small data set of real shards, for tests that read as training does."""

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from transformers import PreTrainedTokenizerFast

from raysys.data.samples import Samples
from raysys.data.tokenizer import train_tokenizer
from raysys.shards.sample import Sample
from raysys.shards.writer import write_shards
from raysys.storage import Storage
from tests.shards.tars import picture

WORDS = {"de": "ein Bild von {}", "en": "a picture of {}", "ru": "картинка {}"}
MAX_TOKENS = 12


def small_samples(folder: Path, count: int) -> Samples:
    """`count` pictures of 32 by 32 in two shards, with one caption in one of three languages each."""

    def samples() -> Iterator[Sample]:
        for number in range(count):
            language = sorted(WORDS)[number % 3]
            captions = {language: [WORDS[language].format(f"{number} and {number * number}")]}
            yield Sample("train", f"sample-{number:03d}", picture(number, (32, 32)), "png", {"captions": captions, "alignment": "strict"})

    write_shards(samples(), str(folder), 2, Storage())
    return Samples.load([str(folder)], (), Storage(), log=lambda line: None)


def small_tokenizer(samples: Samples) -> PreTrainedTokenizerFast:
    """A tokenizer of about 300 pieces, of the samples' captions."""
    texts = [json.loads(sample.members["json"])["captions"] for sample in samples.read(np.arange(len(samples)))]
    return train_tokenizer([caption for captions in texts for listed in captions.values() for caption in listed], 300, MAX_TOKENS)
