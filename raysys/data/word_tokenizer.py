"""A vocabulary of whole words, as a transformers tokenizer: for networks that read and write sentences word by word."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, trainers

from raysys.data.tokenizer import INVISIBLE, SPECIALS, UNK, learn
from raysys.errors import UserError
from raysys.shards.sentences import UNPARTED

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

_LETTER = rf"[[\p{{L}}\p{{M}}]&&[^{UNPARTED}]]"
WORD = rf"[{UNPARTED}]\p{{M}}*|{_LETTER}+|\p{{N}}+|[^\s\p{{L}}\p{{M}}\p{{N}}\p{{C}}]"
"""A letter of an unparted script with its marks; a run of other letters and marks; a run of digits; any other single sign."""

SMALLEST = len(SPECIALS) + 1


def train_word_tokenizer(texts: Iterable[str], vocab_size: int, max_tokens: int) -> "PreTrainedTokenizerFast":
    """The most frequent words of `texts`; the same texts in any order give the same tokenizer.

    Words are runs of letters and marks, runs of digits, and other signs one by one (as `raysys.shards.sentences.count_words` counts
    them), in lower case; scripts without spaces between words (Chinese, Japanese, Thai …) are cut into letters. What looks the same is
    the same, as in :func:`raysys.data.tokenizer.train_tokenizer`. Ids 0 to 4 are [PAD] [UNK] [CLS] [SEP] [MASK], then words follow by
    frequency. Words that occur once are left out even where there is room: they are the [UNK] that training sees.

    Args:
        texts: of all languages.
        vocab_size: most ids, 6 at least.
        max_tokens: longest text the tokenizer itself admits (`model_max_length`), [CLS] and [SEP] included.

    Raises:
        UserError: no texts, no word that occurs twice, or `vocab_size` too small.
    """
    if vocab_size < SMALLEST:
        raise UserError(f"a vocabulary of {vocab_size} is too small: {len(SPECIALS)} ids are taken by special tokens")
    tokenizer = Tokenizer(models.WordLevel(unk_token=UNK))
    tokenizer.normalizer = normalizers.Sequence(
        # composed once more at the end: lower case can come apart into a letter and a mark
        [normalizers.Replace(Regex(INVISIBLE), ""), normalizers.NFKC(), normalizers.Lowercase(), normalizers.NFC()]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(WORD), behavior="removed", invert=True)
    trainer = trainers.WordLevelTrainer(vocab_size=vocab_size, min_frequency=2, special_tokens=list(SPECIALS), show_progress=False)
    learned = learn(tokenizer, trainer, texts, max_tokens)
    if len(learned) < SMALLEST:
        raise UserError("no word occurs twice in the texts: a vocabulary of words needs more text")
    return learned
