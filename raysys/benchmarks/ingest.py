"""What a user would otherwise feed pictures with, and the least that any way of feeding them costs.

Each function returns a :data:`~raysys.benchmarks.measure.Contender`: an endless stream of uint8 image batches [n, 3, size, size].
"""

import contextlib
import functools
import io
import json
import tarfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import boto3
import torch
import webdataset
from PIL import Image, ImageOps
from torch import Tensor
from torch.utils.data import DataLoader

from raysys.benchmarks.measure import Contender
from raysys.errors import UserError
from raysys.shards.sample import IMAGE_EXTENSIONS
from raysys.storage import Storage, is_remote

Preprocess = Callable[[bytes], Tensor]
"""Encoded picture → uint8 [3, size, size]."""
Encode = Callable[[list[str]], Any]
"""Captions of a batch → token ids, whatever their form."""

SHUFFLE_BUFFER = 1000


def shards_of(folder: str) -> list[str]:
    """Paths of the shards in a local folder.

    Raises:
        UserError: a remote folder, or none of its files is a shard.
    """
    if is_remote(folder):
        raise UserError(f"the benchmark compares readers of local shards, and {folder} is remote: copy it to this machine first")
    local = Path(folder.removeprefix("file://"))
    paths = sorted(str(path) for path in local.glob("*.tar"))
    if not paths:
        found = ", ".join(sorted(path.name for path in local.glob("*"))[:10]) or "nothing"
        raise UserError(f"no shards (*.tar) in {folder}; found there: {found}")
    return paths


def signed_shards(folder: str, seconds: int = 86_400) -> list[str]:
    """The shards of an s3:// folder as webdataset reads objects from the web: through curl, by links that are valid for some time."""
    storage = Storage()
    client = boto3.client("s3", endpoint_url=storage.endpoint, region_name=storage.region)
    links = []
    for entry in storage.list(folder, suffix=".tar"):
        bucket, _, key = entry.uri.removeprefix("s3://").partition("/")
        links.append(client.generate_presigned_url("get_object", Params={"Bucket": bucket, "Key": key}, ExpiresIn=seconds))
    return [f"pipe:curl --silent --fail --location '{link}'" for link in links]


class PillowPreprocess:
    """Decode, fit and centre-crop with Pillow: what tutorials do."""

    def __init__(self, size: int):
        self.size = size

    def __call__(self, data: bytes) -> Tensor:
        with Image.open(io.BytesIO(data)) as image:
            fitted = ImageOps.fit(image.convert("RGB"), (self.size, self.size), Image.Resampling.BILINEAR)
        pixels = torch.frombuffer(bytearray(fitted.tobytes()), dtype=torch.uint8)
        return pixels.view(self.size, self.size, 3).permute(2, 0, 1).contiguous()


def _image_and_caption(preprocess: Preprocess, sample: dict[str, Any]) -> tuple[Tensor, str]:
    image = next(sample[extension] for extension in IMAGE_EXTENSIONS if extension in sample)
    captions = json.loads(sample["json"])["captions"]
    return preprocess(image), next(iter(captions.values()))[0]


def _collate(encode: Encode | None, samples: list[tuple[Tensor, str]]) -> tuple[Tensor, Any]:
    images, captions = zip(*samples, strict=True)
    return torch.stack(images), encode(list(captions)) if encode else list(captions)


def webdataset_loader(
    shards: Sequence[str], preprocess: Preprocess, batch_size: int, encode: Encode | None = None, workers: int = 2
) -> Contender:
    """webdataset in the processes of torch's ``DataLoader``, shards and samples shuffled, as its documentation shows.

    Args:
        shards: paths of the tars; more than `workers`.
        preprocess: picklable.
        batch_size: samples in a batch.
        encode: turns a batch's captions into tokens; picklable. Without it they stay text.
        workers: loader processes.
    """

    @contextlib.contextmanager
    def opened() -> Iterator[Iterator[Tensor]]:
        dataset = (
            webdataset.WebDataset(list(shards), shardshuffle=len(shards))
            .shuffle(SHUFFLE_BUFFER)
            .map(functools.partial(_image_and_caption, preprocess))
            .batched(batch_size, collation_fn=functools.partial(_collate, encode), partial=False)
            .repeat()
        )
        # Not forked from this process, which may hold a Ray session and its threads; spawned workers abort at their end.
        loader: DataLoader = DataLoader(dataset, batch_size=None, num_workers=workers, multiprocessing_context="forkserver")
        batches = iter(loader)
        try:
            yield (images for images, _ in batches)
        finally:
            batches._shutdown_workers()  # type: ignore[attr-defined]

    return opened


def decoding_alone(shards: Sequence[str], preprocess: Preprocess, batch_size: int) -> Contender:
    """The ceiling of one process: pictures lie in memory and are decoded in one thread; nothing is read, shuffled or tokenised."""

    @contextlib.contextmanager
    def opened() -> Iterator[Iterator[Tensor]]:
        pictures = [data for shard in shards for data in _pictures(shard)]
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            yield _decode_in_turn(pictures, preprocess, batch_size)
        finally:
            torch.set_num_threads(threads)

    return opened


def _pictures(shard: str) -> Iterator[bytes]:
    with tarfile.open(shard) as tar:
        for member in tar:
            file = tar.extractfile(member)
            if file is not None and member.name.rpartition(".")[2].lower() in IMAGE_EXTENSIONS:
                yield file.read()


def _decode_in_turn(pictures: Sequence[bytes], preprocess: Preprocess, batch_size: int) -> Iterator[Tensor]:
    position = 0
    while True:
        indices = [(position + offset) % len(pictures) for offset in range(batch_size)]
        yield torch.stack([preprocess(pictures[index]) for index in indices])
        position += batch_size
