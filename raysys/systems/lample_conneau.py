"""Cross-lingual sentence vectors from text alone (Lample and Conneau), the baseline that never sees an image."""

import contextlib
from collections.abc import Iterator

import torch
from torch import Tensor, nn

from raysys.data.batches import Batch, stack_texts
from raysys.data.encoding import TextForm
from raysys.errors import UserError
from raysys.models.heads import ClozeHead
from raysys.models.text import TextEncoder, mean_of_tokens
from raysys.models.translator import TranslationDecoder, WordHead, add_noise, length_groups, translate, trimmed
from raysys.objectives.cloze import cloze_loss
from raysys.objectives.similarity import unit_vectors
from raysys.systems.settings import ModelSettings, ObjectiveSettings

TERMS = ("cloze", "denoising", "back_translation")


class LampleConneau(nn.Module):
    """One encoder and one decoder for all languages, trained on captions without images and without translations.

    * cloze: the encoder predicts hidden tokens;
    * denoising: the decoder writes a caption from its noised copy;
    * back-translation: it writes a caption from the translation that the networks themselves, as they are, make of it into a
      language drawn at random.

    A sentence's vector is the mean of the encoder's outputs. The encoder knows no language, the decoder is told which to write.

    Args:
        model: `text` and `translator` are used.
        objective: not used, since the weights of these losses are the translator's.
        languages: how many there are.

    Raises:
        UserError: fewer than two languages, or character trigrams, which would tell the losses what they hide.
    """

    uses_images = False
    reads_languages = False
    neighbour_keys = None
    exchange = None

    def __init__(self, model: ModelSettings, objective: ObjectiveSettings, languages: int):
        super().__init__()
        if languages < 2:
            raise UserError("system lample-conneau translates between languages, and the training captions are all in one")
        if model.text.trigram_buckets:
            raise UserError(
                "model.text.trigram_buckets has to be 0 for system lample-conneau: trigrams would tell it the words it is to guess"
            )
        self.model, self.objective, self.languages = model, objective, languages
        text = model.text.model_copy(update={"pooling": "mean"})
        self.text = TextEncoder(text)
        self.cloze_head = ClozeHead(text)
        self.decoder = TranslationDecoder(model.translator, text, languages)
        self.word_head = WordHead(text)

    def checkpoint_activations(self) -> None:
        """Let the networks recompute their activations in the backward pass: less memory, more time, the same gradients."""
        self.text.checkpoint_activations()
        self.decoder.checkpoint_activations()

    def forward(self, batch: Batch) -> dict[str, Tensor]:
        """This worker's part of what the losses need.

        Returns:
            `cloze_sum`, `denoising_sum`, `back_translation_sum`: each caption's cross-entropy summed over the tokens to be predicted;
            `cloze_count`, `denoising_count`, `back_translation_count`: how many those are. All float32 [n].
        """
        captions = batch.input_ids, batch.attention_mask
        noised = add_noise(*captions, self.model.translator)
        translated = self.translations(*captions, self.other_languages(batch.languages))
        groups = length_groups(batch.attention_mask.sum(dim=1) + translated[1].sum(dim=1))
        parts = [self._terms(batch, noised, translated, rows) for rows in groups]
        place = torch.cat(groups)[: len(batch.ids)].argsort()
        return {name: torch.cat([part[name] for part in parts])[: len(place)][place] for name in parts[0]}

    def _terms(self, batch: Batch, noised: tuple[Tensor, Tensor], translated: tuple[Tensor, Tensor], rows: Tensor) -> dict[str, Tensor]:
        """What :meth:`forward` returns, of some of its rows."""
        embeddings, count = self.text.word_embeddings, len(rows)
        mask, languages = batch.attention_mask[rows], batch.languages[rows]
        length = int(mask.sum(dim=1).max())
        ids, labels, mask = batch.input_ids[rows, :length], batch.labels[rows, :length], mask[:, :length]
        # One pass over all of them: several passes would need several sets of hooks in ZeRO 3.
        others = ((kind[0][rows], kind[1][rows]) for kind in (noised, translated))
        read, read_mask = stack_texts([(batch.masked_ids[rows, :length], mask), *(trimmed(*other) for other in others)])
        _, memory = self.text(read, read_mask)
        cloze_sums, cloze_counts = self.cloze_head(memory[:count, :length], labels, embeddings)
        ids, mask, languages = ids.repeat(2, 1), mask.repeat(2, 1), languages.repeat(2)
        states = self.decoder(ids[:, :-1], languages, memory[count:], read_mask[count:], embeddings)
        wanted = mask[:, 1:].bool()
        losses = self.word_head(states[wanted], embeddings, ids[:, 1:][wanted])
        sums = losses.new_zeros(len(ids)).index_add(0, wanted.nonzero()[:, 0], losses)
        counts = wanted.sum(dim=1).to(sums.dtype)
        found = zip(TERMS, (cloze_sums, *sums.split(count)), (cloze_counts, *counts.split(count)), strict=True)
        return {f"{term}_{kind}": value for term, *values in found for kind, value in zip(("sum", "count"), values, strict=True)}

    def other_languages(self, languages: Tensor) -> Tensor:
        """A language drawn for each of `languages`, int64 [n]: any but itself."""
        return (languages + torch.randint_like(languages, 1, self.languages)) % self.languages

    @torch.no_grad()
    def translations(self, input_ids: Tensor, attention_mask: Tensor, languages: Tensor) -> tuple[Tensor, Tensor]:
        """Greedy translations of captions into `languages`, int64 [n], without dropout: ids and mask, int64 [n, T]."""
        steps = min(self.model.translator.generated_tokens, self.model.text.max_tokens - 2)
        with evaluating(self):
            _, memory = self.text(input_ids, attention_mask)
            return translate(self.decoder, self.word_head, memory, attention_mask, languages, self.text.word_embeddings, steps)

    def losses(self, vectors: dict[str, Tensor]) -> dict[str, Tensor]:
        """The terms of the objective, each a mean over the predicted tokens of the global batch and not yet weighted."""
        return {term: cloze_loss(vectors[f"{term}_sum"], vectors[f"{term}_count"]) for term in TERMS}

    def total(self, terms: dict[str, Tensor]) -> Tensor:
        """The weighted sum of the terms."""
        return torch.stack([getattr(self.model.translator.weights, name) * term for name, term in terms.items()]).sum()

    def temperature_values(self, vectors: dict[str, Tensor]) -> dict[str, float]:
        """None: nothing is contrasted."""
        return {}

    @property
    def vector_size(self) -> int:
        """As :class:`raysys.systems.base.SentenceSystem` says."""
        return self.model.text.hidden_size

    @property
    def text_form(self) -> TextForm:
        """How captions become ids."""
        return self.model.text.form

    def sentence_vectors(self, input_ids: Tensor, attention_mask: Tensor, languages: Tensor) -> Tensor:
        """As :class:`raysys.systems.base.SentenceSystem` says."""
        return unit_vectors(self.text(input_ids, attention_mask, tokens=False)[0])

    def word_vectors(self, input_ids: Tensor, attention_mask: Tensor, languages: Tensor) -> Tensor:
        """As :class:`raysys.systems.base.SentenceSystem` says."""
        return mean_of_tokens(self.text.word_embeddings(input_ids).float(), attention_mask)


@contextlib.contextmanager
def evaluating(network: nn.Module) -> Iterator[None]:
    """Within it, no part of `network` is in training mode; after it, each is in the mode in which it was."""
    modes = {module: module.training for module in network.modules()}
    network.eval()
    try:
        yield
    finally:
        for module, mode in modes.items():
            module.training = mode
