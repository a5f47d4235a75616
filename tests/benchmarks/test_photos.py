import io
import itertools
import json

from PIL import Image

from raysys.benchmarks.photos import photos, write_photos
from raysys.shards.sample import parse_captions


def test_pictures_have_the_size_and_weight_of_photographs():
    samples = list(photos(24))
    images = [Image.open(io.BytesIO(sample.image)) for sample in samples]
    assert all(image.format == "JPEG" and image.mode == "RGB" for image in images)
    assert all(256 <= side <= 400 for image in images for side in image.size)
    assert len({image.size for image in images}) > 12
    bits = sum(8 * len(sample.image) for sample in samples) / sum(image.width * image.height for image in images)
    assert 1.5 < bits < 3.5
    assert len({sample.image for sample in samples}) == 24


def test_captions_are_those_of_the_sample_contract():
    for sample in photos(8):
        captions = parse_captions(json.dumps(sample.metadata).encode())
        assert len(captions.captions) == 1


def test_deterministic_and_prefix_stable():
    first, again, other = photos(5, seed=3), photos(9, seed=3), photos(5, seed=4)
    assert [(s.key, s.image, s.metadata) for s in first] == [(s.key, s.image, s.metadata) for s in itertools.islice(again, 5)]
    assert [s.image for s in other] != [s.image for s in photos(5, seed=3)]


def test_written_as_shards(tmp_path):
    folder = write_photos(str(tmp_path), count=10, shards=4)
    assert folder == str(tmp_path / "train")
    assert sorted(path.name for path in (tmp_path / "train").iterdir()) == [f"{number:06d}.tar" for number in range(4)]
