"""Triples and captioned pictures numbered as one."""

import numpy as np
import pytest

from raysys.data.bad import BadSamplePolicy
from raysys.data.streams import Streams
from raysys.shards.sample import SampleError
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
    with pytest.raises(ValueError, match="neither"):
        Streams(None, None)
    assert np.unique([streams.left_out for streams in every]).tolist() == [0]
