"""RC³'s network: mBART's encoder–decoder, whose encoder reads pictures before the text (RC³ §2.2)."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pydantic
import torch
from torch import Tensor, nn

from raysys.data.encoding import TextForm
from raysys.errors import UserError
from raysys.models.mbart import EOS_ID, PAD_ID, beam_search, cut_embedding, pretrained_mbart, random_mbart
from raysys.models.recompute import recompute_in_backward
from raysys.models.visual import Visual, VisualInputs
from raysys.models.word_loss import word_losses
from raysys.settings import Settings, from_mapping

SETTINGS, WEIGHTS = "visual.json", "visual.safetensors"


class VisualMBartSettings(Settings):
    """mBART's sizes (those of mBART-50 by default) and what it sees of pictures."""

    pretrained: str | None = None
    """Folder or hub id of an mBART to begin with, such as facebook/mbart-large-50; none: random weights."""
    size: pydantic.PositiveInt = 1024
    """Size of all vectors; a multiple of `heads`."""
    layers: pydantic.PositiveInt = 12
    """Layers of the encoder."""
    decoder_layers: pydantic.PositiveInt = 12
    """Layers of the decoder."""
    heads: pydantic.PositiveInt = 16
    """Attention heads per layer."""
    feed_forward: pydantic.PositiveInt = 4096
    """Size of the feed-forward layers."""
    dropout: float = pydantic.Field(0.1, ge=0.0, lt=1.0)
    """Dropout of embeddings and layers."""
    vocabulary_size: pydantic.PositiveInt = 250_054
    """Most pieces of the run's vocabulary, where the tokenizer is trained."""
    cover: float = pydantic.Field(0.9999, gt=0.0, le=1.0)
    """Share of the training texts' pieces that the kept part of a pretrained vocabulary covers."""
    max_tokens: int = pydantic.Field(80, ge=3)
    """Longest text in pieces, [BOS] and [LAN] included; longer ones are cut."""
    region_size: pydantic.PositiveInt = 2048
    """Size of a region's features."""
    regions: pydantic.PositiveInt = 36
    """Most regions of a picture."""
    patch: pydantic.PositiveInt = 32
    """Height and width of a patch in pixels."""
    image_size: pydantic.PositiveInt = 224
    """Height and width of a picture in pixels; a multiple of `patch`."""

    @pydantic.model_validator(mode="after")
    def _consistent(self) -> "VisualMBartSettings":
        if self.size % self.heads:
            raise ValueError(f"size {self.size} is not a multiple of heads {self.heads}")
        if self.image_size % self.patch:
            raise ValueError(f"image_size {self.image_size} is not a multiple of patch {self.patch}")
        return self

    @property
    def form(self) -> TextForm:
        """How texts become ids for this network."""
        return TextForm(self.max_tokens)


@dataclass
class Encoded:
    """What the encoder knows of n rows."""

    states: Tensor
    """float [n, S, d]: at every place of the input"""
    mask: Tensor
    """int64 [n, S]: 1 where there is something, 0 at padding and absent visual inputs; 1 at the first place of a row of nothing else"""
    first: Tensor
    """float32 [n, d]: VtR, the state at [CLS]; without pictures TR, the state at [BOS]"""
    text_states: Tensor
    """float [n, L, d]: at the tokens of the text"""
    region_states: Tensor | None
    """float [n, R, d]: at the first picture's regions"""


class VisualMBart(nn.Module):
    """transformers' mBART, whose encoder reads `[CLS] picture [BOS] text [LAN]`, or the text alone.

    `self.mbart` is a plain `MBartForConditionalGeneration`. A text's tokens have mBART's positions 0, 1, … whether a picture stands
    before it or not, so that a text alone is encoded as by mBART. Visual inputs have no such positions, but join the words before mBART's
    normalisation of embeddings, which brings them to the scale that its layers know [ours].

    Random weights come from torch's global generator: seed it before building.

    Args:
        settings: of the network. With `pretrained`, the sizes have to be those of what is loaded.
        kept: ids of the pretrained vocabulary that stay, increasing; None: all.

    Raises:
        UserError: the pretrained network cannot be had, or is of other sizes than the settings say.
    """

    def __init__(self, settings: VisualMBartSettings, kept: Sequence[int] | None = None):
        super().__init__()
        self.mbart = random_mbart(settings) if settings.pretrained is None else pretrained_mbart(settings, settings.pretrained)
        if kept is not None:
            cut_embedding(self.mbart, kept)
        config = self.mbart.config
        self.settings = settings.model_copy(update={"vocabulary_size": config.vocab_size})
        s = settings
        self.visual = VisualInputs(s.size, s.region_size, s.patch, s.image_size, deviation=config.init_std * s.size**0.5)
        self.word_loss = TiedWordLoss()

    @property
    def size(self) -> int:
        """Size of all vectors."""
        return self.settings.size

    def checkpoint_activations(self) -> None:
        """Recompute the layers' activations in the backward pass instead of keeping them."""
        recompute_in_backward(self.mbart.model)

    def encode(self, ids: Tensor, mask: Tensor, images: Sequence[Visual] = ()) -> Encoded:
        """States of the encoder; what is masked has no influence on those of the rest.

        Args:
            ids: `[BOS] text [LAN]`, int64 [n, L]; L may be 0.
            mask: int64 [n, L], 1 at tokens and 0 at padding.
            images: none, one picture of each row, or two.

        Raises:
            ValueError: more tokens than there are positions, or pictures that the network does not read.
        """
        from transformers.masking_utils import create_bidirectional_mask

        self._check(ids)
        length, (ids, mask) = ids.shape[1], _widened(ids, mask, 1)
        encoder = self.mbart.model.encoder
        inputs = encoder.embed_tokens(ids) + encoder.embed_positions(ids)
        if images:
            seen, seen_mask = self.visual(images, torch.ones_like(mask[:, :1]))
            inputs, mask = torch.cat([seen.to(inputs.dtype), inputs], dim=1), torch.cat([seen_mask, mask], dim=1)
        mask = _opened(mask)
        states = nn.functional.dropout(encoder.layernorm_embedding(inputs), p=encoder.dropout, training=self.training)
        attention = create_bidirectional_mask(config=self.mbart.config, inputs_embeds=states, attention_mask=mask)
        for layer in encoder.layers:
            states = layer(states, attention)
        states = encoder.layer_norm(states)
        regions = images[0].regions.shape[1] if images and images[0].regions is not None else None
        return Encoded(
            states=states,
            mask=mask,
            first=states[:, 0].float(),
            text_states=states[:, states.shape[1] - ids.shape[1] :][:, :length],
            region_states=None if regions is None else states[:, 1 : 1 + regions],
        )

    def decode(self, encoded: Encoded, inputs: Tensor, mask: Tensor) -> Tensor:
        """What the decoder knows at each token of the one that follows it: float [n, T, d].

        Args:
            encoded: what it looks at.
            inputs: `[LAN of the target] y`, int64 [n, T].
            mask: int64 [n, T], 1 at tokens and 0 at padding, which follows them.
        """
        self._check(inputs)
        found = self.mbart.model.decoder(
            input_ids=inputs,
            attention_mask=_opened(mask.long()),
            encoder_hidden_states=encoded.states,
            encoder_attention_mask=encoded.mask,
            use_cache=False,
        )
        states: Tensor = found.last_hidden_state
        return states

    def word_logits(self, states: Tensor) -> Tensor:
        """Logits of all words, tied with the embedding: float32 [..., V], from states float [..., d] of encoder or decoder."""
        logits: Tensor = self.mbart.lm_head(states) + self.mbart.final_logits_bias[0]
        return logits.float()

    def word_nll(self, states: Tensor, words: Tensor) -> Tensor:
        """Negative log-likelihood (nats) of each word given its state, without the logits of all at once: float32 [k].

        Args:
            states: float [k, d], of encoder or decoder.
            words: int64 [k].
        """
        loss: Tensor = self.word_loss(self.mbart.lm_head, self.mbart.final_logits_bias[0], states, words)
        return loss

    def next_word_nll(self, encoded: Encoded, target_ids: Tensor, target_mask: Tensor, language_ids: Tensor) -> tuple[Tensor, Tensor]:
        """Negative log-likelihood (nats) of each row's target, and how many tokens it has: float32 [n], int64 [n].

        The decoder reads `[LAN] y` and predicts `y </s>`. A row whose mask is 0 everywhere gives 0 and 0.

        Args:
            encoded: what is translated.
            target_ids, target_mask: `[BOS] y [LAN]`, int64 [n, L]; padding follows the tokens.
            language_ids: int64 [n], the token of the language to write in.
        """
        target_ids, target_mask = _widened(target_ids, target_mask, 2)
        predicted = target_mask[:, 1:].bool()
        last = predicted & ~nn.functional.pad(predicted[:, 1:], (0, 1))
        words = target_ids[:, 1:].masked_fill(last, EOS_ID)
        inputs = torch.cat([language_ids[:, None], target_ids[:, 1:-1]], dim=1)
        losses = self.word_nll(self.decode(encoded, inputs, predicted)[predicted], words[predicted])
        tokens = predicted.sum(dim=1)
        rows = torch.arange(len(tokens), device=tokens.device).repeat_interleave(tokens)
        return losses.new_zeros(len(tokens)).index_add(0, rows, losses), tokens

    def generate(self, encoded: Encoded, language_ids: Tensor, beams: int, max_tokens: int) -> list[list[int]]:
        """The pieces of each row's text by transformers' beam search, without language token and `</s>`.

        Where weights are partitioned (ZeRO 3), all workers call it together, and take as many steps as the slowest of them.

        Args:
            encoded: what is translated. The network should be in evaluation mode.
            language_ids: int64 [n], the token of the language to write in.
            beams: hypotheses kept; 1: greedy.
            max_tokens: most pieces.
        """
        return beam_search(self.mbart, encoded.states, encoded.mask, language_ids, beams, max_tokens)

    def save_pretrained(self, folder: str | Path) -> None:
        """Write `folder`: an mBART that transformers loads alone, and beside it ``visual.json`` and ``visual.safetensors``."""
        from safetensors.torch import save_file
        from transformers.utils.logging import disable_progress_bar

        disable_progress_bar()
        folder = Path(folder)
        self.mbart.save_pretrained(folder)
        save_file({name: tensor.contiguous() for name, tensor in self.visual.state_dict().items()}, folder / WEIGHTS)
        settings = self.settings.model_copy(update={"pretrained": None})
        (folder / SETTINGS).write_text(settings.model_dump_json(indent=2) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, folder: str | Path) -> "VisualMBart":
        """The network that :meth:`save_pretrained` wrote, in float32.

        Raises:
            UserError: a file is missing, or does not fit the others.
        """
        from safetensors import SafetensorError
        from safetensors.torch import load_file

        folder = Path(folder)
        try:
            text = (folder / SETTINGS).read_text(encoding="utf-8")
            network = cls(from_mapping(VisualMBartSettings, {**json.loads(text), "pretrained": str(folder)}, str(folder / SETTINGS)))
            network.visual.load_state_dict(load_file(folder / WEIGHTS))
        except (OSError, ValueError, SafetensorError, RuntimeError) as error:
            raise UserError(f"the network in {folder} cannot be read: {error}") from None
        network.settings = network.settings.model_copy(update={"pretrained": None})
        return network

    def _check(self, ids: Tensor) -> None:
        positions = self.mbart.config.max_position_embeddings
        if ids.shape[1] > positions:
            raise ValueError(f"{ids.shape[1]} tokens in a row, but the network has {positions} positions (max_tokens)")


class TiedWordLoss(nn.Module):
    """Cross-entropy over a vocabulary whose matrix is that of another module; as a module, since engines that partition weights bring
    them together for the forward and backward pass of the module that reads them."""

    def forward(self, head: nn.Linear, bias: Tensor, states: Tensor, words: Tensor) -> Tensor:
        """Negative log-likelihoods float32 [k] of `words` int64 [k], given states float [k, d]."""
        return word_losses(states, head.weight, bias, words)


def _widened(ids: Tensor, mask: Tensor, width: int) -> tuple[Tensor, Tensor]:
    """Ids and mask, int64 [n, L], with padding at the end where L is less than `width`."""
    missing = (0, max(0, width - ids.shape[1]))
    return nn.functional.pad(ids, missing, value=PAD_ID), nn.functional.pad(mask.long(), missing)


def _opened(mask: Tensor) -> Tensor:
    """`mask`, int64 [n, S], with the first place open in rows where none is: attention to nothing has no value and no gradient."""
    nothing = mask.amax(dim=1, keepdim=True) == 0
    return torch.cat([mask[:, :1] | nothing.long(), mask[:, 1:]], dim=1)
