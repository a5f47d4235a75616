"""WIT's three kinds of captions, and the languages that Wikimedia Commons marks inside its descriptions."""

import re
from collections.abc import Mapping, Sequence

from raysys.shards.sample import clean_caption

REFERENCE, ATTRIBUTION, ALT = "caption_reference_description", "caption_attribution_description", "caption_alt_text_description"

_AUTONYMS = """
af Afrikaans; ar العربية; ast Asturianu; az Azərbaycanca; be Беларуская; bg Български; bn বাংলা; br Brezhoneg; bs Bosanski; ca Català;
cs Čeština; cy Cymraeg; da Dansk; de Deutsch; el Ελληνικά; en English; eo Esperanto; es Español; et Eesti; eu Euskara; fa فارسی;
fi Suomi; fr Français; ga Gaeilge; gl Galego; he עברית; hi हिन्दी; hr Hrvatski; hu Magyar; hy Հայերեն; id Bahasa Indonesia; is Íslenska;
it Italiano; ja 日本語; ka ქართული; kk Қазақша; ko 한국어; la Latina; lb Lëtzebuergesch; lt Lietuvių; lv Latviešu; mk Македонски;
ms Bahasa Melayu; nb Norsk bokmål; nl Nederlands; nn Norsk nynorsk; pl Polski; pt Português; ro Română; ru Русский; sk Slovenčina;
sl Slovenščina; sq Shqip; sr Српски; sr-Latn Srpski; sv Svenska; th ไทย; tr Türkçe; uk Українська; ur اردو; vi Tiếng Việt; zh-Hans 中文
"""
_NAMES = {name: tag for tag, name in (entry.strip().split(" ", 1) for entry in _AUTONYMS.replace("\n", " ").split(";"))}
_MARK = re.compile(r"(?:^|(?<=\s))(" + "|".join(sorted(map(re.escape, _NAMES), key=len, reverse=True)) + r")\s?:\s")


def choose_caption(row: Mapping[str, str], language: str, columns: Sequence[str]) -> str:
    """The first of `columns` that says something in `language`; empty if none does.

    An alternative text or a reference is in the language of its page. A description from Commons (attribution) is taken where it
    is marked as being in that language, or has no mark at all and passed WIT's identification of languages.
    """
    for column in columns:
        text = row[column]
        if column == ATTRIBUTION:
            marked = divide_by_language(text)
            passes = row["attribution_passes_lang_id"].lower() == "true"
            text = marked.get(language, "") if marked else text if passes else ""
        if clean_caption(text):
            return " ".join(text.split())
    return ""


def divide_by_language(text: str) -> dict[str, str]:
    """Language → its piece of ``English: A house. Deutsch: Ein Haus.``; empty where no language is marked."""
    pieces = _MARK.split(text)
    return {_NAMES[name]: piece.strip() for name, piece in zip(pieces[1::2], pieces[2::2], strict=True)}
