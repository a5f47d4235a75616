"""One byte-level BPE vocabulary for all languages, as a transformers tokenizer."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import torch
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from torch import Tensor

from raysys.data.encoding import TextForm, encode_texts, pad_rows, whole
from raysys.errors import UserError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

PAD, UNK, CLS, SEP, MASK = SPECIALS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
SMALLEST = len(SPECIALS) + 256

# soft hyphen, combining grapheme joiner, Arabic letter mark, zero-width and bidi marks, word joiners, variation selectors, BOM
INVISIBLE = r"[\x{AD}\x{34F}\x{61C}\x{180B}-\x{180E}\x{200B}-\x{200F}\x{202A}-\x{202E}\x{2060}-\x{206F}\x{FE00}-\x{FE0F}\x{FEFF}]"
# a vowel sign or accent stays with its letter: GPT-2's own pattern cuts the words of Indic scripts at every sign
WORDS = r" ?[\p{L}\p{M}]+| ?\p{N}{1,3}| ?[^\s\p{L}\p{M}\p{N}]+|\s+"


class Tokens(NamedTuple):
    """Texts as ids, padded to the longest of them."""

    input_ids: Tensor
    """int64 [n, L]"""
    attention_mask: Tensor
    """int64 [n, L]: 1 at tokens, 0 at padding"""
    truncated: int
    """How many texts were longer than allowed and lost their end"""


def train_tokenizer(captions: Iterable[str], vocab_size: int, max_tokens: int = 50) -> "PreTrainedTokenizerFast":
    """Learn a byte-level BPE from `captions`; the same captions in any order give the same tokenizer.

    Texts are compared as people see them: composed and decomposed letters, half-width kana and presentation forms (NFKC,
    whose result is NFC), invisible marks, and kinds and runs of spaces make no difference. Ids 0 to 4 are [PAD] [UNK]
    [CLS] [SEP] [MASK]; every byte has an id, so nothing is ever unknown. Few captions can give a smaller vocabulary.

    Args:
        captions: texts of all languages.
        vocab_size: most ids, 261 at least.
        max_tokens: longest text the tokenizer itself admits (`model_max_length`).

    Raises:
        UserError: no captions, or `vocab_size` too small.
    """
    if vocab_size < SMALLEST:
        raise UserError(f"a vocabulary of {vocab_size} is too small: {SMALLEST} ids are taken by bytes and special tokens")
    tokenizer = Tokenizer(models.BPE(unk_token=UNK))
    tokenizer.normalizer = normalizers.Sequence(
        [
            normalizers.Replace(Regex(INVISIBLE), ""),
            normalizers.NFKC(),
            normalizers.Replace(Regex(r"[\s\p{Cc}]+"), " "),
            normalizers.Strip(),
            # so that a word has the same pieces at the start of a caption and inside it
            normalizers.Prepend(" "),
        ]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(WORDS), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.Sequence([decoders.ByteLevel(), decoders.Strip(" ", 1, 0)])
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        min_frequency=2,
        special_tokens=list(SPECIALS),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    return learn(tokenizer, trainer, captions, max_tokens)


def learn(tokenizer: Tokenizer, trainer: trainers.Trainer, texts: Iterable[str], max_tokens: int) -> "PreTrainedTokenizerFast":
    """Train `tokenizer` on `texts`, to put [CLS] and [SEP] around them: as a transformers tokenizer.

    Args:
        tokenizer: not yet trained.
        trainer: for its kind of model; knows the special tokens.
        texts: of all languages.
        max_tokens: longest text the tokenizer itself admits (`model_max_length`).

    Raises:
        UserError: there are no texts.
    """
    seen = 0

    def counted() -> Iterable[str]:
        nonlocal seen
        for text in texts:
            seen += 1
            yield whole(text)

    tokenizer.train_from_iterator(counted(), trainer)
    if not seen:
        raise UserError("there are no captions to train a tokenizer on")
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{CLS} $A {SEP}",
        pair=f"{CLS} $A {SEP} $B {SEP}",
        special_tokens=[(token, tokenizer.token_to_id(token)) for token in (CLS, SEP)],
    )
    return fast_tokenizer(tokenizer, max_tokens)


def fast_tokenizer(tokenizer: Tokenizer, max_tokens: int) -> "PreTrainedTokenizerFast":
    """A trained `tokenizer` with our special tokens as transformers has it; `max_tokens` is its `model_max_length`."""
    from transformers import PreTrainedTokenizerFast

    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token=PAD,
        unk_token=UNK,
        cls_token=CLS,
        sep_token=SEP,
        mask_token=MASK,
        model_max_length=max_tokens,
        model_input_names=["input_ids", "attention_mask"],
        clean_up_tokenization_spaces=False,
    )


def load_tokenizer(folder: str | Path) -> "PreTrainedTokenizerFast":
    """The tokenizer that `tokenizer.save_pretrained(folder)` wrote. Raises UserError where there is none."""
    if not (Path(folder) / "tokenizer.json").is_file():
        raise UserError(f"there is no tokenizer in {folder}: tokenizer.json is missing")
    from transformers import AutoTokenizer, PreTrainedTokenizerFast

    tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    if not isinstance(tokenizer, PreTrainedTokenizerFast):
        raise UserError(f"the tokenizer in {folder} is no fast tokenizer: save it again with transformers' fast class")
    return tokenizer


def pretrained_tokenizer(name: str) -> "PreTrainedTokenizerFast":
    """The tokenizer of a pretrained network, by its folder or hub id. Raises UserError where it cannot be had."""
    from transformers import AutoTokenizer, PreTrainedTokenizerFast

    try:
        tokenizer = AutoTokenizer.from_pretrained(name)
    except (OSError, ValueError) as error:
        told = str(error).splitlines()[0]
        raise UserError(f"the tokenizer of {name} cannot be had: {told}; give a folder with tokenizer.json, or a hub id") from None
    if not isinstance(tokenizer, PreTrainedTokenizerFast):
        raise UserError(f"the tokenizer of {name} is no fast tokenizer: save it again with transformers' fast class")
    return tokenizer


def encode(tokenizer: "PreTrainedTokenizerFast", texts: Sequence[str], form: TextForm) -> Tokens:
    """Ids of `texts` as `form` has them, padded to the longest.

    Works with any fast tokenizer, and from several threads at once: the tokenizer's own state is never changed.

    Raises:
        EmptyTextError: a text has no visible character; names its index.
    """
    return padded(tokenizer, encode_texts(tokenizer.backend_tokenizer, texts, form))


def padded(tokenizer: "PreTrainedTokenizerFast", rows: Sequence[tuple[Sequence[int], bool]]) -> Tokens:
    """Rows of ids, each with whether it was cut, padded to the longest."""
    ids, mask = pad_rows([row for row, _ in rows], tokenizer.pad_token_id)
    return Tokens(torch.from_numpy(ids), torch.from_numpy(mask), sum(cut for _, cut in rows))
