"""A fine-tuned network with all that it needs to answer: what a run of fine-tuning exports, and what scores it.

An export is a folder::

    raysys.json           task, answers, forms of text and image, languages, data fingerprint
    heads.safetensors     the task's layer (none of `mmt`)
    text/                 the network and the tokenizer, as :class:`raysys.models.visual_mbart.VisualMBart` saves them
"""

import json
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers import PreTrainedTokenizerFast

from raysys.data.encoding import TextForm
from raysys.data.images import ImagePreprocessorSettings
from raysys.data.task_builder import TaskInputs
from raysys.data.task_records import TaskName
from raysys.data.tokenizer import load_tokenizer
from raysys.errors import UserError
from raysys.models.visual_mbart import VisualMBart
from raysys.settings import from_mapping
from raysys.systems.encoder import CARD
from raysys.systems.rc3.tasks import TaskSystem

_HEADS, _NETWORK = "heads.safetensors", "network."


class TaskModel:
    """A fine-tuned network, in evaluation mode.

    Args:
        system: the network on its task.
        tokenizer: the run's.
        inputs: how records become what it reads.
        info: what else the export tells: run, step, data fingerprint.
    """

    def __init__(self, system: TaskSystem, tokenizer: PreTrainedTokenizerFast, inputs: TaskInputs, info: dict[str, Any]):
        self.system, self.tokenizer, self.inputs, self.info = system.eval(), tokenizer, inputs, info

    def to(self, device: torch.device | str) -> "TaskModel":
        """The same model, computing on `device`."""
        self.system.to(device)
        return self

    @property
    def task(self) -> TaskName:
        """What it is for."""
        return self.system.task

    def save(self, folder: str | Path) -> None:
        """Write the export folder."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        self.system.network.save_pretrained(folder / "text")
        self.tokenizer.save_pretrained(folder / "text")
        save_file(self._head(), folder / _HEADS)
        card = {
            "system": self.task,
            "visual": self.system.visual,
            "gated": self.system.gated,
            "max_tokens": self.inputs.form.max_tokens,
            "preprocessing": self.inputs.image.model_dump(mode="json"),
            "answers": list(self.inputs.classes),
            "info": self.info,
        }
        (folder / CARD).write_text(json.dumps(card, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")

    def _head(self) -> dict[str, Tensor]:
        state = self.system.state_dict()
        return {name: value.detach().cpu().contiguous() for name, value in state.items() if not name.startswith(_NETWORK)}

    @classmethod
    def load(cls, folder: str | Path) -> "TaskModel":
        """Load an exported folder. Raises UserError where it is none."""
        folder = Path(folder)
        try:
            card = json.loads((folder / CARD).read_text(encoding="utf-8"))
            classes = tuple(card["answers"])
            network = VisualMBart.load(folder / "text")
            system = TaskSystem(card["system"], network, card["visual"], len(classes), gated=card["gated"])
            state = load_file(folder / _HEADS)
            missing = {name for name in system.state_dict() if not name.startswith(_NETWORK)} ^ state.keys()
            if missing:
                raise UserError(f"{folder} is not a whole export: {_HEADS} does not fit the task {card['system']} ({sorted(missing)[0]})")
            system.load_state_dict(state, strict=False)
            image = from_mapping(ImagePreprocessorSettings, card["preprocessing"], f"{folder}/{CARD}")
            form = TextForm(card["max_tokens"])
            inputs = TaskInputs(form, image, network.settings.regions, network.settings.region_size, classes)
            return cls(system, load_tokenizer(folder / "text"), inputs, card["info"])
        except (OSError, ValueError, KeyError, RuntimeError, SafetensorError) as error:
            told = " ".join(str(error).split())
            raise UserError(
                f"{folder} is not a whole export of a fine-tuned run ({type(error).__name__}: {told}): export the run again"
            ) from None
