"""Translation without parallel text: noise for captions, a decoder that is told its language, and greedy translation."""

from typing import TYPE_CHECKING

import pydantic
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from raysys.data.tokenizer import CLS, MASK, PAD, SEP, SPECIALS
from raysys.models.recompute import recompute_in_backward
from raysys.models.text import TextModelSettings
from raysys.settings import Settings

if TYPE_CHECKING:
    from transformers import Cache

PAD_ID, CLS_ID, SEP_ID, MASK_ID = map(SPECIALS.index, (PAD, CLS, SEP, MASK))
FIRST_ORDINARY = len(SPECIALS)
"""Ids from this one on are word pieces, those below it are special tokens."""


class TranslatorWeights(Settings):
    """Weight of each loss."""

    cloze: pydantic.PositiveFloat = 1.0
    """Masked language modelling by the encoder."""
    denoising: pydantic.PositiveFloat = 1.0
    """Captions from their noised copies."""
    back_translation: pydantic.PositiveFloat = 1.0
    """Captions from their translations."""


class TranslatorSettings(Settings):
    """A decoder beside the text network, and how both are trained on captions alone (system lample-conneau)."""

    layers: pydantic.PositiveInt = 2
    """Layers of the decoder; its other sizes are those of the text network."""
    drop: float = pydantic.Field(0.1, ge=0.0, lt=1.0)
    """Share of word pieces that the noise leaves out."""
    blank: float = pydantic.Field(0.1, ge=0.0, lt=1.0)
    """Share of the word pieces left in for which the noise puts [MASK]."""
    shuffle_distance: pydantic.NonNegativeInt = 3
    """Most places by which the noise moves a word piece; 0 keeps their order."""
    generated_tokens: pydantic.PositiveInt = 12
    """Most word pieces of a back-translation; longer ones are cut."""
    weights: TranslatorWeights = TranslatorWeights()
    """Weight of each loss."""


def add_noise(input_ids: Tensor, attention_mask: Tensor, settings: TranslatorSettings) -> tuple[Tensor, Tensor]:
    """Captions with some word pieces left out, some blanked and all of them shuffled a little.

    The noise of Lample et al. 2018 (Unsupervised Machine Translation Using Monolingual Corpora Only, §2.3): each piece is left out
    with probability `drop` and blanked with `blank`, and pieces are sorted by i + U[0, k + 1), which moves none by more than k
    places. Special tokens stay as they are. Of a caption's pieces at least one is left.

    Random numbers come from torch's global generator of the device.

    Args:
        input_ids, attention_mask: captions, int64 [n, L].
        settings: shares and distance.

    Returns:
        Ids and mask, int64 [n, L'], with L' the length of the longest.
    """
    ordinary = (input_ids >= FIRST_ORDINARY) & attention_mask.bool()
    shift, chance, blank = torch.rand(3, *input_ids.shape, device=input_ids.device)

    # The places of word pieces in their order, and the pieces that come to stand there; behind both, all other places.
    places = torch.arange(input_ids.shape[1], device=input_ids.device).expand_as(input_ids).masked_fill(~ordinary, input_ids.shape[1])
    moved = (places + shift * (settings.shuffle_distance + 1)).masked_fill(~ordinary, torch.inf)
    sources = input_ids.gather(1, moved.argsort(dim=1, stable=True))
    shuffled = input_ids.scatter(1, places.argsort(dim=1, stable=True), sources)

    spared = F.one_hot(chance.masked_fill(~ordinary, -1).argmax(dim=1), input_ids.shape[1]).bool()
    dropped = ordinary & (chance < settings.drop) & ~spared
    noised = shuffled.masked_fill(ordinary & (blank < settings.blank), MASK_ID)
    return compressed(noised, attention_mask.bool() & ~dropped)


def compressed(ids: Tensor, wanted: Tensor) -> tuple[Tensor, Tensor]:
    """The `wanted` of each row of `ids`, both [n, L], moved together: ids and mask, int64 [n, L'], L' as in the longest row."""
    mask, order = wanted.long().sort(dim=1, descending=True, stable=True)
    return trimmed(ids.gather(1, order).masked_fill(mask == 0, PAD_ID), mask)


def trimmed(ids: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Ids and mask, int64 [n, L], without the columns that are padding in every row."""
    longest = int(mask.sum(dim=1).max())
    return ids[:, :longest], mask[:, :longest]


_GROUPS = 4


def length_groups(lengths: Tensor) -> list[Tensor]:
    """Rows, int64, in groups of like length: the shorter half, half of the others, and so on, since few texts are long.

    There are always as many groups, none of them empty, so that in ZeRO 3 all workers make the same calls. Where there are fewer rows
    than groups, some rows come again at the end.
    """
    order = lengths.argsort(stable=True)
    order = torch.cat([order, order[:1].expand(_GROUPS - len(order))]) if len(order) < _GROUPS else order
    groups = []
    for group in range(_GROUPS, 1, -1):
        size = min((len(order) + 1) // 2, len(order) - group + 1)
        groups.append(order[:size])
        order = order[size:]
    return [*groups, order]


class TranslationDecoder(nn.Module):
    """`transformers.BertModel` as a decoder over the text network's vectors, told by its first input what language to write.

    Its own embedding table holds the languages; words it reads by the text network's, which is passed at each call.

    Args:
        settings: of the decoder.
        text: of the text network.
        languages: how many there are.
    """

    def __init__(self, settings: TranslatorSettings, text: TextModelSettings, languages: int):
        from transformers import BertConfig, BertModel  # takes seconds, which those who only read settings need not wait

        super().__init__()
        config = BertConfig(
            vocab_size=languages,
            hidden_size=text.hidden_size,
            num_hidden_layers=settings.layers,
            num_attention_heads=text.heads,
            intermediate_size=text.intermediate_size,
            hidden_dropout_prob=text.dropout,
            attention_probs_dropout_prob=text.dropout,
            max_position_embeddings=text.max_tokens,
            type_vocab_size=1,
            pad_token_id=None,
            is_decoder=True,
            add_cross_attention=True,
            use_cache=False,
        )
        self.bert = BertModel(config, add_pooling_layer=False)

    def checkpoint_activations(self) -> None:
        """Recompute the layers' activations in the backward pass instead of keeping them."""
        recompute_in_backward(self.bert)

    def forward(
        self, tokens: Tensor, languages: Tensor, memory: Tensor, memory_mask: Tensor, embeddings: nn.Embedding, cache: "Cache | None" = None
    ) -> Tensor:
        """What is known at each token of the token that follows it: float [n, T, h].

        Args:
            tokens: int64 [n, T]. The first is not read, the vector of the language stands in its place.
            languages: int64 [n], in which to write.
            memory: the text network's token vectors of what is translated, float [n, L, h].
            memory_mask: [n, L], 1 at tokens and 0 at padding.
            embeddings: the text network's embedding table.
            cache: transformers' cache of the tokens before these. Where it holds some, `tokens` are those that follow, and all are read.
        """
        words = embeddings(tokens)
        if cache is None or not cache.get_seq_length():
            language = self.bert.embeddings.word_embeddings(languages)
            words = torch.cat([language[:, None], words[:, 1:]], dim=1)
        found = self.bert(
            inputs_embeds=words,
            # Padding follows the tokens, where causal attention does not look.
            encoder_hidden_states=memory.to(words.dtype),
            encoder_attention_mask=memory_mask,
            cache=cache,
            use_cache=cache is not None,
        )
        return found.last_hidden_state


class WordHead(nn.Module):
    """From the decoder's vectors to words, tied to the text network's embedding table as in :class:`raysys.models.heads.ClozeHead`."""

    def __init__(self, text: TextModelSettings):
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(text.vocabulary_size))

    def forward(self, states: Tensor, embeddings: nn.Embedding, labels: Tensor | None = None) -> Tensor:
        """Cross-entropy (nats) of `labels`, float32 [k], or without labels the logits of all words, float32 [k, vocabulary_size].

        Args:
            states: the decoder's, float [k, h].
            embeddings: the text network's embedding table [vocabulary_size, h].
            labels: int64 [k].
        """
        weight = embeddings.weight
        if labels is None:
            return _logits(states, weight, self.bias)
        # Logits of many words at once are the largest thing in memory by far: a part of them at a time, in the backward pass once more.
        rows = max(1, _LOGITS_AT_ONCE // len(self.bias))
        parts = zip(states.split(rows), labels.split(rows), strict=True)
        return torch.cat(
            [
                checkpoint(_cross_entropy, of_states, weight, self.bias, of_labels, use_reentrant=False, preserve_rng_state=False)
                for of_states, of_labels in parts
            ]
        )


_LOGITS_AT_ONCE = 2**24


def _logits(states: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return F.linear(states.to(weight.dtype), weight, bias).float()


def _cross_entropy(states: Tensor, weight: Tensor, bias: Tensor, labels: Tensor) -> Tensor:
    return F.cross_entropy(_logits(states, weight, bias), labels, reduction="none")


@torch.no_grad()
def translate(
    decoder: TranslationDecoder,
    head: WordHead,
    memory: Tensor,
    memory_mask: Tensor,
    languages: Tensor,
    embeddings: nn.Embedding,
    steps: int,
) -> tuple[Tensor, Tensor]:
    """Greedy translations, of one word piece at least and `steps` at most; no special token but [SEP] at the end.

    The networks are called `steps` times whatever their rows, since in ZeRO 3 a call is an affair of all workers; a row that has ended
    takes no part in what follows, so that the last calls are on few rows.

    Args:
        decoder, head: the networks, which should be in evaluation mode.
        memory, memory_mask: float [n, L, h] and [n, L], the text network's vectors of what is translated.
        languages: int64 [n], into which.
        embeddings: the text network's embedding table.
        steps: most word pieces.

    Returns:
        Ids as captions have them, from [CLS] to [SEP], and mask, int64 [n, T] with T the length of the longest.
    """
    from transformers import DynamicCache, EncoderDecoderCache

    ids = memory_mask.new_full((len(memory), steps + 2), PAD_ID, dtype=torch.int64)
    ids[:, 0] = CLS_ID
    never = torch.arange(FIRST_ORDINARY, device=memory.device)
    ended = torch.zeros(len(memory), dtype=torch.bool, device=memory.device)
    active = torch.arange(len(memory), device=memory.device)
    cache = EncoderDecoderCache(DynamicCache(), DynamicCache())
    for step in range(steps):
        states = decoder(ids[active, step : step + 1], languages[active], memory[active], memory_mask[active], embeddings, cache)
        logits = head(states[:, 0], embeddings).index_fill(1, never if step == 0 else never[never != SEP_ID], -torch.inf)
        chosen = logits.argmax(dim=1).masked_fill(ended[active], PAD_ID)
        ids[active, step + 1] = chosen
        ended[active] |= chosen == SEP_ID
        going = (~ended[active]).nonzero()[:, 0]
        going = going if len(going) else going.new_zeros(1)  # a row, though it has ended, for the calls that follow
        active = active[going]
        cache.batch_select_indices(going)
    ids[~ended, steps + 1] = SEP_ID
    return compressed(ids, ids != PAD_ID)
