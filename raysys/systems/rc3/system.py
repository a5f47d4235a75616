"""RC³ and its rivals: one network, pre-trained by one objective or another."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal

import torch
from torch import Tensor

from raysys.data.masking import IGNORED
from raysys.data.rc3_batches import PARALLEL, STRICT, WEAK, Rc3Batch
from raysys.models.visual_mbart import Encoded
from raysys.objectives.related import text_numbers
from raysys.systems.rc3.corruption import hidden_regions, hidden_spans, infilled, joined
from raysys.systems.rc3.encoder import Rc3Encoder
from raysys.systems.rc3.exchange import with_near_texts
from raysys.systems.rc3.heads import ImageGate, MatchingHead, RegionHead
from raysys.systems.rc3.losses import Rc3Losses
from raysys.systems.rc3.names import losses_of, masks_regions, uses_decoder
from raysys.systems.rc3.readings import Chosen, Reading, image_of, read, with_room
from raysys.systems.rc3.settings import Rc3ModelSettings, Rc3ObjectiveSettings

TARGETS = {"mclm": "second", "translation": "second", "infilling": "first", "spans": "first"}
"""Losses of the decoder; a system has one at most. And which of a row's texts is written."""


class Rc3System(Rc3Encoder):
    """The network, and the heads that its losses need.

    ``forward(batch)`` gives this worker's rows, ``losses(rows)`` the named terms, computed from the rows of the whole global batch.
    Every worker runs every part that the run's data reach, whatever its rows, and gives its parameters a gradient in every batch, as
    engines that partition weights need it; rows do not count in losses of what they lack.

    Args:
        name: an :data:`raysys.systems.rc3.names.Rc3Name`.
        model: the network.
        objective: what is minimised; losses that the system has not are left out.
        kept: ids of a pretrained vocabulary that stay; None: all.
        mask_id: the tokenizer's mask token; VL-BART and VL-T5 cannot be trained without.

    Raises:
        UserError: the settings do not fit the system, or a pretrained network cannot be had.
    """

    def __init__(
        self,
        name: str,
        model: Rc3ModelSettings,
        objective: Rc3ObjectiveSettings,
        kept: Sequence[int] | None = None,
        mask_id: int | None = None,
    ):
        super().__init__(name, model, objective, kept)
        self.trained_by, self.mask_id = losses_of(name), mask_id
        size, region_size = self.network.size, model.network.region_size
        if self._has("itm"):
            self.matching = MatchingHead(size)
        if self._has("masked_regions"):
            self.of_regions = RegionHead(size, region_size)
        if name == "memad":
            self.gate = ImageGate(size, region_size)
            self.network.visual.requires_grad_(False)
        if not uses_decoder(name):
            self.network.mbart.model.decoder.requires_grad_(False)
            self.network.mbart.model.encoder.requires_grad_(True)  # its words are the decoder's
        self.history = Rc3Losses(name, self.objective)

    def checkpoint_activations(self) -> None:
        """Let the network recompute its activations in the backward pass: less memory, more time, the same gradients."""
        self.network.checkpoint_activations()

    @property
    def neighbour_keys(self) -> Literal["recent"] | None:
        """Contrastive losses remember how they were (:meth:`remember`)."""
        return "recent" if len(self.history.histories) else None

    def remember(self, rows: dict[str, Tensor]) -> None:
        """Keep p⁺ of the step that `rows` were computed in."""
        self.history.remember(rows)

    @property
    def exchange(self) -> Callable[[Rc3Batch, Callable[[Tensor], Tensor], int], Rc3Batch] | None:
        """Gives rows the texts of near rows, in systems that read images with other rows' texts."""
        return self._exchange if self._has("itm", "rxvtcl") else None

    def _exchange(self, batch: Rc3Batch, gather: Callable[[Tensor], Tensor], first: int) -> Rc3Batch:
        if self._has("rxvtcl"):
            return with_near_texts(batch, gather, first, self.objective.rxvtcl.near)
        return with_near_texts(batch, gather, first, near=1, one_way=True)

    def forward(self, batch: Rc3Batch) -> dict[str, Tensor]:
        """This worker's part of what the losses need; every tensor has one row per sample, zeros where it is not known of a row.

        Returns:
            `kinds`, `image_ids`, `languages`: int64 [n]; `texts`: int64 [n, 2], equal numbers for equal texts; `tr_first`, `tr_second`,
            `vtr_first`, `vtr_second`: float32 [n, d]; `vtr_near_first`, `vtr_near_second`: float32 [n, K, d], of the row's image with
            the texts of the rows `near`, int64 [n, K] (−1: none); `matching`, `matching_other`: scores, float32 [n]; and of losses of
            words and regions `<loss>_sum`: float32 [n], `<loss>_count`: int64 [n]. What no loss needs is absent.

            In evaluation: `kinds`, `image_ids`, `languages`, `texts`, and TR and VtR of both texts of all rows.
        """
        batch = with_room(batch)
        numbers = [text_numbers(batch.first_ids, batch.first_mask), text_numbers(batch.second_ids, batch.second_mask)]
        rows = {
            "kinds": batch.kinds,
            "image_ids": batch.image_ids,
            "languages": batch.first_languages,
            "texts": torch.stack(numbers, dim=1),
        }
        if not self.training:
            return rows | self._vectors(batch)
        if self._has("itm", "rxvtcl"):
            if batch.near_rows is None:
                raise ValueError("the batch lacks the texts of near rows: exchange has not been called")
            rows["near"] = batch.near_rows
        return rows | self._with_images(batch) | self._without_images(batch)

    def _vectors(self, batch: Rc3Batch) -> dict[str, Tensor]:
        every = torch.arange(len(batch.kinds), device=batch.kinds.device)
        both = {"first": Reading(every, batch.first_ids, batch.first_mask), "second": Reading(every, batch.second_ids, batch.second_mask)}
        alone, seen = read(self.network, both), read(self.network, both, image_of(batch))
        vectors = {f"tr_{name}": encoded.first for name, encoded in alone.items()}
        return vectors | {f"vtr_{name}": encoded.first for name, encoded in seen.items()}

    def _with_images(self, batch: Rc3Batch) -> dict[str, Tensor]:
        """What is read together with images."""
        strict = Chosen.kinds(batch, STRICT)
        pictured = Chosen.kinds(batch, STRICT, WEAK) if self._has("rxvtcl") else strict
        labels, hidden, readings = batch.first_labels[strict.rows], None, {}
        if masks_regions(self.name):
            assert batch.region_draws is not None and batch.region_mask is not None, "the batch has no regions"  # noqa: PT018
            hidden = hidden_regions(batch.region_draws, batch.region_mask, self.objective.masked_regions)[strict.rows]
        if self._has("mlm", "mclm", "masked_regions", "infilling", "spans"):
            readings["masked"] = Reading(strict.rows, *self._corrupted(batch, strict.rows), hidden)
        if self._has("pair_mlm"):
            ids, mask, pair_labels = self._pairs(batch, strict.rows)
            readings["pair"] = Reading(strict.rows, ids, mask)
        if self._has("itm", "rxvtcl"):
            readings |= self._contrasted(batch, pictured.rows)
        seen, found = read(self.network, readings, image_of(batch)), dict[str, Tensor]()
        if self._has("mlm"):
            found |= self._words("mlm", seen["masked"], labels, strict)
        if self._has("pair_mlm"):
            found |= self._words("pair_mlm", seen["pair"], pair_labels, strict)
        if self._has("masked_regions"):
            assert hidden is not None
            found |= self._regions(seen["masked"], batch, hidden, strict)
        if self._has("mclm", "infilling", "spans"):
            found |= self._written(seen["masked"], batch, strict)
        if self._has("rxvtcl"):
            found |= {f"vtr_{name}": pictured.spread(seen[name].first) for name in ("first", "second")}
            for name in ("near_first", "near_second"):
                found[f"vtr_{name}"] = pictured.spread(seen[name].first.unflatten(0, (len(pictured.rows), -1)))
        if self._has("itm"):
            others = seen["near_first"].first.unflatten(0, (len(pictured.rows), -1))[:, 0]
            scores = self.matching(torch.cat([seen["first"].first, others])).chunk(2)
            found |= {name: pictured.spread(score) for name, score in zip(("matching", "matching_other"), scores, strict=True)}
        return found

    def _without_images(self, batch: Rc3Batch) -> dict[str, Tensor]:
        """What is read as text alone."""
        readings, parallel = {}, Chosen.kinds(batch, PARALLEL)
        kinds = {PARALLEL} if self._has("xtcl") else set()
        kinds |= {STRICT} if self._has("xtcl") and self.objective.xtcl.on_strict else set()
        kinds |= {WEAK} if self._has("kl") else set()
        chosen, sources = Chosen.kinds(batch, *kinds), Chosen.kinds(batch, STRICT, PARALLEL)
        if kinds:
            readings["first"] = Reading(chosen.rows, batch.first_ids[chosen.rows], batch.first_mask[chosen.rows])
            readings["second"] = Reading(chosen.rows, batch.second_ids[chosen.rows], batch.second_mask[chosen.rows])
        if self._has("text_mlm"):
            readings["masked"] = Reading(parallel.rows, batch.first_masked[parallel.rows], batch.first_mask[parallel.rows])
        if self._has("translation"):
            readings["source"] = Reading(sources.rows, batch.first_ids[sources.rows], batch.first_mask[sources.rows])
        alone = read(self.network, readings)
        found = {f"tr_{name}": chosen.spread(alone[name].first) for name in ("first", "second") if kinds}
        if self._has("text_mlm"):
            found |= self._words("text_mlm", alone["masked"], batch.first_labels[parallel.rows], parallel)
        if self._has("translation"):
            assert batch.regions is not None and batch.region_mask is not None, "the batch has no regions"  # noqa: PT018
            states = self.gate(alone["source"].states, batch.regions[sources.rows], batch.region_mask[sources.rows])
            found |= self._written(replace(alone["source"], states=states), batch, sources)
        return found

    def _corrupted(self, batch: Rc3Batch, rows: Tensor) -> tuple[Tensor, Tensor]:
        """The first texts as the encoder is to read them, ids and mask."""
        if not self._has("infilling", "spans"):
            return batch.first_masked[rows], batch.first_mask[rows]
        return infilled(batch.first_ids[rows], batch.first_mask[rows], batch.first_labels[rows], self._mask_id)

    def _pairs(self, batch: Rc3Batch, rows: Tensor) -> list[Tensor]:
        """Both texts as one, ids, mask and labels."""
        texts = [(batch.first_masked[rows], batch.first_mask[rows]), (batch.second_masked[rows], batch.second_mask[rows])]
        return joined(texts, [batch.first_labels[rows], batch.second_labels[rows]], longest=self.model.network.max_tokens)

    def _contrasted(self, batch: Rc3Batch, rows: Tensor) -> dict[str, Reading]:
        """Images with their own texts and with those of near rows; with second ones where these are contrasted."""
        found: dict[str, Reading] = {}
        for name in ("first", "second") if self._has("rxvtcl") else ("first",):
            found[name] = Reading(rows, getattr(batch, f"{name}_ids")[rows], getattr(batch, f"{name}_mask")[rows])
            ids, mask = getattr(batch, f"near_{name}_ids")[rows], getattr(batch, f"near_{name}_mask")[rows]
            found[f"near_{name}"] = Reading(rows.repeat_interleave(ids.shape[1]), ids.flatten(0, 1), mask.flatten(0, 1))
        return found

    def _words(self, loss: str, encoded: Encoded, labels: Tensor, chosen: Chosen) -> dict[str, Tensor]:
        """Of masked words of the chosen rows, `labels` int64 [m, L], the encoder's losses."""
        wanted = labels != IGNORED
        nll = self.network.word_nll(encoded.text_states[:, : labels.shape[1]][wanted], labels[wanted])
        sums = nll.new_zeros(len(labels)).index_add(0, wanted.nonzero()[:, 0], nll)
        return {f"{loss}_sum": chosen.spread(sums), f"{loss}_count": chosen.spread(wanted.sum(dim=1))}

    def _written(self, encoded: Encoded, batch: Rc3Batch, chosen: Chosen) -> dict[str, Tensor]:
        """Of texts of the chosen rows, the decoder's losses."""
        (loss,) = (name for name in self.trained_by if name in TARGETS)
        ids, mask = (getattr(batch, f"{TARGETS[loss]}_{part}")[chosen.rows] for part in ("ids", "mask"))
        languages = ids.gather(1, (mask.sum(dim=1, keepdim=True) - 1).clamp(min=0))[:, 0]  # a text ends with its language
        if loss == "spans":
            ids, mask = hidden_spans(ids, mask, batch.first_labels[chosen.rows], self._mask_id)
            ids, mask = ids[:, : self.model.network.max_tokens], mask[:, : self.model.network.max_tokens]
        sums, counts = self.network.next_word_nll(encoded, ids, mask, languages)
        return {f"{loss}_sum": chosen.spread(sums), f"{loss}_count": chosen.spread(counts)}

    def _regions(self, encoded: Encoded, batch: Rc3Batch, hidden: Tensor, chosen: Chosen) -> dict[str, Tensor]:
        """Of the `hidden` regions of the chosen rows, bool [m, R], the mean squared error of their features."""
        assert encoded.region_states is not None and batch.regions is not None  # noqa: PT018
        guessed, features = self.of_regions(encoded.region_states[hidden]), batch.regions[chosen.rows][hidden].float()
        errors = (guessed - features).square().mean(dim=1)
        sums = errors.new_zeros(len(hidden)).index_add(0, hidden.nonzero()[:, 0], errors)
        return {"masked_regions_sum": chosen.spread(sums), "masked_regions_count": chosen.spread(hidden.sum(dim=1))}

    @property
    def _mask_id(self) -> int:
        if self.mask_id is None:
            raise ValueError(f"system {self.name} hides spans of texts, and was not told the tokenizer's mask token")
        return self.mask_id

    def _has(self, *losses: str) -> bool:
        return not set(self.trained_by).isdisjoint(losses)

    def losses(self, rows: dict[str, Tensor]) -> dict[str, Tensor]:
        """The terms of the objective, each a scalar and not yet weighted, for the global batch's `rows`."""
        return self.history.terms(rows)

    def total(self, terms: dict[str, Tensor]) -> Tensor:
        """The weighted sum of the losses."""
        return self.history.total(terms)

    def temperature_values(self, rows: dict[str, Tensor]) -> dict[str, float]:
        """None: no loss has a temperature."""
        return {}
