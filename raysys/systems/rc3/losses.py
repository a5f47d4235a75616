"""The terms of the objectives of RC³ and its rivals, from the rows of the whole global batch."""

import torch
from torch import Tensor, nn

from raysys.data.rc3_batches import PARALLEL, STRICT, WEAK
from raysys.objectives.cloze import cloze_loss
from raysys.objectives.masked_words import language_weights, words_loss
from raysys.objectives.matching import matching_loss
from raysys.objectives.regularised import Triplets, relevance_loss, rxvtcl_loss
from raysys.objectives.xtcl import xtcl_loss
from raysys.systems.rc3.history import LossHistory
from raysys.systems.rc3.names import language_exponent_of, losses_of
from raysys.systems.rc3.settings import Rc3ObjectiveSettings

_OF_WORDS = ("mlm", "pair_mlm", "mclm", "translation", "infilling", "spans")


class Rc3Losses(nn.Module):
    """Has no weights, but remembers how the contrastive losses of the latest steps were.

    Args:
        name: of the system.
        objective: of the system (:func:`raysys.systems.rc3.settings.rc3_objective_of`).
    """

    def __init__(self, name: str, objective: Rc3ObjectiveSettings):
        super().__init__()
        self.objective, self.trained_by, self.exponent = objective, losses_of(name), language_exponent_of(name)
        contrastive = {"xtcl": objective.xtcl.history, "rxvtcl": objective.rxvtcl.history}
        self.histories = nn.ModuleDict({loss: LossHistory(size) for loss, size in contrastive.items() if loss in self.trained_by})

    def terms(self, rows: dict[str, Tensor]) -> dict[str, Tensor]:
        """The terms, each a scalar and not yet weighted, as :class:`raysys.systems.rc3.settings.Rc3Weights` says what they are.

        Beside `xtcl` and `rxvtcl` stand the p⁺_avg by which they drew negatives nearer, to be looked at; they have no weight.
        """
        found = {name: self._term(name, rows) for name in self.trained_by}
        return found | {f"{name}_p_average": self._history(name).mean() for name in self.histories}

    def total(self, terms: dict[str, Tensor]) -> Tensor:
        """The weighted sum of the losses."""
        return torch.stack([getattr(self.objective.weights, name) * terms[name] for name in self.trained_by]).sum()

    @torch.no_grad()
    def remember(self, rows: dict[str, Tensor]) -> None:
        """Keep exp(−L) of a step's `rows`, with L as it is without interpolation (equation 4), where there was anything to tell apart."""
        if "xtcl" in self.histories and len(self._pairs(rows)) > 1:
            self._history("xtcl").push(self._xtcl(rows, 0.0).mean())
        if "rxvtcl" in self.histories:
            kinds = [triplets for triplets in self._triplets(rows) if len(triplets.image_ids) > 1]
            if kinds:
                self._history("rxvtcl").push(torch.stack([rxvtcl_loss(triplets) for triplets in kinds]).mean())

    def _term(self, name: str, rows: dict[str, Tensor]) -> Tensor:
        if name in _OF_WORDS:
            return words_loss(rows[f"{name}_sum"], rows[f"{name}_count"], self.objective.words)
        if name == "text_mlm":
            counts = rows["text_mlm_count"]
            weights = language_weights(rows["languages"], counts > 0, self.exponent)
            return words_loss(rows["text_mlm_sum"], counts, self.objective.words, weights)
        if name == "masked_regions":
            return cloze_loss(rows["masked_regions_sum"], rows["masked_regions_count"])
        if name == "itm":
            return matching_loss(rows["matching"], rows["matching_other"], (rows["kinds"] == STRICT) & (rows["near"][:, 0] >= 0))
        if name == "xtcl":
            return self._xtcl(rows, self._power("xtcl", self.objective.xtcl.zeta)).sum()
        if name == "rxvtcl":
            power = self._power("rxvtcl", self.objective.rxvtcl.zeta)
            return torch.stack([rxvtcl_loss(triplets, power) for triplets in self._triplets(rows)]).sum()
        weak = (rows["kinds"] == WEAK).nonzero()[:, 0]
        triplets = self._triplets(rows)[1]
        return relevance_loss(triplets, rows["tr_first"][weak], rows["tr_second"][weak], self.objective.rxvtcl.detach_relevance)

    def _xtcl(self, rows: dict[str, Tensor], power: float | Tensor) -> Tensor:
        """With the first texts as anchors, and with the second ones where that is wanted: [1] or [2]."""
        pairs = self._pairs(rows)
        first, second, image_ids, texts = (rows[name][pairs] for name in ("tr_first", "tr_second", "image_ids", "texts"))
        directions = [(first, second), (second, first)] if self.objective.xtcl.symmetric else [(first, second)]
        return torch.stack([xtcl_loss(*direction, image_ids, texts, power) for direction in directions])

    def _pairs(self, rows: dict[str, Tensor]) -> Tensor:
        """Numbers of the rows that belong to D_t."""
        wanted = (PARALLEL, STRICT) if self.objective.xtcl.on_strict else (PARALLEL,)
        return torch.isin(rows["kinds"], rows["kinds"].new_tensor(wanted)).nonzero()[:, 0]

    def _triplets(self, rows: dict[str, Tensor]) -> list[Triplets]:
        """Those of D_s and those of D_w."""
        names = ("vtr_first", "vtr_second", "vtr_near_first", "vtr_near_second", "near", "image_ids", "texts")
        together = Triplets(*(rows[name] for name in names))
        return [together.of((rows["kinds"] == kind).nonzero()[:, 0]) for kind in (STRICT, WEAK)]

    def _power(self, name: str, zeta: float) -> Tensor:
        return zeta * self._history(name).mean()

    def _history(self, name: str) -> LossHistory:
        history = self.histories[name]
        assert isinstance(history, LossHistory)
        return history
