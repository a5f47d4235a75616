"""Languages as tokens: which token of a vocabulary names a language, and texts with it at their end."""

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tokenizers import Tokenizer

from raysys.data.encoding import TextForm, encode_texts
from raysys.errors import UserError
from raysys.shards.languages import normalise_language

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

_CODES = """
ar_AR cs_CZ de_DE en_XX es_XX et_EE fi_FI fr_XX gu_IN hi_IN it_IT ja_XX kk_KZ ko_KR lt_LT lv_LV my_MM ne_NP nl_XX ro_RO ru_RU si_LK tr_TR
vi_VN zh_CN af_ZA az_AZ bn_IN fa_IR he_IL hr_HR id_ID ka_GE km_KH mk_MK ml_IN mn_MN mr_IN pl_PL ps_AF pt_XX sv_SE sw_KE ta_IN te_IN th_TH
tl_XX uk_UA ur_PK xh_ZA gl_ES sl_SI
"""

MBART50_CODES: dict[str, str] = {
    normalise_language(code if code == "zh_CN" else code.partition("_")[0]): code  # of Chinese alone the region tells which is written
    for code in _CODES.split()
}
"""BCP-47 tag → token, of the 52 languages of mBART-50 (Tang et al. 2020, Multilingual Translation with Extensible Multilingual
Pretraining and Finetuning, Table 1)."""


def language_token(language: str) -> str:
    """The token that names `language` (BCP-47) in vocabularies trained here, such as ``<de>``."""
    return f"<{language}>"


def language_ids(tokenizer: "PreTrainedTokenizerFast", languages: Sequence[str]) -> dict[str, int]:
    """The id of each language's token in the tokenizer's vocabulary: mBART-50's code where it has it, else :func:`language_token`.

    A tag with a region (``pt-BR``) is served by the language's code (``pt_XX``) where it has no token of its own.

    Args:
        tokenizer: mBART-50's, cut down or whole, or one trained here.
        languages: BCP-47 tags.

    Returns:
        Tag, as it was given, → id.

    Raises:
        UserError: a language has no token; names it and lists those that have one.
    """
    vocabulary = tokenizer.get_vocab()
    found = {}
    for language in languages:
        tag = normalise_language(language)
        tokens = [token for name in (tag, tag.partition("-")[0]) for token in (MBART50_CODES.get(name, ""), language_token(name))]
        token = next((token for token in tokens if token in vocabulary), None)
        if token is None:
            known = ", ".join(_known_languages(tokenizer)) or "none"
            raise UserError(f"the tokenizer has no token for the language {language!r}; it has them for: {known}")
        found[language] = vocabulary[token]
    return found


def _known_languages(tokenizer: "PreTrainedTokenizerFast") -> list[str]:
    vocabulary = tokenizer.get_vocab()
    roles = {token for token in tokenizer.special_tokens_map.values() if isinstance(token, str)}
    ours = {str(token).strip("<>") for token in tokenizer.all_special_tokens if str(token).startswith("<") and token not in roles}
    return sorted(ours | {tag for tag, code in MBART50_CODES.items() if code in vocabulary})


def encode_with_language(
    core: Tokenizer, texts: Sequence[str], language_ids: Sequence[int], form: TextForm
) -> list[tuple[list[int], bool]]:
    """Of each of `texts`: its ids `[BOS] pieces [LAN]`, and whether pieces were cut off to make them fit.

    Args:
        core: of a tokenizer that puts ``<s>`` before a text and nothing behind it.
        texts: in any languages.
        language_ids: the language token of each text.
        form: `max_tokens` counts [BOS] and [LAN] too.

    Raises:
        EmptyTextError, ValueError: as :func:`raysys.data.encoding.encode_texts`.
    """
    rows = encode_texts(core, texts, dataclasses.replace(form, max_tokens=form.max_tokens - 1))
    return [([*ids, language], cut) for (ids, cut), language in zip(rows, language_ids, strict=True)]
