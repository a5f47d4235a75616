"""Vectors of a frozen image network, computed once for all runs that share the data, the network and the preprocessing."""

import hashlib
import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import ray
import ray.data
import torch

from raysys.data.bad import BadSample
from raysys.data.features import FeatureCache, save_features
from raysys.data.images import ImageError, ImagePreprocessor, ImagePreprocessorSettings
from raysys.data.randomness import mix
from raysys.data.samples import Samples
from raysys.shards.reader import RawSample
from raysys.shards.sample import SampleError
from raysys.storage import join
from raysys.training.settings import TrainingSettings

_AUGMENTATION = 31  # what a seed is for
_PICTURES_PER_TASK = 32


def cached_features(
    samples: Samples,
    build: Callable[[], Any],
    image: ImagePreprocessorSettings,
    views: int,
    training: TrainingSettings,
    folder: str,
    key: dict[str, Any],
    log: Callable[[str], None],
) -> FeatureCache:
    """The vectors of all `samples`, from `folder` if they were computed before, otherwise computed now: on the cluster, or here where Ray
    is not running.

    The first view is the picture as it is, each other one an augmentation drawn by (seed, view, sample).

    Args:
        samples: whose pictures.
        build: makes the system whose `image` network and `views` are used, from torch's global generator.
        image: preprocessing.
        views: vectors per picture.
        training: seed, and how many workers of which size may compute.
        folder: of all caches.
        key: what else the vectors depend on: settings of the network and of the views.
        log: takes a line for people.
    """
    described = json.dumps(
        {
            "data": [manifest.fingerprint for manifest in samples.manifests],
            "samples": len(samples),
            "languages": samples.languages,
            "picture": samples.layout.image_member,
            "image": image.model_dump(mode="json"),
            "views": views,
            "seed": training.seed,
            "networks": key,
        },
        sort_keys=True,
    )
    uri = join(folder, hashlib.blake2b(described.encode(), digest_size=12).hexdigest() + ".npy")
    storage = samples.storage
    if not storage.exists(uri):
        started = time.perf_counter()
        log(f"computing image vectors once: {len(samples)} pictures, {views} view{'s' if views > 1 else ''} each")
        vectors, bad = _compute(samples, build, image, views, training, log)
        save_features(storage, uri, vectors, bad)
        log(f"image vectors computed in {time.perf_counter() - started:.0f} s, kept in {uri}")
    cache = FeatureCache(storage, uri)
    for sample, reason in cache.bad.items():
        samples.policy.accept(_bad_sample(samples, sample, reason))
    return cache


def _compute(
    samples: Samples,
    build: Callable[[], Any],
    image: ImagePreprocessorSettings,
    views: int,
    training: TrainingSettings,
    log: Callable[[str], None],
) -> tuple[np.ndarray, dict[int, str]]:
    """Vectors float16 [samples, views, D], and what is bad."""
    results = _on_cluster(samples, build, image, views, training) if ray.is_initialized() else _here(samples, build, image, views, training)
    vectors: np.ndarray | None = None
    bad: dict[int, str] = {}
    done, shown = 0, time.monotonic()
    for batch in results:
        if vectors is None:
            vectors = np.zeros((len(samples), *batch["vectors"].shape[1:]), np.float16)
        vectors[batch["id"]] = batch["vectors"]
        for sample, reason in zip(batch["id"].tolist(), batch["fault"].tolist(), strict=True):
            if reason:
                bad[sample] = reason
                named = samples.policy.accept(_bad_sample(samples, sample, reason))
                samples.policy.check(len(bad), samples.total, str(named))
        done += len(batch["id"])
        if time.monotonic() - shown > 10:
            log(f"  {done} of {len(samples)} pictures")
            shown = time.monotonic()
    assert vectors is not None
    assert done == len(samples)
    return vectors, dict(sorted(bad.items()))


def _on_cluster(
    samples: Samples, build: Callable[[], Any], image: ImagePreprocessorSettings, views: int, training: TrainingSettings
) -> Iterator[dict[str, np.ndarray]]:
    dataset = ray.data.range(len(samples), override_num_blocks=-(-len(samples) // _PICTURES_PER_TASK)).map_batches(
        ClusterExtractor,
        # By reference: actors are started again after a failure, and large arguments of theirs might be gone by then.
        fn_constructor_args=(ray.put((samples, build, image)), views, training.seed, training.cpus_per_worker),
        batch_size=None,
        num_cpus=training.cpus_per_worker,
        num_gpus=1 if training.gpu else 0,
        compute=ray.data.ActorPoolStrategy(size=training.min_workers),
    )
    return iter(dataset.iter_batches(batch_size=None, batch_format="numpy"))


def _here(
    samples: Samples, build: Callable[[], Any], image: ImagePreprocessorSettings, views: int, training: TrainingSettings
) -> Iterator[dict[str, np.ndarray]]:
    extractor = FeatureExtractor(samples, build, image, views, training.seed)
    return (
        extractor({"id": np.arange(start, min(start + _PICTURES_PER_TASK, len(samples)))})
        for start in range(0, len(samples), _PICTURES_PER_TASK)
    )


def _bad_sample(samples: Samples, sample: int, reason: str) -> BadSample:
    return samples.describe_bad(sample, SampleError("", reason, cause="image"))


class FeatureExtractor:
    """Sample numbers → vectors float16 [n, views, D], zero where there is a fault, and the faults."""

    def __init__(self, samples: Samples, build: Callable[[], Any], image: ImagePreprocessorSettings, views: int, seed: int):
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.samples = samples
        self.system = build().to(self.device).eval()
        self.preprocess = ImagePreprocessor(image)
        self.views = views
        self.seed = seed

    def __call__(self, batch: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        blank = torch.full((3, self.preprocess.settings.size, self.preprocess.settings.size), 255, dtype=torch.uint8)
        decoded = [self._decode(raw) for raw in self.samples.try_read(batch["id"])]
        pictures = torch.stack([blank if picture is None else picture for picture, _ in decoded]).to(self.device)
        faults = np.array([fault for _, fault in decoded], dtype=object)
        vectors = []
        with torch.inference_mode():
            for view in range(self.views):
                # Seeded by the first sample of the task: tasks always hold the same samples.
                torch.manual_seed(int(mix(self.seed, _AUGMENTATION, view, batch["id"][0]) >> np.uint64(1)))
                seen = self.system.views(pictures) if view else pictures
                vectors.append(self.system.image(seen).cpu().numpy().astype(np.float16))
        stacked = np.stack(vectors, axis=1)
        stacked[faults != ""] = 0
        return {"id": batch["id"], "vectors": stacked, "fault": faults}

    def _decode(self, raw: RawSample | SampleError) -> tuple[torch.Tensor | None, str]:
        try:
            if isinstance(raw, SampleError):
                raise raw
            return self.preprocess(self.samples.picture(raw)[1]), ""
        except (SampleError, ImageError) as error:
            return None, error.reason


class ClusterExtractor(FeatureExtractor):
    """One actor on the cluster."""

    def __init__(self, parts: ray.ObjectRef, views: int, seed: int, threads: int):
        torch.set_num_threads(threads)
        samples, build, image = ray.get(parts)
        super().__init__(samples, build, image, views, seed)
