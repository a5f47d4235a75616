import io
import itertools

import numpy as np
import pytest
import torch
from PIL import Image

from raysys.benchmarks.ingest import PillowPreprocess, decoding_alone, shards_of, webdataset_loader
from raysys.benchmarks.photos import photos, write_photos
from raysys.errors import UserError

SIZE, COUNT = 32, 24


@pytest.fixture(scope="module")
def shards(tmp_path_factory) -> list[str]:
    return shards_of(write_photos(str(tmp_path_factory.mktemp("photos")), COUNT, shards=4))


@pytest.fixture(scope="module")
def pictures() -> list[torch.Tensor]:
    return [PillowPreprocess(SIZE)(sample.image) for sample in photos(COUNT) if sample.image is not None]


def encode(captions: list[str]) -> int:
    assert all(isinstance(caption, str) and caption for caption in captions)
    return len(captions)


def test_preprocess_fits_and_crops_the_centre():
    pixels = np.zeros((20, 60, 3), dtype=np.uint8)
    pixels[:, 20:40] = (10, 200, 30)
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    result = PillowPreprocess(20)(file.getvalue())
    assert result.dtype == torch.uint8
    assert result.shape == (3, 20, 20)
    assert result.amax((1, 2)).tolist() == result.amin((1, 2)).tolist() == [10, 200, 30]


def test_decoding_alone_goes_round_in_shard_order(shards, pictures):
    order = [number for shard in range(4) for number in range(shard, COUNT, 4)]
    with decoding_alone(shards, PillowPreprocess(SIZE), batch_size=16)() as batches:
        found = torch.cat(list(itertools.islice(batches, 3)))
    assert found.equal(torch.stack([pictures[number] for number in order * 2]))


def test_webdataset_delivers_every_sample_without_end(shards, pictures):
    with webdataset_loader(shards, PillowPreprocess(SIZE), batch_size=4, encode=encode)() as batches:
        found = torch.cat(list(itertools.islice(batches, 4 * COUNT // 4)))
    assert found.shape == (4 * COUNT, 3, SIZE, SIZE)
    numbers = [next(number for number, picture in enumerate(pictures) if picture.equal(image)) for image in found]
    assert set(numbers) == set(range(COUNT))
    assert max(map(numbers.count, range(COUNT))) <= 6
    assert numbers[:COUNT] != sorted(numbers[:COUNT])


def test_what_is_no_local_folder_of_shards_is_refused(tmp_path):
    (tmp_path / "notes.txt").write_text("x")
    with pytest.raises(UserError, match=r"no shards .* found there: notes.txt"):
        shards_of(str(tmp_path))
    with pytest.raises(UserError, match="copy it to this machine first"):
        shards_of("s3://bucket/data")
