"""What a grounded run is made of: its tokenizer and the job that its workers do."""

import functools
import itertools
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor
from transformers import PreTrainedTokenizerFast

from raysys.data.bad import BadSample
from raysys.data.captions import visually_equivalent
from raysys.data.features import FeatureCache
from raysys.data.grounded_builder import GroundedBuilder
from raysys.data.samples import Samples
from raysys.data.streams import Streams
from raysys.data.word_tokenizer import train_word_tokenizer
from raysys.models.backbones import RANDOM
from raysys.runs.export import make_encoder
from raysys.runs.folders import download_folder, upload_folder
from raysys.runs.grounded.base import GroundedStart, base_run, save_start, saved_start
from raysys.runs.grounded.networks import build_grounded, build_pictures
from raysys.runs.networks import has_tokenizer, saved_tokenizer
from raysys.runs.run import Log, Run, SavedRun
from raysys.shards.sample import SampleError
from raysys.storage import join
from raysys.systems.encoder import Encoder
from raysys.training.features import cached_features
from raysys.training.job import TrainingJob


def get_tokenizer(run: Run) -> PreTrainedTokenizerFast:
    """The run's tokenizer: the one saved with it, or that of its base, or one trained on its sentences and captions; saved now."""
    if has_tokenizer(run):
        return saved_tokenizer(run)
    base, streams, settings = base_run(run.settings, run.folder), run.samples, run.settings
    assert isinstance(streams, Streams)
    with tempfile.TemporaryDirectory(prefix="raysys-tokenizer-") as scratch:
        if base is not None:
            download_folder(base.folder.storage, base.folder.path("tokenizer"), Path(scratch))
        else:
            sentences = streams.triples.all_sentences() if streams.triples is not None else ()
            captions = (text for _, texts, _ in picture_texts(streams.captions, settings.data.language) for text in texts)
            text = settings.model.text
            train_word_tokenizer(itertools.chain(sentences, captions), text.vocabulary_size, text.form.max_tokens).save_pretrained(scratch)
        upload_folder(run.folder.storage, Path(scratch), run.folder.path("tokenizer"), mark="tokenizer.json")
    return saved_tokenizer(run)


def picture_texts(
    captions: Samples | None, language: str, bad: list[BadSample] | None = None, chunk: int = 1024
) -> Iterator[tuple[int, list[str], dict[str, Any]]]:
    """Of all samples that can be used, in order: number, everything that is said of its picture in `language`, free fields.

    Args:
        captions: the samples; None: there are none.
        language: BCP-47 tag.
        bad: takes those that cannot be used, where the policy allows any; of training data, training names them.
        chunk: samples that are read at a time.

    Raises:
        BadDataError: a bad sample, where the policy is `raise`.
    """
    for start in range(0, 0 if captions is None else len(captions), chunk):
        assert captions is not None
        ids = np.arange(start, min(start + chunk, len(captions)))
        for number, raw in zip(ids.tolist(), captions.try_read(ids), strict=True):
            try:
                if isinstance(raw, SampleError):
                    raise raw
                found = captions.captions(raw)
                yield number, visually_equivalent(found, language, raw.where), found.extra
            except SampleError as error:
                found_bad = captions.policy.accept(captions.describe_bad(number, error))
                if bad is not None:
                    bad.append(found_bad)


def make_job(run: Run, tokenizer: PreTrainedTokenizerFast, log: Log = print) -> TrainingJob:
    """What the workers are told. Ray must be running if image vectors are to be computed."""
    settings, streams = run.settings, run.samples
    assert isinstance(streams, Streams)
    features = picture_features(run, streams.captions, log) if streams.captions is not None else None
    builder = GroundedBuilder(
        streams.triples,
        streams.captions,
        settings.data.language,
        tokenizer,
        settings.model.text.form,
        settings.training.seed,
        features,
        run.plan.spares,
    )
    return TrainingJob(
        settings=settings.training,
        build=functools.partial(build_grounded, settings, len(tokenizer), get_start(run, tokenizer, log)),
        plan=run.plan,
        builder=builder,
        total_steps=run.total_steps,
        folder=run.folder,
        image=settings.data.image,
        decode_threads=1,
    )


def get_start(run: Run, tokenizer: PreTrainedTokenizerFast, log: Log) -> GroundedStart:
    """Where the run's parts begin: as saved with it, or taken from its base and saved now."""
    start = saved_start(run)
    if start.base is not None or (base := base_run(run.settings, run.folder)) is None:
        return start
    encoder = make_encoder(base, tokenizer, base.checkpoint("best"))
    start = GroundedStart(encoder.system.text.state_dict())
    if run.settings.system == "seq":
        log("predicting the pictures of all captions from their vectors, by linear regression")
        start = start._replace(fitted=fit_sequential(run, encoder, start, log))
    save_start(run, start)
    return start


def fit_sequential(run: Run, encoder: Encoder, start: GroundedStart, log: Log) -> dict[str, Tensor]:
    """The regression and the principal components of the system seq, by the run's captions.

    Args:
        run: of that system.
        encoder: of its base.
        start: its sentence encoder.
        log: takes a line for people.
    """
    captions = run.samples.captions
    assert isinstance(captions, Samples)
    features = picture_features(run, captions, log)
    everything = picture_texts(captions, run.settings.data.language)
    said = [(number, text) for number, texts, _ in everything if number not in features.bad for text in texts]
    system = build_grounded(run.settings, len(encoder.tokenizer), start)
    pictures = features.read(np.array([number for number, _ in said]))[:, 0].astype(np.float32)
    system.fit(encoder.encode_in_space([text for _, text in said], "text"), pictures)
    return dict(system.named_buffers())


def picture_features(run: SavedRun, pictures: Samples, log: Log) -> FeatureCache:
    """The vectors of the frozen image network of all pictures, shared by all runs in the same storage."""
    settings = run.settings
    training = settings.training
    # Random weights are those of the run's seed; weights that come with the network are the same for all seeds.
    if settings.model.image.pretrained and settings.model.image.backbone not in RANDOM:
        training = training.model_copy(update={"seed": 0})
    folder = join(os.path.dirname(run.folder.uri), "image-vectors")
    build = functools.partial(build_pictures, settings.model, training.seed)
    key = {"image": settings.model.image.model_dump(mode="json")}
    return cached_features(pictures, build, settings.data.image, 1, training, folder, key, log)
