"""Triples and captioned pictures numbered as one."""

import numpy as np
import pytest

from raysys.data.bad import BadSamplePolicy
from raysys.data.streams import PARALLEL, STRICT, WEAK, Rc3Streams, Streams
from raysys.shards.sample import SampleError
from tests.data import rc3_worlds
from tests.data.grounded_worlds import DOCUMENTS, PICTURES, TRIPLES, open_pictures, open_triples, write_documents, write_pictures


@pytest.fixture(scope="module")
def folders(tmp_path_factory) -> tuple[str, str]:
    folder = tmp_path_factory.mktemp("streams")
    return write_documents(folder / "text"), write_pictures(folder / "pictures")


def test_triples_come_first_and_pictures_follow(folders):
    triples, captions = open_triples(folders[0]), open_pictures(folders[1])
    streams = Streams(triples, captions)
    assert len(streams) == TRIPLES + PICTURES
    assert [streams.is_caption(number) for number in (0, TRIPLES - 1, TRIPLES, TRIPLES + PICTURES - 1)] == [False, False, True, True]
    assert streams.locate(TRIPLES - 1) == triples.locate(TRIPLES - 1) == (f"{folders[0]}/000000.tar", f"{DOCUMENTS - 1}-020")
    assert streams.locate(TRIPLES + 3) == captions.locate(3) == (f"{folders[1]}/000000.tar", "p003")
    told = streams.describe_bad(TRIPLES + 3, SampleError("", "cut", "png", "image"))
    assert told == (f"{folders[1]}/000000.tar", "p003", "png", "image", "cut")
    assert streams.stored_members(told).keys() == {"png", "json"}
    assert streams.stored_members(streams.describe_bad(0, SampleError("", "changed", "", "checksum"))).keys() == {"json"}
    assert streams.stored_members(told._replace(shard="elsewhere/000000.tar")) == {}


def test_what_is_told_of_both_together(folders):
    streams = Streams(open_triples(folders[0]), open_pictures(folders[1], BadSamplePolicy("skip")))
    assert streams.languages == ("en",)
    assert streams.total == DOCUMENTS * 3 + PICTURES, "pieces and pictures, as they are stored"
    assert streams.left_out == 0
    assert streams.bad == []
    assert [manifest.folder for manifest in streams.manifests] == list(folders)
    assert streams.policy == BadSamplePolicy()


@pytest.mark.parametrize("kind", ["triples", "captions"])
def test_one_kind_alone(folders, kind):
    triples, captions = open_triples(folders[0]), open_pictures(folders[1])
    streams = Streams(triples, None) if kind == "triples" else Streams(None, captions)
    (part,) = streams.parts
    assert len(streams) == len(part)
    assert streams.locate(2) == part.locate(2)
    assert streams.is_caption(0) == (kind == "captions")


def test_the_fingerprint_tells_every_combination_apart(folders):
    triples, captions = open_triples(folders[0]), open_pictures(folders[1])
    every = [Streams(triples, captions), Streams(triples, None), Streams(None, captions)]
    assert len({streams.fingerprint for streams in every}) == 3
    assert Streams(open_triples(folders[0]), open_pictures(folders[1])).fingerprint == every[0].fingerprint
    with pytest.raises(ValueError, match="nothing to train on"):
        Streams(None, None)
    assert np.unique([streams.left_out for streams in every]).tolist() == [0]


@pytest.fixture(scope="module")
def three(tmp_path_factory) -> tuple[str, str, str]:
    return rc3_worlds.write_all(tmp_path_factory.mktemp("three"))


def test_three_streams_one_after_another(three):
    streams = rc3_worlds.open_all(three, BadSamplePolicy("skip"))
    sizes = [rc3_worlds.STRICTS, rc3_worlds.WEAKS, 2 * rc3_worlds.PARALLELS]
    ends = np.cumsum(sizes).tolist()
    assert [streams.numbers(kind) for kind in range(3)] == [range(end - size, end) for end, size in zip(ends, sizes, strict=True)]
    assert len(streams) == ends[-1]
    assert streams.kinds_of(np.arange(ends[-1])).tolist() == np.repeat([STRICT, WEAK, PARALLEL], sizes).tolist()
    assert [streams.locate(end - 1) for end in ends] == [
        (f"{folder}/000000.tar", key) for folder, key in zip(three, ("s13", "w10", "t08"), strict=True)
    ]
    assert streams.languages == rc3_worlds.LANGUAGES
    assert (streams.total, streams.left_out, streams.bad) == (sizes[0] + sizes[1] + rc3_worlds.PARALLELS, 0, [])
    told = streams.describe_bad(ends[1], SampleError("", "changed", "", "checksum"))
    assert (told.shard, told.key) == (f"{three[2]}/000000.tar", "t00")
    assert streams.stored_members(told).keys() == {"json"}
    with pytest.raises(IndexError, match=f"sample {ends[-1]} was asked for; there are {ends[-1]}"):
        streams.locate(ends[-1])


@pytest.mark.parametrize("kept", [(STRICT,), (PARALLEL,), (STRICT, PARALLEL), (WEAK, PARALLEL)])
def test_streams_that_are_missing_take_no_numbers(three, kept):
    whole = rc3_worlds.open_all(three)
    streams = Rc3Streams(*(part if kind in kept else None for kind, part in enumerate(whole.kinds)))
    assert sorted(set(streams.kinds_of(np.arange(len(streams))).tolist())) == list(kept)
    for kind in range(3):
        assert len(streams.numbers(kind)) == (len(whole.numbers(kind)) if kind in kept else 0)
        for own, number in zip(streams.numbers(kind), whole.numbers(kind), strict=False):
            assert streams.locate(own) == whole.locate(number)
    assert len({streams.fingerprint, whole.fingerprint, Rc3Streams(whole.weak, whole.strict, whole.parallel).fingerprint}) == 3
    with pytest.raises(ValueError, match="nothing to train on"):
        Rc3Streams(None, None, None)
