"""The pre-training run that fine-tuning begins with."""

import contextlib
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from raysys.data.images import ImagePreprocessorSettings
from raysys.errors import UserError
from raysys.models.visual_mbart import SETTINGS, VisualMBartSettings
from raysys.runs.finetune.settings import FinetuneSettings
from raysys.runs.folders import download_folder
from raysys.runs.rc3.settings import Rc3Settings
from raysys.runs.run import load_run
from raysys.settings import from_mapping
from raysys.storage import Storage, is_remote, join
from raysys.systems.encoder import CARD
from raysys.training.run_folder import RunFolder

_NETWORK = join("text", SETTINGS)


class Base(NamedTuple):
    """A finished pre-training run's export."""

    uri: str
    """Its folder."""
    gated: bool
    """Whether its images are read as MeMAD's."""
    image: ImagePreprocessorSettings
    """How its pictures were prepared."""
    network: VisualMBartSettings
    """Of what sizes its network is."""


def check_base(settings: FinetuneSettings, folder: RunFolder) -> Base:
    """The export of the run that `base` names: a folder, or a run beside this one.

    Raises:
        UserError: there is no such run, it pre-trains nothing, or it has not been finished.
    """
    run = load_run(settings.base if "/" in settings.base else folder.beside(settings.base), settings.storage)
    if not isinstance(run.settings, Rc3Settings):
        raise UserError(f"base: the run {run.folder.uri} is one of {run.settings.system}, none that python jobs/rc3.py has pre-trained")
    uri, steps, wanted = run.folder.path("export"), run.checkpoints.next_step(), run.settings.training.steps
    again = f"finish it first: python jobs/rc3.py --config {run.folder.path('settings.yaml')}"
    if wanted is not None and steps < wanted:
        raise UserError(f"base: the run {run.folder.uri} was trained for {steps} of {wanted} steps; {again}")
    if not run.folder.storage.exists(join(uri, CARD)):
        raise UserError(f"base: the run {run.folder.uri} has no export, as it was not trained to its end; {again}")
    card, network = (json.loads(run.folder.storage.read(join(uri, name))) for name in (CARD, _NETWORK))
    image = from_mapping(ImagePreprocessorSettings, card["preprocessing"], join(uri, CARD))
    gated = run.settings.system == "memad"
    if gated and (settings.system != "mmt" or settings.visual == "patches"):
        raise UserError(f"base: {run.folder.uri} is of the system memad, which is for the task mmt, with --visual regions")
    return Base(uri, gated, image, from_mapping(VisualMBartSettings, network, join(uri, _NETWORK)))


@contextlib.contextmanager
def base_export(uri: str, storage: Storage) -> Iterator[Path]:
    """An export's folder on this machine's disk."""
    if not is_remote(uri):
        yield Path(uri)
        return
    with tempfile.TemporaryDirectory(prefix="raysys-base-") as scratch:
        download_folder(storage, uri, Path(scratch))
        yield Path(scratch)
