"""What a run is made of: its tokenizer and the job that its workers do."""

import functools
import os
import tempfile
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from transformers import PreTrainedTokenizerFast

from raysys.data.builder import BatchBuilder
from raysys.data.captions import all_captions
from raysys.data.features import FeatureCache
from raysys.data.plan import Plan
from raysys.data.samples import Samples
from raysys.data.tokenizer import train_tokenizer
from raysys.data.word_vectors import token_sequences, train_word_vectors
from raysys.evaluation.validation import SCORE, score_validation
from raysys.models.backbones import RANDOM
from raysys.models.heads import whiten
from raysys.runs.folders import upload_folder
from raysys.runs.networks import Start, build_images, build_system, fitted_model, has_tokenizer, save_start, saved_start, saved_tokenizer
from raysys.runs.run import Log, Run
from raysys.storage import join
from raysys.training.features import cached_features
from raysys.training.job import TrainingJob, Validation


def get_tokenizer(run: Run) -> PreTrainedTokenizerFast:
    """The run's tokenizer: the one saved with it, or one trained on the training captions and saved now."""
    if has_tokenizer(run):
        return saved_tokenizer(run)
    text = run.settings.model.text
    captions = (caption for _, caption in all_captions(run.samples))
    tokenizer = train_tokenizer(captions, text.vocabulary_size, text.max_tokens)
    with tempfile.TemporaryDirectory(prefix="raysys-tokenizer-") as scratch:
        tokenizer.save_pretrained(scratch)
        upload_folder(run.folder.storage, Path(scratch), run.folder.path("tokenizer"), mark="tokenizer.json")
    return tokenizer


def make_job(run: Run, tokenizer: PreTrainedTokenizerFast, log: Log = print) -> TrainingJob:
    """What the workers are told. Ray must be running if image vectors are to be cached."""
    settings = run.settings
    seed, decode = settings.training.seed, settings.data.image if settings.data.decode == "cluster" else None

    def builder_of(samples: Samples, plan: Plan | None = None) -> BatchBuilder:
        features = image_features(run, samples, log) if settings.data.cached_views else None
        spares = plan.spares if plan else None
        return BatchBuilder(
            samples,
            tokenizer,
            settings.model.text.form,
            seed,
            features,
            decode,
            spares,
            translations=settings.system == "supervised",
            held_out=settings.evaluation.held_out,
            pictures=settings.uses_images,
        )

    training = builder_of(run.samples, run.plan)
    start = get_start(run, tokenizer, training, log)
    validation = None
    if run.validation is not None and settings.ties_captions_to_images:
        validation = Validation(builder_of(run.validation), score_validation, SCORE)
    return TrainingJob(
        settings=settings.training,
        build=functools.partial(build_system, settings, fitted_model(settings, tokenizer, start), start),
        plan=run.plan,
        builder=training,
        total_steps=run.total_steps,
        folder=run.folder,
        image=settings.data.image,
        decode_threads=settings.data.decode_threads,
        validation=validation,
    )


def get_start(run: Run, tokenizer: PreTrainedTokenizerFast, training: BatchBuilder, log: Log) -> Start:
    """Where the run's parts begin that are made from the data: as saved with it, or made and saved now."""
    saved, settings = saved_start(run), run.settings
    whitening, words = saved
    if settings.model.image_head == "whitened" and whitening is None:
        whitening = whiten(training_vectors(training), settings.model.head.size)
    if settings.system == "muve" and words is None:
        log("training the word vectors of each language")
        sequences = token_sequences(all_captions(run.samples), run.samples.languages, tokenizer)
        words = train_word_vectors(sequences, settings.model.muve.skip_gram, settings.training.seed)
    start = Start(whitening, words)
    if start != saved:
        save_start(run, start)
    return start


def training_vectors(builder: BatchBuilder, most: int = 50_000) -> Tensor:
    """Kept vectors of the training pictures as they are, float32 [n, D]; at most `most`, evenly spaced."""
    assert builder.features is not None
    samples = len(builder.samples)
    ids = np.arange(samples) if samples <= most else np.arange(most) * samples // most
    parts = [builder.features.read(part)[:, 0] for part in np.array_split(ids, -(-len(ids) // 1024))]
    return torch.from_numpy(np.concatenate(parts)).float()


def image_features(run: Run, samples: Samples, log: Log) -> FeatureCache:
    """The kept vectors of the samples' pictures, shared by all runs in the same storage.

    The same ones for all systems: each builds its image network first.
    """
    settings = run.settings
    # Runs of several seeds share the vectors of a network whose weights come with it; random weights are those of the run's seed.
    training = settings.training
    if settings.model.image.pretrained and settings.model.image.backbone not in RANDOM:
        training = training.model_copy(update={"seed": 0})
    key = {name: getattr(settings.model, name).model_dump(mode="json") for name in ("image", "views")}
    folder = join(os.path.dirname(run.folder.uri), "image-vectors")
    build = functools.partial(build_images, settings.model, training.seed)
    return cached_features(samples, build, settings.data.image, settings.data.cached_views, training, folder, key, log)
