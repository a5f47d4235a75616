"""Tales told by campaigns of the game Battle for Wesnoth: the story and what is said in every scenario, in translation."""

import gettext
import io
import re
from collections.abc import Iterator, Mapping

from raysys.shards.languages import normalise_language

from ..common.pieces import Passage

FOLDER = "usr/share/games/wesnoth/1.16"

_SPOKEN = re.compile(r'^[ \t]*(?:story|message)[ \t]*=[ \t]*_[ \t]*"((?:[^"]|"")*)"', re.MULTILINE)
"""An attribute of WML whose value is a translatable string; a quotation mark in it is doubled."""
_TAG = re.compile(r"<[^>]*>")
_SIDE_FOLDERS = {"units", "utils", "gui"}


def read_campaign(files: Mapping[str, bytes], language: str) -> Iterator[Passage]:
    """Paragraphs of all scenarios in their order, with a border after each scenario and where a text is not translated or has a gap
    (``$name``) that the game fills.

    Args:
        files: paths beneath `FOLDER` → scenarios (``.cfg``) and translations (``.mo``) of one campaign.
        language: BCP-47 tag.
    """
    translate = _translations(files, language)
    for path in sorted(files):
        if not path.endswith(".cfg") or path.endswith("_main.cfg") or _SIDE_FOLDERS.intersection(path.split("/")):
            continue
        yield Passage(0)
        for match in _SPOKEN.finditer(files[path].decode()):
            original = match[1].replace('""', '"')
            if original.startswith("female^"):  # the text before it, said of a woman
                continue
            text = translate.gettext(original) if translate else original.rpartition("^")[2]
            if "$" in text or (translate and text == original):
                yield Passage(0)
                continue
            yield from (Passage(0, shown) for line in text.split("\n") if (shown := " ".join(_TAG.sub("", line).split())))


def _translations(files: Mapping[str, bytes], language: str) -> gettext.NullTranslations | None:
    """What texts are called in `language`; None for English, in which they are written."""
    if language == "en":
        return None
    for path in files:
        locale = path.split("/")[1] if path.startswith("locale/") else "en"
        if path.endswith(".mo") and "@" not in locale and normalise_language(locale) == language:
            return gettext.GNUTranslations(io.BytesIO(files[path]))
    return gettext.NullTranslations()
