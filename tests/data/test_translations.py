"""Translations travel beside captions: which are drawn, which captions say the same, and what is told of data without any."""

import io
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from raysys.data.batches import Batch, BatchFinisher, stack_texts
from raysys.data.builder import Share
from raysys.data.images import ImagePreprocessorSettings
from raysys.data.samples import Samples
from raysys.data.translations import check_translations, concept_of, translations_of
from raysys.errors import UserError
from raysys.shards.sample import Captions, Sample, SampleError
from raysys.shards.writer import write_shards
from raysys.storage import Storage
from tests.data.worlds import builder, load

SAID = {
    "apple": {"de": ["ein Apfel", "ein roter Apfel"], "en": ["an apple", "a red apple"], "ru": ["яблоко", "красное яблоко"]},
    "pear": {"de": ["eine Birne"], "en": ["a pear"], "ru": ["груша"]},
}
ROWS = [("apple", "de"), ("apple", "en"), ("pear", "ru"), ("pear", None), ("apple", "ru")]
"""Concept and language of each sample; of the fourth, German without any translation."""


def picture() -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (4, 4)).save(buffer, "PNG")
    return buffer.getvalue()


def sample(number: int, concept: str, language: str | None) -> Sample:
    texts, spoken = SAID[concept], language or "de"
    extra = {"translations": {tag: said for tag, said in texts.items() if tag != spoken}} if language else {}
    return Sample("train", f"s{number}", picture(), "png", {"captions": {spoken: texts[spoken]}, **extra})


@pytest.fixture(scope="module")
def samples(tmp_path_factory) -> Samples:
    folder = str(tmp_path_factory.mktemp("translations"))
    write_shards((sample(number, *row) for number, row in enumerate(ROWS)), folder, 1, Storage())
    return load([folder])


def epoch_of(samples: Samples, epoch: int) -> tuple[Batch, list[str], list[str]]:
    """The batch of all samples, its captions and their translations, as the tokenizer reads them back."""
    build = builder(samples, translations=True)
    (payload,) = build([Share(epoch, epoch, np.arange(len(samples)))])
    batch = BatchFinisher(ImagePreprocessorSettings(size=4), 1, build)(payload)
    texts = [[build.tokenizer.decode(row.tolist()).strip() for row in ids] for ids in (batch.input_ids, batch.translation_ids)]
    return batch, *texts


def test_translations_are_drawn_in_every_other_language_and_say_the_same(samples):
    drawn = set()
    for epoch in range(12):
        batch, captions, translations = epoch_of(samples, epoch)
        for number, (concept, language) in enumerate(ROWS):
            own = SAID[concept][language or "de"]
            others = {text: tag for tag, texts in SAID[concept].items() for text in texts if tag != language}
            place = own.index(captions[number])
            if language is None:
                assert translations[number] == captions[number]
            else:
                assert SAID[concept][others[translations[number]]].index(translations[number]) == place, "of the same caption"
                drawn.add((number, others[translations[number]]))
        assert batch.translated.tolist() == [language is not None for _, language in ROWS]
    assert drawn == {(n, tag) for n, (concept, own) in enumerate(ROWS) for tag in SAID[concept] if own not in (None, tag)}


def test_translations_are_in_the_languages_in_use_where_there_are_any(samples):
    folder = samples.manifests[0].folder
    of_two = {text for epoch in range(9) for text in epoch_of(load([folder], ["de", "en"]), epoch)[2]}
    assert of_two <= {text for texts in SAID.values() for language in ("de", "en") for text in texts[language]}
    alone = {text for epoch in range(9) for text in epoch_of(load([folder], ["ru"]), epoch)[2]}
    assert alone == {text for texts in SAID.values() for language in ("de", "en") for text in texts[language]}


def test_captions_of_one_concept_have_one_number_in_whatever_language(samples):
    batch, _, _ = epoch_of(samples, 0)
    apple, _, pear, alone, _ = batch.concepts.tolist()
    assert batch.concepts.tolist() == [apple, apple, pear, alone, apple]
    assert len({apple, pear, alone}) == 3


def test_the_same_draws_whatever_the_shares(samples):
    build = builder(samples, translations=True)
    finish = BatchFinisher(ImagePreprocessorSettings(size=4), 1, build)
    whole, parts = (
        finish(build([Share(3, 1, np.arange(5))])[0]),
        [finish(build([Share(3, 1, ids)])[0]) for ids in np.split(np.arange(5), [2])],
    )
    for name in ("concepts", "translated"):
        assert torch.cat([getattr(part, name) for part in parts]).equal(getattr(whole, name))
    stacked, mask = stack_texts([(part.translation_ids, part.translation_mask) for part in parts])
    assert (stacked * mask).equal(whole.translation_ids * whole.translation_mask)
    assert mask.equal(whole.translation_mask)


def test_rows_of_a_batch_have_translations_as_long_as_the_longest_of_them(samples):
    batch, _, _ = epoch_of(samples, 0)
    for start, stop in ((0, 2), (2, 3), (4, 4)):
        part = batch.rows(start, stop)
        assert part.translation_mask.sum(dim=1).max() == part.translation_ids.shape[1] == part.translation_mask.shape[1]
        expected = batch.translation_ids[slice(start, stop) if stop > start else slice(0, 1), : part.translation_ids.shape[1]]
        assert part.translation_ids.equal(expected)


def test_without_being_asked_for_no_translation_travels(samples):
    (payload,) = builder(samples)([Share(0, 0, np.arange(2))])
    batch = BatchFinisher(ImagePreprocessorSettings(size=4), 1, builder(samples))(payload)
    assert batch.translation_ids is batch.concepts is batch.translated is None


@pytest.mark.parametrize(
    ("stored", "reason"),
    [(["pomme"], "is a list where an object"), ({"fr": [3]}, "is a number where text"), ({"q q": ["x"]}, "q q")],
)
def test_a_field_that_is_no_translations_names_the_sample(stored, reason):
    with pytest.raises(SampleError, match=reason) as caught:
        translations_of({"translations": stored}, "shard.tar: s1")
    assert "shard.tar: s1" in str(caught.value)


def test_a_named_concept_counts_before_texts():
    one, two = (Captions({"en": [text]}, "strict", {"concept": "apple"}) for text in ("an apple", "a red apple"))
    assert concept_of(one, {}) == concept_of(two, {"de": ["ein Apfel"]})
    assert concept_of(Captions({"en": ["an apple"]}, "strict", {}), {}) != concept_of(one, {})


def test_data_without_translations_are_refused_with_what_to_do(samples, tmp_path: Path):
    check_translations(samples)
    alone = [sample(number, "pear", None) for number in range(3)]
    write_shards(iter(alone), str(tmp_path), 1, Storage())
    with pytest.raises(UserError, match="translations"):
        check_translations(load([str(tmp_path)]))
