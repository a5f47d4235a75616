"""A vocabulary for networks such as mBART: ``<s> <pad> </s> <unk>``, word pieces, a token for each language, ``<mask>``."""

import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from tokenizers import AddedToken, Tokenizer, processors

from raysys.data.language_codes import language_token
from raysys.data.tokenizer import SMALLEST, SPECIALS, train_tokenizer
from raysys.errors import UserError
from raysys.shards.languages import normalise_language

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

BOS, PAD, EOS, UNK = FIRST = ("<s>", "<pad>", "</s>", "<unk>")
"""The first ids, in mBART's order."""
MASK = "<mask>"


def train_multilingual_tokenizer(
    texts: Iterable[str], languages: Sequence[str], vocabulary_size: int, max_tokens: int
) -> "PreTrainedTokenizerFast":
    """Learn a byte-level BPE from `texts`, which are read as by :func:`raysys.data.tokenizer.train_tokenizer`.

    The same texts in any order give the same tokenizer, and nothing is ever unknown. It puts ``<s>`` before a text and nothing behind it:
    the language's token follows for each text by itself (:func:`raysys.data.language_codes.encode_with_language`).

    Args:
        texts: of all languages.
        languages: BCP-47 tags, each of which gets the token :func:`raysys.data.language_codes.language_token`.
        vocabulary_size: most ids. Few texts can give a smaller vocabulary.
        max_tokens: longest text the tokenizer itself admits (`model_max_length`).

    Raises:
        UserError: no texts, no languages, or `vocabulary_size` too small.
    """
    tokens = [language_token(tag) for tag in dict.fromkeys(map(normalise_language, languages))]
    if not tokens:
        raise UserError("there are no languages to give tokens to")
    special = [*FIRST, *tokens, MASK]
    room = vocabulary_size - len(special) + len(SPECIALS)
    if room < SMALLEST:
        smallest = SMALLEST - len(SPECIALS) + len(special)
        raise UserError(f"a vocabulary of {vocabulary_size} is too small: {smallest} ids are taken by bytes, languages and special tokens")
    state = json.loads(train_tokenizer(texts, room, max_tokens).backend_tokenizer.to_str())
    pieces = sorted(state["model"]["vocab"], key=state["model"]["vocab"].get)[len(SPECIALS) :]
    state["model"] |= {"vocab": {piece: number for number, piece in enumerate([*FIRST, *pieces])}, "unk_token": UNK}
    state |= {"added_tokens": [], "post_processor": None}
    core = Tokenizer.from_str(json.dumps(state))
    core.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in special])
    return multilingual_tokenizer(core, max_tokens)


def multilingual_tokenizer(core: Tokenizer, max_tokens: int) -> "PreTrainedTokenizerFast":
    """`core` as transformers has it, to put ``<s>`` before a text; `max_tokens` is its `model_max_length`.

    Its special tokens are those of :data:`FIRST`, :data:`MASK` and, as additional ones, all others that `core` has for special.
    """
    from transformers import PreTrainedTokenizerFast

    core.post_processor = processors.TemplateProcessing(
        single=f"{BOS} $A", pair=f"{BOS} $A $B", special_tokens=[(BOS, core.token_to_id(BOS))]
    )
    added = {token.content: token for _, token in sorted(core.get_added_tokens_decoder().items())}
    others = [token for token in added.values() if token.special and token.content not in (*FIRST, MASK)]
    return PreTrainedTokenizerFast(
        tokenizer_object=core,
        bos_token=BOS,
        cls_token=BOS,
        pad_token=PAD,
        eos_token=EOS,
        sep_token=EOS,
        unk_token=UNK,
        mask_token=added[MASK],  # mBART's takes the space before it
        additional_special_tokens=others,
        model_max_length=max_tokens,
        model_input_names=["input_ids", "attention_mask"],
        clean_up_tokenization_spaces=False,
    )
