"""transformers' mBART: with random weights, or pretrained and cut down to a part of its vocabulary; and what it writes."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
import torch.distributed as dist
from torch import Tensor

from raysys.errors import UserError

if TYPE_CHECKING:
    from transformers import MBartConfig, MBartForConditionalGeneration

    from raysys.models.visual_mbart import VisualMBartSettings

BOS_ID, PAD_ID, EOS_ID = 0, 1, 2
"""Of ``<s>``, ``<pad>`` and ``</s>`` in mBART's vocabularies and in those trained here."""


def random_mbart(settings: "VisualMBartSettings") -> "MBartForConditionalGeneration":
    """An mBART of the settings' sizes. Weights deviate by 0.02 at mBART's size, 1024, and in smaller networks by as much more as keeps
    the scale of products with them; positions begin as large as words are once they are scaled [ours]."""
    from transformers import MBartConfig, MBartForConditionalGeneration  # takes seconds, which those who only read settings need not wait

    config = MBartConfig(
        vocab_size=settings.vocabulary_size,
        d_model=settings.size,
        encoder_layers=settings.layers,
        decoder_layers=settings.decoder_layers,
        encoder_attention_heads=settings.heads,
        decoder_attention_heads=settings.heads,
        encoder_ffn_dim=settings.feed_forward,
        decoder_ffn_dim=settings.feed_forward,
        dropout=settings.dropout,
        max_position_embeddings=settings.max_tokens,
        scale_embedding=True,
        init_std=0.02 * (1024 / settings.size) ** 0.5,
        bos_token_id=BOS_ID,
        pad_token_id=PAD_ID,
        eos_token_id=EOS_ID,
        forced_eos_token_id=None,
    )
    network = MBartForConditionalGeneration(config)
    for half in (network.model.encoder, network.model.decoder):  # words are scaled by √size, positions are not
        torch.nn.init.normal_(half.embed_positions.weight, std=config.init_std * settings.size**0.5)
    return network


def pretrained_mbart(settings: "VisualMBartSettings", name: str) -> "MBartForConditionalGeneration":
    """The mBART in the folder or of the hub id `name`, in float32, with the settings' dropout.

    Raises:
        UserError: it cannot be had, is no mBART, or is of other sizes than the settings say.
    """
    from transformers import AutoConfig, GenerationConfig, MBartForConditionalGeneration
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()
    try:
        config = AutoConfig.from_pretrained(name)
        if config.model_type != "mbart":
            raise UserError(f"network.pretrained: {name} is of the kind {config.model_type!r}, not mbart")
        _check_sizes(settings, config, name)
        config.dropout = settings.dropout
        network = MBartForConditionalGeneration.from_pretrained(name, config=config, dtype=torch.float32)
    except (OSError, ValueError) as error:
        raise UserError(
            f"network.pretrained: {name} cannot be loaded as mBART: {str(error).splitlines()[0]}; give a folder that save_pretrained "
            "wrote, a hub id such as facebook/mbart-large-50 where the hub can be reached, or nothing for random weights"
        ) from None
    # How it generates is told at each call; what its makers preferred would be taken for what is not.
    network.generation_config = GenerationConfig.from_model_config(network.config)
    return network.train()


def _check_sizes(settings: "VisualMBartSettings", config: "MBartConfig", name: str) -> None:
    has = {
        "size": config.d_model,
        "layers": config.encoder_layers,
        "decoder_layers": config.decoder_layers,
        "heads": config.encoder_attention_heads,
        "feed_forward": config.encoder_ffn_dim,
    }
    wrong = [f"{key} {getattr(settings, key)} (it has {value})" for key, value in has.items() if getattr(settings, key) != value]
    if (config.bos_token_id, config.pad_token_id, config.eos_token_id) != (BOS_ID, PAD_ID, EOS_ID):
        raise UserError(f"network.pretrained: {name} has other ids for <s>, <pad> and </s> than mBART, {BOS_ID}, {PAD_ID} and {EOS_ID}")
    if settings.max_tokens > config.max_position_embeddings:
        wrong.append(f"max_tokens {settings.max_tokens} (it has {config.max_position_embeddings} positions)")
    if wrong:
        raise UserError(f"network.pretrained: {name} is of other sizes than the network's settings: {', '.join(wrong)}")


@torch.no_grad()
def cut_embedding(network: "MBartForConditionalGeneration", kept: Sequence[int]) -> None:
    """Leave the rows `kept`, increasing, of the embedding that encoder, decoder and word logits share; the rest of `network` stays.

    Raises:
        UserError: the network has not all of these rows, or ``<s>``, ``<pad>`` or ``</s>`` is not among them.
    """
    rows, embedding = torch.tensor(kept), network.model.shared
    if not len(rows) or int(rows[-1]) >= network.config.vocab_size:
        raise UserError(f"the kept pieces do not belong to this network, whose vocabulary has {network.config.vocab_size}")
    if rows[:3].tolist() != [BOS_ID, PAD_ID, EOS_ID]:
        raise UserError("the kept pieces lack <s>, <pad> or </s>, the first of mBART's vocabulary")
    assert (rows.diff() > 0).all(), "in increasing order, each once"
    table, bias = embedding.weight[rows].clone(), network.final_logits_bias[:, rows].clone()
    network.resize_token_embeddings(len(rows), mean_resizing=False)
    network.model.shared.weight.copy_(table)
    network.final_logits_bias.copy_(bias)
    # A language's token, which may have moved; texts begin with that of their own language.
    network.config.decoder_start_token_id = network.generation_config.decoder_start_token_id = None


@torch.no_grad()
def beam_search(
    network: "MBartForConditionalGeneration", states: Tensor, mask: Tensor, language_ids: Tensor, beams: int, max_tokens: int
) -> list[list[int]]:
    """The pieces that transformers' beam search finds for each row, without language token and ``</s>``; as many as there are positions
    at most.

    Args:
        states, mask: the encoder's, float [n, S, d] and int64 [n, S].
        language_ids: int64 [n], the token that the decoder begins with.
        beams: hypotheses kept; 1: greedy.
        max_tokens: most pieces.
    """
    from transformers import GenerationConfig
    from transformers.modeling_outputs import BaseModelOutput

    longest = min(max_tokens, network.config.max_position_embeddings - 1)
    partitioned = hasattr(network.lm_head.weight, "ds_id")
    found = network.generate(
        encoder_outputs=BaseModelOutput(last_hidden_state=states),
        attention_mask=mask,
        generation_config=GenerationConfig(
            num_beams=beams,
            max_new_tokens=longest + 1,  # </s> too
            do_sample=False,
            early_stopping=beams > 1,  # as mBART-50 translates
            pad_token_id=PAD_ID,
            eos_token_id=EOS_ID,
            # One for each row. Given as decoder_input_ids, they would get another start token before them.
            decoder_start_token_id=language_ids.tolist(),
        ),
        synced_gpus=partitioned and dist.is_initialized() and dist.get_world_size() > 1,
    )
    return [[piece for piece in row if piece not in (EOS_ID, PAD_ID)][:longest] for row in found[:, 1:].tolist()]
