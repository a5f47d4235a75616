"""What a run is made of: its tokenizer and the job that its workers do."""

import functools
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from transformers import PreTrainedTokenizerFast

from raysys.data.builder import BatchBuilder
from raysys.data.features import FeatureCache
from raysys.data.plan import Plan
from raysys.data.samples import Samples
from raysys.data.tokenizer import train_tokenizer
from raysys.evaluation.validation import SCORE, score_validation
from raysys.models.heads import whiten
from raysys.runs.folders import upload_folder
from raysys.runs.networks import build_system, fitted_model, has_tokenizer, save_whitening, saved_tokenizer, saved_whitening
from raysys.runs.run import Log, Run
from raysys.shards.sample import SampleError
from raysys.storage import join
from raysys.systems.globetrotter import Globetrotter
from raysys.training.features import cached_features
from raysys.training.job import TrainingJob, Validation


def get_tokenizer(run: Run) -> PreTrainedTokenizerFast:
    """The run's tokenizer: the one saved with it, or one trained on the training captions and saved now."""
    if has_tokenizer(run):
        return saved_tokenizer(run)
    text = run.settings.model.text
    tokenizer = train_tokenizer(training_captions(run.samples), text.vocabulary_size, text.max_tokens)
    with tempfile.TemporaryDirectory(prefix="raysys-tokenizer-") as scratch:
        tokenizer.save_pretrained(scratch)
        upload_folder(run.folder.storage, Path(scratch), run.folder.path("tokenizer"), mark="tokenizer.json")
    return tokenizer


def training_captions(samples: Samples, chunk: int = 1024) -> Iterator[str]:
    """All captions of all samples in the languages in use, in order."""
    for start in range(0, len(samples), chunk):
        ids = np.arange(start, min(start + chunk, len(samples)))
        for number, sample in zip(ids.tolist(), samples.try_read(ids), strict=True):
            try:
                if isinstance(sample, SampleError):
                    raise sample
                captions = samples.captions(sample).captions
            except SampleError as error:
                samples.policy.accept(samples.describe_bad(number, error))
                continue  # training meets it again, and notes it
            for language in samples.languages:
                yield from captions.get(language, ())


def make_job(run: Run, tokenizer: PreTrainedTokenizerFast, log: Log = print) -> TrainingJob:
    """What the workers are told. Ray must be running if image vectors are to be cached."""
    settings = run.settings
    model = fitted_model(settings, tokenizer)
    build = functools.partial(build_system, model, settings.objective, settings.training.seed)
    text, seed = settings.model.text, settings.training.seed
    decode = settings.data.image if settings.data.decode == "cluster" else None

    def builder_of(samples: Samples, plan: Plan | None = None) -> BatchBuilder:
        features = image_features(run, samples, build, log) if settings.data.cached_views else None
        return BatchBuilder(samples, tokenizer, text.form, seed, features, decode, plan.spares if plan else None)

    training = builder_of(run.samples, run.plan)
    whitening = saved_whitening(run)
    if settings.model.image_head == "whitened" and whitening is None:
        whitening = whiten(training_vectors(training), settings.model.head.size)
        save_whitening(run, whitening)
    validation = None
    if run.validation is not None:
        validation = Validation(builder_of(run.validation), score_validation, SCORE)
    return TrainingJob(
        settings=settings.training,
        build=functools.partial(build, whitening=whitening),
        plan=run.plan,
        builder=training,
        total_steps=run.total_steps,
        folder=run.folder,
        image=settings.data.image,
        decode_threads=settings.data.decode_threads,
        validation=validation,
    )


def training_vectors(builder: BatchBuilder, most: int = 50_000) -> Tensor:
    """Kept vectors of the training pictures as they are, float32 [n, D]; at most `most`, evenly spaced."""
    assert builder.features is not None
    samples = len(builder.samples)
    ids = np.arange(samples) if samples <= most else np.arange(most) * samples // most
    parts = [builder.features.read(part)[:, 0] for part in np.array_split(ids, -(-len(ids) // 1024))]
    return torch.from_numpy(np.concatenate(parts)).float()


def image_features(run: Run, samples: Samples, build: Callable[[], Globetrotter], log: Log) -> FeatureCache:
    """The kept vectors of the samples' pictures, shared by all runs in the same storage."""
    settings = run.settings
    key = {name: getattr(settings.model, name).model_dump(mode="json") for name in ("image", "views")}
    folder = join(os.path.dirname(run.folder.uri), "image-vectors")
    return cached_features(samples, build, settings.data.image, settings.data.cached_views, settings.training, folder, key, log)
