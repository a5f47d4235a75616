"""What a pre-training run is made of: its tokenizer and the job that its workers do."""

import functools
import itertools
import tempfile
from collections.abc import Iterator
from pathlib import Path

from transformers import PreTrainedTokenizerFast

from raysys.data.captions import all_captions
from raysys.data.language_codes import language_ids
from raysys.data.multilingual_tokenizer import train_multilingual_tokenizer
from raysys.data.rc3_builder import Rc3Builder
from raysys.data.samples import Samples
from raysys.data.streams import Rc3Streams
from raysys.data.tokenizer import pretrained_tokenizer
from raysys.models.vocabulary_reduction import reduce_vocabulary
from raysys.runs.folders import upload_folder
from raysys.runs.networks import has_tokenizer, saved_tokenizer
from raysys.runs.rc3.networks import build_rc3, kept_pieces
from raysys.runs.run import Log, Run
from raysys.systems.rc3.names import first_language_of
from raysys.training.job import TrainingJob


def get_tokenizer(run: Run, log: Log = print) -> PreTrainedTokenizerFast:
    """The run's tokenizer: the one saved with it, or the used part of its pretrained network's, or one trained on its texts; saved now."""
    if has_tokenizer(run):
        return saved_tokenizer(run)
    network, languages = run.settings.model.network, run.settings.data.languages
    with tempfile.TemporaryDirectory(prefix="raysys-tokenizer-") as scratch:
        if network.pretrained is None:
            trained = train_multilingual_tokenizer(texts_of(run.samples), languages, network.vocabulary_size, network.max_tokens)
            trained.save_pretrained(scratch)
        else:
            reduction = reduce_vocabulary(pretrained_tokenizer(network.pretrained), texts_of(run.samples), network.cover)
            log(
                f"of the {reduction.pieces_before:,} pieces of {network.pretrained}, {reduction.pieces_after:,} are kept, "
                f"which cover {reduction.cover:.3%} of the training texts"
            )
            reduction.save(scratch)
        upload_folder(run.folder.storage, Path(scratch), run.folder.path("tokenizer"), mark="tokenizer.json")
    return saved_tokenizer(run)


def texts_of(streams: Rc3Streams) -> Iterator[str]:
    """Every text of all streams in the languages in use, in order."""
    captioned = (all_captions(part) for part in (streams.strict, streams.weak) if isinstance(part, Samples))
    parallel = streams.parallel.all_texts() if streams.parallel is not None else ()
    return (text for _, text in itertools.chain(*captioned, parallel))


def make_job(run: Run, tokenizer: PreTrainedTokenizerFast, log: Log = print) -> TrainingJob:
    """What the workers are told."""
    settings, data, network = run.settings, run.settings.data, run.settings.model.network
    tags = language_ids(tokenizer, data.languages)
    builder = Rc3Builder(
        run.samples,
        data.languages,
        tokenizer,
        tags,
        network.form,
        settings.training.seed,
        data.strict_visual,
        network.regions,
        network.region_size,
        data.image if data.decode == "cluster" else None,
        run.plan.spares,
        first_language_of(settings.system),
    )
    return TrainingJob(
        settings=settings.training,
        build=functools.partial(build_rc3, settings, len(tokenizer), tokenizer.mask_token_id, kept_pieces(run)),
        plan=run.plan,
        builder=builder,
        total_steps=run.total_steps,
        folder=run.folder,
        image=data.image,
        decode_threads=data.decode_threads,
    )
