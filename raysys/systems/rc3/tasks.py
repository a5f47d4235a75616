"""A pre-trained network on one of the five tasks: its state at [CLS] under a fully connected layer, or its decoder.

Retrieval is fine-tuned as matching (the layer gives one number) of each image with its own text among texts of other rows, and of each
text with its own image among the images that were matched with it [ours]; the paper says only by what images and texts are ranked.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import get_args

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from raysys.data.batches import stack_texts
from raysys.data.task_batches import TaskBatch
from raysys.data.task_images import VisualForm
from raysys.data.task_records import TaskName
from raysys.models.visual import Visual
from raysys.models.visual_mbart import Encoded, VisualMBart
from raysys.systems.rc3.exchange import circle_places
from raysys.systems.rc3.heads import ImageGate, MatchingHead

TASK_NAMES: tuple[TaskName, ...] = get_args(TaskName)
TASK_TITLES: dict[TaskName, str] = {
    "xvnli": "XVNLI",
    "xgqa": "xGQA",
    "marvl": "MaRVL",
    "itr": "image–text retrieval",
    "mmt": "multi-modal translation",
}
"""What the tasks are called in tables."""


class TaskSystem(nn.Module):
    """The network on a task.

    Args:
        task: which.
        network: pre-trained.
        visual: what it sees of images.
        classes: answers that can be given, in tasks of classes.
        near: of `itr`, so many rows before and after a row, in a random order of the global batch, give their texts for its image to be
            told apart from.
        gated: of `mmt`, read the text alone, and let the regions of the image gate its states, as MeMAD does.

    What the task does not read is frozen, so that nothing decays weights that nothing trains.
    """

    neighbour_keys = None

    def __init__(self, task: TaskName, network: VisualMBart, visual: VisualForm, classes: int = 0, near: int = 1, gated: bool = False):
        super().__init__()
        self.task, self.visual, self.near, self.gated, self.network = task, visual, near, gated, network
        self._freeze()
        self.dropout = nn.Dropout(network.settings.dropout)
        if task == "itr":
            self.matching = MatchingHead(network.size)
        elif task != "mmt":
            self.head = nn.Linear(network.size, classes)
        if gated:
            self.gate = ImageGate(network.size, network.settings.region_size)

    def _freeze(self) -> None:
        if self.task != "mmt":
            self.network.mbart.model.decoder.requires_grad_(False)
            self.network.mbart.model.encoder.requires_grad_(True)  # its words are the decoder's
        seen = self.network.visual
        unread: dict[VisualForm, list[nn.Module]] = {
            "patches": [seen.of_region, seen.region_norm, seen.of_box, seen.box_norm],
            "regions": [seen.of_patch, seen.patch_norm, seen.places],
            "combined": [],
        }
        for part in [seen] if self.gated else unread[self.visual]:
            part.requires_grad_(False)

    def begin(self, heads: Mapping[str, Tensor]) -> None:
        """Start the layers that pre-training had too (`matching`, `gate`) from there; `heads` are all that pre-training had, by name."""
        parts = tuple(f"{name}." for name in ("matching", "gate") if hasattr(self, name))
        own = {name: value for name, value in heads.items() if name.startswith(parts)} if parts else {}
        self.load_state_dict(own, strict=False)

    @property
    def exchange(self) -> Callable[[TaskBatch, Callable[[Tensor], Tensor], int], TaskBatch] | None:
        """As :class:`raysys.training.job.System` has it: in `itr`, the texts of each row's near rows, to be read with its image."""
        return self._near_texts if self.task == "itr" else None

    def checkpoint_activations(self) -> None:
        """Compute the network's activations again in the backward pass."""
        self.network.checkpoint_activations()

    def forward(self, batch: TaskBatch) -> dict[str, Tensor]:
        """This worker's part of what the losses need, a row per sample.

        Returns:
            Of tasks of classes: `nll`, nats, float32 [n], `answers` and `labels`, int64 [n]. Of `itr`: `scores`, float32 [n, 1 + M], of
            the row's image with its own text and with M others, `near_rows`, int64 [n, M], and `row_numbers`, int64 [n]. Of `mmt`:
            `nll`, nats of the whole translation, float32 [n], and `tokens`, int64 [n].
        """
        if self.task == "mmt":
            ids, mask = _present(batch.target_ids), _present(batch.target_mask)
            languages = ids.gather(1, mask.sum(dim=1, keepdim=True) - 1).squeeze(1)  # texts end with their language
            nll, tokens = self.network.next_word_nll(self.encode(batch), ids, mask, languages)
            return {"nll": nll, "tokens": tokens}
        if self.task == "itr":
            return self._matched(batch)
        logits, labels = self._logits(self.encode(batch)), _present(batch.labels)
        nll = functional.cross_entropy(logits, labels, ignore_index=-1, reduction="none")
        return {"nll": nll, "answers": logits.argmax(dim=1), "labels": labels}

    def _matched(self, batch: TaskBatch) -> dict[str, Tensor]:
        near, near_mask = _present(batch.near_ids), _present(batch.near_mask)
        texts, each = 1 + near.shape[1], torch.arange(len(near), device=near.device)
        ids, mask = stack_texts([(batch.text_ids, batch.text_mask), (near.flatten(0, 1), near_mask.flatten(0, 1))])
        (visual,) = images_of(batch)
        # One pass over all pairs: several would need several sets of hooks in ZeRO 3.
        scores = self.match(ids, mask, visual.rows(torch.cat([each, each.repeat_interleave(texts - 1)])))
        own, others = scores.split([len(near), len(near) * (texts - 1)])
        scores = torch.cat([own[:, None], others.view(len(near), texts - 1)], dim=1)
        return {"scores": scores, "near_rows": _present(batch.near_rows), "row_numbers": _present(batch.row_numbers)}

    def _near_texts(self, batch: TaskBatch, gather: Callable[[Tensor], Tensor], first: int) -> TaskBatch:
        longest = int(gather(batch.text_mask.sum(dim=1)).max())
        widened = (functional.pad(own, (0, longest - own.shape[1]))[:, :longest] for own in (batch.text_ids, batch.text_mask))
        ids, mask, numbers, images = map(gather, (*widened, batch.text_numbers, batch.image_ids))
        places = torch.from_numpy(circle_places(np.zeros(len(ids), dtype=np.int64), batch.step, self.near)).to(ids.device)
        chosen = places.clamp(min=0)
        related = (numbers[chosen] == numbers[:, None]) | (images[chosen] == images[:, None])
        mine = slice(first, first + batch.count) if batch.count else slice(0, 1)  # a worker without rows has one of padding
        rows = torch.where(related | (places < 0), -1, places)[mine]
        near, there = rows.clamp(min=0), (rows >= 0).long()[:, :, None]
        own_numbers = torch.arange(first, first + len(rows), device=ids.device)
        return replace(batch, near_ids=ids[near], near_mask=mask[near] * there, near_rows=rows, row_numbers=own_numbers)

    def losses(self, rows: dict[str, Tensor]) -> dict[str, Tensor]:
        """One term, named as the task: the mean over records, or over words of translations; over both ways of retrieval."""
        if self.task == "itr":
            return {self.task: matching_loss(rows["scores"], rows["near_rows"], rows["row_numbers"])}
        count = rows["tokens"].sum() if self.task == "mmt" else (rows["labels"] >= 0).sum()
        return {self.task: rows["nll"].sum() / count.clamp(min=1)}

    def total(self, terms: dict[str, Tensor]) -> Tensor:
        """The one term."""
        return terms[self.task]

    def temperature_values(self, vectors: dict[str, Tensor]) -> dict[str, float]:
        """None: no loss has a temperature."""
        return {}

    def encode(self, batch: TaskBatch) -> Encoded:
        """The network's states of each row's images and text."""
        if not self.gated:
            return self.network.encode(batch.text_ids, batch.text_mask, images_of(batch))
        encoded = self.network.encode(batch.text_ids, batch.text_mask)
        regions, mask = _present(batch.regions)[:, 0], _present(batch.region_mask)[:, 0]
        return replace(encoded, states=self.gate(encoded.states, regions, mask))

    def answer(self, batch: TaskBatch) -> Tensor:
        """The most likely class of each row, int64 [n]."""
        return self._logits(self.encode(batch)).argmax(dim=1)

    def match(self, text_ids: Tensor, text_mask: Tensor, visual: Visual) -> Tensor:
        """How well text and image of each row go together, float32 [n]: larger is better, of any size."""
        return self.matching(self.dropout(self.network.encode(text_ids, text_mask, [visual]).first))

    def _logits(self, encoded: Encoded) -> Tensor:
        return self.head(self.dropout(encoded.first).to(self.head.weight.dtype)).float()


def images_of(batch: TaskBatch) -> list[Visual]:
    """The images of a batch's rows as the network takes them: one, or two of each."""
    parts = (batch.regions, batch.boxes, batch.region_mask, batch.pixels)
    given = next(part for part in parts if part is not None)
    return [Visual(*(None if part is None else part[:, place] for part in parts)) for place in range(given.shape[1])]


def _present(rows: Tensor | None) -> Tensor:
    """A part that all batches of the run have. Raises ValueError where this one has not: the data is not this task's."""
    if rows is None:
        raise ValueError("the batch lacks what the task is trained on")
    return rows


def matching_loss(scores: Tensor, near_rows: Tensor, row_numbers: Tensor) -> Tensor:
    """Cross-entropy of the right one both ways: of each image's own text among those matched with it, and of each text's own image.

    Args:
        scores: float [N, 1 + M]: of row i's image with its own text, then with M others.
        near_rows: int64 [N, M], the rows whose texts those are; −1: no text to be told apart from.
        row_numbers: int64 [N], the rows' own numbers.
    """
    known, others = near_rows >= 0, scores[:, 1:]
    of_images = functional.cross_entropy(
        torch.cat([scores[:, :1], others.masked_fill(~known, -torch.inf)], dim=1), torch.zeros_like(row_numbers), reduction="none"
    )
    places = torch.full((int(max(row_numbers.max(), near_rows.max())) + 1,), -1, dtype=torch.int64, device=scores.device)
    places[row_numbers] = torch.arange(len(scores), device=scores.device)
    image, turn = torch.nonzero(known & (places[near_rows.clamp(min=0)] >= 0), as_tuple=True)
    pairs = torch.diag_embed(scores[:, 0]).masked_fill(~torch.eye(len(scores), dtype=torch.bool, device=scores.device), -torch.inf)
    pairs = pairs.index_put((image, places[near_rows[image, turn]]), others[image, turn])
    of_texts = functional.cross_entropy(pairs.T, torch.arange(len(scores), device=scores.device), reduction="none")
    return (of_images.mean() + of_texts.mean()) / 2
