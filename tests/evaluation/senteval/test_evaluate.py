"""All tasks with one encoder: chance, order of the answers, what is missing, and encoders that do not do their work."""

import tempfile

import numpy as np
import pytest

from raysys.errors import RunFailed, UserError
from raysys.evaluation import senteval
from raysys.evaluation.senteval import features
from tests.evaluation.senteval import files


def blind(texts):
    """Vectors that have nothing to do with the texts."""
    return np.stack([np.random.default_rng(list(text.encode())).normal(size=4) for text in texts])


def test_all_tasks(tmp_path):
    files.everything(tmp_path / "downstream")
    names = tuple(senteval.PUBLISHED)
    got = senteval.run(files.bag_of_words, str(tmp_path), names)  # SentEval's own `data`
    assert tuple(got) == names
    for task, result in got.items():
        assert result.missing is None
        assert result.unfinished == 0
        name = f"eval/senteval_{task}_accuracy"
        assert set(result.metrics) == set(result.chance) == {name, *([f"eval/senteval_{task}_f1"] if task == "MRPC" else [])}
        assert result.metrics[name] == pytest.approx(result.correct.mean(), abs=0.01)  # a mean over folds of 15 and 16
        assert result.metrics[name] > result.chance[name] + 0.05
    assert got["MR"].chance["eval/senteval_MR_accuracy"] == pytest.approx(81 / 151)


def test_vectors_without_meaning_stay_at_chance(tmp_path):
    for name in ("MR", "MR-more"):
        files.polarity(tmp_path / name, count=300)
    got = senteval.run(blind, str(tmp_path), ["MR"])["MR"]
    noise = 4 * np.sqrt(0.25 / len(got.correct))
    assert got.metrics["eval/senteval_MR_accuracy"] == pytest.approx(0.5, abs=noise)


def test_what_is_not_there_says_how_to_get_it_and_the_rest_runs(tmp_path):
    files.sick(tmp_path / "SICK")
    files.mrpc(tmp_path / "MRPC")
    (tmp_path / "MRPC" / "msr_paraphrase_test.txt").unlink()
    got = senteval.run(files.bag_of_words, str(tmp_path))
    assert tuple(got) == senteval.TABLE
    assert [task for task, result in got.items() if result.missing is None] == ["SICK-E"]
    assert "MRPC lacks msr_paraphrase_test.txt: data/downstream/get_transfer_data.bash of SentEval" in got["MRPC"].missing
    assert got["MR"].metrics == got["MR"].chance == {}
    own = senteval.run(files.bag_of_words, str(tmp_path), ["MR-rated"])["MR-rated"]
    assert "python jobs/prepare.py senteval" in own.missing


def test_a_damaged_file_is_told_before_anything_is_encoded(tmp_path):
    files.everything(tmp_path)
    files.write(tmp_path / "SICK" / "SICK_train.txt", ["heading", "1\ta\tb"])

    def encode(texts):
        raise AssertionError("encoded")

    with pytest.raises(UserError, match=r"SICK_train\.txt, line 2"):
        senteval.run(encode, str(tmp_path))


@pytest.mark.parametrize(
    ("encode", "message"),
    [
        (lambda texts: np.ones((len(texts) - 1, 3)), "were encoded and vectors of shape"),
        (lambda texts: np.ones(len(texts)), "were encoded and vectors of shape"),
        (lambda texts: np.where(np.array(texts)[:, None] == texts[2], np.nan, 1.0), "is not finite"),
    ],
)
def test_encoders_that_do_not_do_their_work(encode, message, tmp_path):
    files.polarity(tmp_path / "MR")
    with pytest.raises(RunFailed, match=f"MR: .*{message}"):
        senteval.run(encode, str(tmp_path), ["MR"])


def test_each_sentence_is_encoded_once_and_like_lengths_together(tmp_path, monkeypatch):
    monkeypatch.setattr(features, "_AT_ONCE", 16)
    files.snli(tmp_path / "SNLI")
    asked: list[list[str]] = []

    def encode(texts):
        asked.append(list(texts))
        return files.bag_of_words(texts)

    senteval.run(encode, str(tmp_path), ["SNLI"])
    flat = [text for texts in asked for text in texts]
    assert len(flat) == len(set(flat))
    assert max(map(len, asked)) == 16
    assert [len(text) for text in flat] == sorted(len(text) for text in flat)


def test_many_vectors_lie_in_a_file_and_give_the_same(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    files.snli(tmp_path / "SNLI")
    before = senteval.run(files.bag_of_words, str(tmp_path), ["SNLI"])["SNLI"]
    monkeypatch.setattr(features, "_IN_MEMORY_BYTES", 8)
    vectors = features.Vectors(["a", "b c"], files.bag_of_words, "SNLI")
    assert isinstance(vectors.values, np.memmap)
    after = senteval.run(files.bag_of_words, str(tmp_path), ["SNLI"])["SNLI"]
    np.testing.assert_array_equal(before.correct, after.correct)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["SNLI"]
