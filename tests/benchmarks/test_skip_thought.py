import itertools
import subprocess
import sys

import pytest
import torch

from raysys.benchmarks.skip_thought import (
    OURS,
    PACKED,
    PADDED,
    OurNetworks,
    PlainNetworks,
    bucketed,
    made_up_sentences,
    race,
    sentences_of,
    skip_thought_table,
)
from raysys.benchmarks.step import StepTimes, greatest_difference
from raysys.errors import UserError
from raysys.models.skip_thought import SkipThoughtSettings

SETTINGS = SkipThoughtSettings(word_size=6, size=8, vocabulary_size=40, decoder_size=7)
SENTENCES = made_up_sentences(200, 40, 12)


@pytest.mark.parametrize("packed", [False, True])
def test_contenders_compute_the_same(packed):
    torch.manual_seed(0)
    ours = OurNetworks(SETTINGS)
    plain = PlainNetworks(ours, packed)
    assert sum(one.numel() for one in plain.parameters()) == sum(one.numel() for one in ours.parameters())
    (batch,) = bucketed(SENTENCES, 16, 1)
    for network in (ours, plain):
        network(batch)["loss"].mean().backward()
    torch.testing.assert_close(ours(batch)["loss"], plain(batch)["loss"])
    torch.testing.assert_close(plain.words.weight.grad, ours.encoder.words.weight.grad)
    torch.testing.assert_close(plain.vocabulary.weight.grad, ours.decoders.vocabulary.weight.grad)
    torch.testing.assert_close(plain.reader.weight_hh_l0.grad, ours.encoder.reader.gru.weight_hh.grad)
    for writer, decoder in zip(plain.writers, (ours.decoders.previous, ours.decoders.next), strict=True):
        expected = torch.cat([decoder.weight_ih.grad, decoder.weight_ch.grad], dim=1)
        torch.testing.assert_close(writer.weight_ih_l0.grad, expected)


def test_all_train_alike_in_a_race():
    results = race(SETTINGS, SENTENCES, batch_size=8, steps=3)
    assert list(results) == [PADDED, PACKED, OURS]
    assert all(len(times.seconds) == 3 for times in results.values())
    assert greatest_difference(results, PADDED) < 1e-4


def test_batches_are_triples_of_like_length():
    batches = list(bucketed(SENTENCES, 16, 24, window=4))
    spread = []
    for batch in batches:
        assert len(batch) == 16
        rows = [[ids[mask.bool()].tolist() for ids, mask in zip(*part, strict=True)] for part in (batch.previous, batch.this, batch.next)]
        for before, middle, after in zip(*rows, strict=True):
            assert any([before, middle, after] == SENTENCES[place - 1 : place + 2] for place in range(1, 199))
        lengths = sorted(map(len, rows[1]))
        spread.append(lengths[-1] - lengths[0])
    assert sum(spread) / len(spread) < 6, "without buckets it is about 11"
    longest = [batch.this[0].shape[1] for batch in batches]
    assert longest != sorted(longest), "batches come in no order"


def test_made_up_sentences():
    sentences = made_up_sentences(3000, 1000, 30)
    words = [word for sentence in sentences for word in sentence[1:-1]]
    assert len(sentences) == 3000
    assert all(sentence[0] == 2 and sentence[-1] == 3 and 1 <= len(sentence) - 2 <= 30 for sentence in sentences)
    assert 10 < len(words) / 3000 < 14
    assert 5 <= min(words) <= max(words) < 1000
    assert words.count(5) > 2 * words.count(20) > 4 * words.count(200) > 0


def test_sentences_of_a_file(tmp_path):
    (tmp_path / "text").write_text("The cat sat.\n\nA cat sat sat sat sat.\nThe a cat.\n", encoding="utf-8")
    found = sentences_of(str(tmp_path / "text"), 50, 4)
    assert list(map(len, found)) == [6, 6], "what is too long is left out"
    assert found[0][0] == found[1][0] == 2
    with pytest.raises(UserError, match="cannot read sentences"):
        sentences_of(str(tmp_path / "none"), 50, 4)
    with pytest.raises(UserError, match="2 sentences are too few for a batch of 8"):
        next(bucketed(found, 8, 1))


def test_table():
    results = {
        PADDED: StepTimes([2.0, 4.0], [3.0, 2.0]),
        PACKED: StepTimes([1.0, 2.0], [3.0, 2.0]),
        OURS: StepTimes([0.5, 2.0], [3.0, 2.0]),
    }
    rows = [line.replace(", ", ",").split() for line in skip_thought_table(results, 6).splitlines()]
    assert [row[-3:] for row in rows[1:4]] == [["2.0", "1.00", "2.0000"], ["4.0", "2.00", "2.0000"], ["4.8", "3.00", "2.0000"]]
    assert rows[4][-1] == "0.0e+00"


@pytest.mark.slow
def test_as_a_job():
    sizes = {"size": 16, "word-size": 8, "vocabulary": 100, "batch-size": 4, "steps": 2}
    options = itertools.chain(*((f"--{name}", str(value)) for name, value in sizes.items()))
    command = [sys.executable, "jobs/benchmark.py", "skip-thought", *options]
    lines = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout.splitlines()
    assert [line.split("  ")[0] for line in lines[1:4]] == [PADDED, PACKED, OURS]
