"""A pre-training run of RC³ or a rival: its data and plan, checked before anything is started."""

from raysys.data.grouped_plan import GroupedPlan
from raysys.data.pairs import Pairs
from raysys.data.plan import Plan
from raysys.data.streams import Rc3Streams
from raysys.errors import UserError
from raysys.runs.describe import describe_passes, describe_training
from raysys.runs.rc3.settings import STREAMS, Rc3DataSettings, Rc3Settings
from raysys.runs.run import Log, Run, check_resumable, micro_batches, open_settings, with_data
from raysys.storage import Storage
from raysys.systems.rc3.names import first_language_of, losses_of, streams_of
from raysys.training.run_folder import RunFolder
from raysys.training.settings import TrainingSettings

TOLD = {"strict": "pictures with translations", "weak": "pictures with texts that are not parallel", "parallel": "parallel texts"}
"""What the samples of each stream are, in words."""


def open_rc3(settings: Rc3Settings, log: Log = print) -> Run:
    """Open the data and make the plan; every fault of settings or data is raised here, before training starts.

    Raises:
        UserError: says what is wrong and what to change.
    """
    settings, folder = open_settings(settings)
    if folder.exists() and not settings.data.languages:
        settings = with_data(settings, languages=folder.load_settings(Rc3Settings).data.languages)
    check_resumable(settings, folder)
    streams = load_streams(settings.data, first_language_of(settings.system), folder.storage, log)
    settings = with_data(settings, languages=streams.languages)
    return Run(settings, folder, streams, None, make_plan(settings.training, settings.data, streams, folder, log))


def load_streams(data: Rc3DataSettings, first: str | None, storage: Storage, log: Log) -> Rc3Streams:
    """The streams that the settings name, all in the languages in use.

    Args:
        data: which.
        first: language that each sample of D_s has to have a caption in; None: any two.
        storage: the door to the shards.
        log: takes a line for people.

    Raises:
        UserError: a folder is missing, or a language that is asked for is in none of them.
    """
    languages = data.languages
    strict = data.load(data.strict, languages, storage, log, pairs=True, including=first) if data.strict else None
    weak = data.load(data.weak, languages, storage, log, pairs=True) if data.weak else None
    folders = [data.locate(name) for name in data.parallel]
    parallel = Pairs.load(folders, languages, storage, log, data.layout, data.policy) if folders else None
    for name, part in zip(STREAMS, (strict, weak, parallel), strict=True):
        if part is not None and part.left_out:
            log(f"{name}: {part.left_out} samples left out: bad ones, and those with texts in fewer than two of the languages in use")
    streams = Rc3Streams(strict, weak, parallel)
    there = {tag for manifest in streams.manifests for tag in manifest.languages()}
    if missing := [language for language in data.languages if language not in there]:
        raise UserError(f"data.languages: no stream has texts in {', '.join(missing)}; languages there: {', '.join(sorted(there))}")
    return streams


def make_plan(training: TrainingSettings, data: Rc3DataSettings, streams: Rc3Streams, folder: RunFolder, log: Log) -> Plan:
    """The order of training: every batch has its share of each stream."""
    parts = micro_batches(training, folder, streams.fingerprint, log)
    order = (training.global_batch, training.seed, data.run_length, data.window_steps, "drop", parts)
    kinds = [(numbers, share) for kind, share in enumerate(shares_of(data)) if len(numbers := streams.numbers(kind))]
    if len(kinds) == 1:
        return Plan(len(streams), *order)  # type: ignore[arg-type]
    groups, shares = zip(*kinds, strict=True)
    return GroupedPlan(groups, shares, *order, mixed=True)


def shares_of(data: Rc3DataSettings) -> tuple[int, int, int]:
    """Samples in a round of D_s, D_w and D_t."""
    return data.strict_share, data.weak_share, data.parallel_share


def with_batch(settings: Rc3Settings, system: str) -> Rc3Settings:
    """Settings with batches of those streams alone that `system` reads, so that systems that are compared see as many samples of a stream
    in a step: `training.global_batch` is that of all three streams."""
    shares = dict(zip(STREAMS, shares_of(settings.data), strict=True))
    read = sum(shares[name] for name in streams_of(system))
    batch = max(1, round(settings.training.global_batch * read / sum(shares.values())))
    return settings.model_copy(update={"training": settings.training.model_copy(update={"global_batch": batch})})


def describe_rc3(run: Run) -> list[str]:
    """The plan in lines for people."""
    streams, plan, settings = run.samples, run.plan, run.settings
    assert isinstance(streams, Rc3Streams)
    there = {name: len(streams.numbers(kind)) for kind, name in enumerate(STREAMS) if len(streams.numbers(kind))}
    told = ", ".join(f"{number} {TOLD[name]}" for name, number in there.items())
    lines = describe_training(
        run,
        f"data {told}, in {', '.join(streams.languages)}",
        f"losses {', '.join(losses_of(settings.system))}, each over the whole global batch",
    )
    if isinstance(plan, GroupedPlan):
        lines.append(describe_passes(plan, tuple(there)))
    return lines
