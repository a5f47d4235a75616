"""SkipThought, grounded or not: T, C, P and CM in all combinations of the paper."""

import torch
from torch import Tensor

from raysys.data.batches import stack_texts
from raysys.data.grounded_batches import GroundedBatch
from raysys.models.projection import Projection
from raysys.models.skip_thought import CaptionDecoder, NeighbourDecoders
from raysys.objectives.cluster import cluster_loss
from raysys.objectives.perceptual import perceptual_loss
from raysys.objectives.ranking import cross_modal_loss, ranking_loss
from raysys.systems.grounded.encoder import GroundedEncoder
from raysys.systems.grounded.names import Space, losses_of, projection_of
from raysys.systems.grounded.settings import GroundedModelSettings, GroundedObjectiveSettings


class GroundedSystem(GroundedEncoder):
    """A sentence encoder, and the parts that its losses need: decoders, and projections into other spaces.

    ``forward(batch)`` gives this worker's rows, ``losses(rows)`` the named terms, computed from the rows of the whole global batch.
    Every worker runs every part, whatever its rows, and every trained parameter gets a gradient in every batch, as engines that
    partition weights need it; rows do not count in losses of what they lack.
    """

    neighbour_keys = None
    exchange = None

    def __init__(self, name: str, model: GroundedModelSettings, objective: GroundedObjectiveSettings):
        super().__init__(name, model, objective)
        self.trained_by = losses_of(name)
        size, hidden = self.text.settings.size, model.space.hidden
        if "text" in self.trained_by:
            self.decoders = NeighbourDecoders(self.text.settings, self.text.words)
        if "caption" in self.trained_by:
            self.caption_decoder = CaptionDecoder(self.text.settings, self.text.words)
        if projection_of(name) == "mlp":
            self.to_grounded = Projection(size, hidden, model.space.size)
        if {"cross_modal", "ranking"} & set(self.trained_by):
            self.to_visual = Projection(size, hidden, self.picture_size)

    def checkpoint_activations(self) -> None:
        """Let the encoder recompute its activations in the backward pass: less memory, more time, the same gradients."""
        self.text.checkpoint_activations()

    def forward(self, batch: GroundedBatch) -> dict[str, Tensor]:
        """This worker's part of what the losses need; every tensor has one row per sample.

        Returns:
            `text_nll`, `caption_nll`: nats, float32 [n], and `has_triple`, `has_other`: bool [n], for which rows they are known;
            `grounded`, `others`: g(s) and g(s⁺), `visual`: f(s), `images`: the pictures' vectors, float32 [n, d]; `image_ids`: int64
            [n], `draws`: float32 [n]. What no loss needs is absent.
        """
        losses = self.trained_by
        sentences = [(batch.input_ids, batch.attention_mask)]
        if "cluster" in losses:
            sentences.append(_present(batch.other_ids, batch.other_mask))
        # One pass over all sentences: several passes would need several sets of hooks in ZeRO 3.
        read = self.text(*stack_texts(sentences)).split(len(batch.ids))
        rows: dict[str, Tensor] = {}
        if "text" in losses:
            neighbours = [_present(batch.previous_ids, batch.previous_mask), _present(batch.next_ids, batch.next_mask)]
            rows["text_nll"], _ = self.decoders(read[0], neighbours)
            rows["has_triple"] = neighbours[1][1].any(dim=1)
        if "caption" in losses:
            rows["caption_nll"], _ = self.caption_decoder(read[0], *_present(batch.other_ids, batch.other_mask))
        if "caption" in losses or "cluster" in losses:
            rows["has_other"] = _present(batch.other_ids, batch.other_mask)[1].any(dim=1)
        if self.reads_captions:
            assert batch.features is not None
            rows |= {"image_ids": batch.image_ids, "draws": batch.draws, "images": batch.features}
        if "cluster" in losses or "perceptual" in losses:
            # g of all of them at once, for the same reason
            rows |= dict(zip(("grounded", "others"), self._grounded(torch.cat(read)).split(len(batch.ids)), strict=False))
        if "cross_modal" in losses or "ranking" in losses:
            rows["visual"] = self.to_visual(read[0])
        return rows

    def _grounded(self, sentences: Tensor) -> Tensor:
        return self.to_grounded(sentences) if projection_of(self.name) == "mlp" else sentences

    def losses(self, rows: dict[str, Tensor]) -> dict[str, Tensor]:
        """The terms of the objective, each a scalar and not yet weighted, for the global batch's `rows`.

        `text` and `caption` are nats per sentence that has them. Beside `perceptual` stands `perceptual_constant`, 1 where its
        correlation was not defined in this batch, else 0: it is there to be counted, and has no weight.
        """
        losses, margins, terms = self.trained_by, self.objective.margins, {}
        if "text" in losses:
            terms["text"] = _mean_of(rows["text_nll"], rows["has_triple"])
        if "caption" in losses:
            terms["caption"] = _mean_of(rows["caption_nll"], rows["has_other"])
        if "cluster" in losses:
            chosen = rows["image_ids"], rows["has_other"], rows["draws"]
            terms["cluster"] = cluster_loss(rows["grounded"], rows["others"], *chosen, margins.cluster)
        if "perceptual" in losses:
            pictured, pairs = rows["image_ids"] != 0, self.objective.pairs
            found = perceptual_loss(rows["grounded"], rows["images"], pictured, pairs, rows["draws"])
            terms["perceptual"], terms["perceptual_constant"] = found
        if "cross_modal" in losses:
            known = rows["images"], rows["image_ids"], rows["draws"]
            terms["cross_modal"] = cross_modal_loss(rows["visual"], *known, margins.cross_modal)
        if "ranking" in losses:
            terms["ranking"] = ranking_loss(rows["visual"], rows["images"], rows["image_ids"], margins.cross_modal)
        return terms

    def total(self, terms: dict[str, Tensor]) -> Tensor:
        """The weighted sum of the losses."""
        return torch.stack([getattr(self.objective.weights, name) * terms[name] for name in self.trained_by]).sum()

    def temperature_values(self, rows: dict[str, Tensor]) -> dict[str, float]:
        """None: no loss has a temperature."""
        return {}

    def vectors(self, space: Space, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """As :meth:`GroundedEncoder.vectors` says."""
        sentences: Tensor = self.text(input_ids, attention_mask)
        if space == "grounded":
            return self._grounded(sentences)
        return self.to_visual(sentences) if space == "visual" else sentences


def _mean_of(losses: Tensor, known: Tensor) -> Tensor:
    """Mean over the rows that are `known`, bool [N], of float [N]; 0 with zero gradient where there are none."""
    return torch.where(known, losses, 0).sum() / known.sum().clamp(min=1)


def _present(ids: Tensor | None, mask: Tensor | None) -> tuple[Tensor, Tensor]:
    """Texts of a kind that all batches of the run have. Raises ValueError where this one has not: the data is not this system's."""
    if ids is None or mask is None:
        raise ValueError("the batch lacks texts that the system is trained on")
    return ids, mask
