"""Several data sets as one: which samples count, how they are numbered, and what is said of those that do not."""

import numpy as np
import pytest

from raysys.data.bad import BadSamplePolicy
from raysys.data.samples import DataSettings, Samples
from raysys.errors import RunFailed, UserError
from raysys.settings import from_mapping
from raysys.storage import Storage
from tests.data.worlds import all_languages, load, one_language, write_dataset
from tests.shards.tars import pairs, picture, tar


@pytest.fixture
def folders(tmp_path):
    """Data sets of 10 and 6 samples; languages of the first: de 3, en 3, ja 2, ru 2; the second has all in each."""
    return [write_dataset(tmp_path / "one", 10), write_dataset(tmp_path / "two", 6, all_languages, first=100)]


def test_data_sets_follow_one_another(folders):
    samples = load(folders)
    assert len(samples) == 16
    assert samples.left_out == 0
    assert samples.languages == ("de", "en", "ja", "ru")
    assert samples.counts() == {"de": 9, "en": 9, "ja": 8, "ru": 8}
    keys = samples.column("key").tolist()
    assert keys[:10] == [f"s{n:04}" for n in (*range(0, 10, 2), *range(1, 10, 2))]  # sample i lies in shard i mod 2
    assert sorted(keys[10:]) == [f"s{n:04}" for n in range(100, 106)]

    ids = np.array([15, 0, 3, 12, 0, 9])
    read = samples.read(ids)
    assert [sample.key for sample in read] == [keys[i] for i in ids]
    assert [sample.members["png"] for sample in read] == [picture(int(keys[i][1:])) for i in ids]


def test_languages_choose_samples_and_their_order_is_kept(folders):
    samples = load(folders, ["ru", "ja"])
    assert samples.languages == ("ru", "ja")
    assert len(samples) == 2 + 2 + 6
    assert samples.left_out == 6
    assert samples.counts() == {"ru": 8, "ja": 8}
    for sample in samples.read(np.arange(len(samples))):
        assert {"ru", "ja"} & set((one_language if int(sample.key[1:]) < 100 else all_languages)(int(sample.key[1:])))
    assert len(load(folders[:1], ["ja"])) == 2


def test_a_language_without_samples_is_refused_with_those_that_are_there(folders):
    with pytest.raises(UserError, match=r"data\.languages: no sample in .*one.* has a caption in fr, sv; languages there: de, en, ja, ru"):
        load(folders, ["de", "fr", "sv"])


def test_faulty_samples_are_refused_or_left_out_and_counted(tmp_path):
    broken = [("s003.json", b"{"), ("s003.png", picture(3)), ("s004.json", b'{"captions": {"de": [" "]}}'), ("s004.png", picture(4))]
    unseen = [("s005.json", b'{"captions": {"de": ["Wort"]}}'), ("s005.png", b"not a picture")]
    (tmp_path / "000000.tar").write_bytes(tar(pairs(range(3)) + broken + unseen + pairs([6])))
    with pytest.raises(
        UserError, match=r"000000\.tar, sample 's003', member \.json: not valid json: .*, and 2 more; .* set data\.on_bad_sample to skip"
    ):
        load([str(tmp_path)])
    with pytest.raises(RunFailed, match=r"3 of 7 samples are bad, more than data\.max_bad_fraction 0\.4 allows; one of them: .*'s003'"):
        load([str(tmp_path)], policy=BadSamplePolicy("skip", 0.4))
    samples = load([str(tmp_path)], policy=BadSamplePolicy("skip", 0.5))
    assert samples.column("key").tolist() == ["s000", "s001", "s002", "s006"]
    assert samples.left_out == 3
    assert samples.total == 7
    assert [(bad.key, bad.cause) for bad in samples.bad] == [("s003", "json"), ("s004", "text"), ("s005", "image")]
    assert samples.stored_members(samples.bad[0]) == {"json": b"{", "png": picture(3)}
    assert samples.counts() == {"de": 4, "en": 4}


def test_the_fingerprint_is_of_contents_and_languages_not_of_places(tmp_path, folders):
    samples = load(folders)
    moved = [write_dataset(tmp_path / "moved", 10), folders[1]]
    assert load(moved).fingerprint == samples.fingerprint
    assert load(folders[::-1]).fingerprint != samples.fingerprint
    assert load(folders, ["de"]).fingerprint != samples.fingerprint
    assert load([write_dataset(tmp_path / "other", 11), folders[1]]).fingerprint != samples.fingerprint


def test_where_folders_lie(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    beneath = DataSettings(folder="data", train=("x",))
    assert beneath.locate("emoji/train") == str(tmp_path / "data/emoji/train")
    assert beneath.locate("/elsewhere/train") == "/elsewhere/train"
    assert beneath.locate("s3://bucket/train") == "s3://bucket/train"
    remote = DataSettings(folder="s3://bucket/sets", train=("x",))
    assert remote.locate("emoji/train") == "s3://bucket/sets/emoji/train"
    assert remote.locate("/local") == "/local"
    assert remote.locate("file:///local") == "file:///local"
    assert DataSettings(folder="file:///sets", train=("x",)).locate("emoji") == "file:///sets/emoji"


def test_language_tags_have_one_spelling():
    settings = DataSettings(train=("x",), languages=("zh_CN", "de_DE", "de", "pt_BR"))
    assert settings.languages == ("zh-Hans", "de", "pt-BR")
    with pytest.raises(UserError, match=r"f\.yaml: languages: 'german!' is not a language tag"):
        from_mapping(DataSettings, {"train": ["x"], "languages": ["german!"]}, "f.yaml")


def test_folders_without_samples(tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match=r"empty has no \.tar shards; it holds nothing"):
        load([str(tmp_path / "empty")])
    with pytest.raises(UserError, match=r"the folder .*nowhere does not exist"):
        Samples.load([str(tmp_path / "nowhere")], (), Storage())
