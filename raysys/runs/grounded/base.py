"""The run of SkipThought that another run begins with or stands on."""

from typing import NamedTuple

from safetensors.torch import load, save
from torch import Tensor

from raysys.errors import UserError
from raysys.runs.grounded.settings import GroundedSettings
from raysys.runs.run import SavedRun, load_run
from raysys.systems.grounded.names import GROUNDED_TITLES
from raysys.training.checkpoints import Checkpoints
from raysys.training.run_folder import RunFolder


def base_run(settings: GroundedSettings, folder: RunFolder) -> SavedRun | None:
    """The run that `model.base` names: a folder, or a run beside this one. None where there is none.

    Raises:
        UserError: there is no such run.
    """
    base = settings.model.base
    return None if base is None else load_run(base if "/" in base else folder.beside(base), settings.storage)


def check_base(settings: GroundedSettings, folder: RunFolder) -> None:
    """Raise UserError where the base is no run that this one can stand on; a run that has begun needs it no more."""
    if Checkpoints(folder, 1).latest() and folder.storage.exists(folder.path(_BASE)):
        return
    base = base_run(settings, folder)
    if base is None:
        return
    if not isinstance(base.settings, GroundedSettings) or not base.settings.uses_text:
        raise UserError(f"model.base: the run {base.folder.uri} is none of the system t, which learns from text")
    own, other = settings, base.settings
    wanted = "t-half" if own.system.startswith("gs-") or own.system == "t-half" else "t"
    if other.system != wanted:
        raise UserError(
            f"model.base: the system {own.system} ({GROUNDED_TITLES[own.system]}) needs a run of the system {wanted}; "
            f"{base.folder.uri} is one of {other.system}"
        )
    if other.data.language != own.data.language:
        raise UserError(f"model.base: the run {base.folder.uri} is in {other.data.language}, this one in {own.data.language}")
    one, two = own.model.text.model_dump(), other.model.text.model_dump()
    for name in one.keys() - {"decoder_size", "expansion", "vocabulary_size"}:
        if one[name] != two[name]:
            raise UserError(
                f"model.text.{name}: {one[name]!r} here and {two[name]!r} in the run {base.folder.uri} that this one stands on "
                "(model.base); they must be the same"
            )
    base.checkpoint("best")  # says what to do where there is none
    wanted_steps = base.settings.training.steps
    if wanted_steps is not None and base.checkpoints.next_step() < wanted_steps:
        raise UserError(
            f"model.base: the run {base.folder.uri} was trained for {base.checkpoints.next_step()} of {wanted_steps} steps; finish it first"
        )


class GroundedStart(NamedTuple):
    """Where those parts of a system begin that come from another run or are computed at once."""

    base: dict[str, Tensor] | None = None
    """Weights of the base's sentence encoder."""
    fitted: dict[str, Tensor] | None = None
    """Of the system seq: its regression and its principal components."""


_BASE, _FITTED = "base.safetensors", "sequential.safetensors"
FILES = (_BASE, _FITTED)
"""What a run keeps of its start."""


def save_start(run: SavedRun, start: GroundedStart) -> None:
    """Keep with the run where its parts began, so that loading it needs no other run."""
    for name, tensors in zip(FILES, start, strict=True):
        if tensors is not None:
            run.folder.storage.write(run.folder.path(name), save({key: value.contiguous() for key, value in tensors.items()}))


def saved_start(run: SavedRun) -> GroundedStart:
    """Where the run's parts began; None for those that it has not, or that have not begun yet."""
    storage = run.folder.storage
    return GroundedStart(*(load(storage.read(uri)) if storage.exists(uri := run.folder.path(name)) else None for name in FILES))
