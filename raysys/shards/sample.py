"""The sample contract: what one sample of a shard holds, and how its text is read.

A sample is a handful of members of a tar that share a key: an image in a common format and a ``.json`` of the form
``{"captions": {"de": ["…", "…"], "en": ["…"]}, "alignment": "strict" | "weak" | "none", …free fields…}``.
"""

import codecs
import json
import re
import unicodedata
from dataclasses import dataclass, field
from typing import Any

from raysys.errors import RunFailed
from raysys.shards.languages import normalise_language

IMAGE_EXTENSIONS = ("jpg", "jpeg", "png", "webp", "gif", "bmp", "tif", "tiff")
"""Extensions under which an image may lie; the format itself is recognised by content."""

MANIFEST_NAME = "manifest.parquet"
"""Name of the file beside the shards that lists their samples."""

ALIGNMENTS = ("strict", "weak", "none")
"""How closely the captions of one image agree: translations, descriptions of the same picture, or unrelated."""

# Marks that only order glyphs on a screen; the sentence is the same without them.
_BIDI_MARKS = dict.fromkeys([0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)])
# Invisible at either end of a sentence, meaningful inside (word boundaries in Thai or Khmer, joiners in Persian or Sinhala).
_INVISIBLE_ENDS = "\u200b\u200c\u2060\ufeff\u00ad\u180e"
_SURROGATE = re.compile("[\ud800-\udfff]")


class SampleError(RunFailed):
    """One sample cannot be used: says where it lies (`where`) and why (`reason`)."""

    def __init__(self, where: str, reason: str):
        super().__init__(f"{where}: {reason}" if where else reason)
        self.where = where
        self.reason = reason

    def __reduce__(self):
        return type(self), (self.where, self.reason)


@dataclass
class Sample:
    """One sample on its way into a shard."""

    split: str
    """Name of the split, which is the folder its shard lies in: `train`, `validation`, `test-seen`, `test-unseen`, `test`."""
    key: str
    """Unique in its split; no leading or trailing slash."""
    image: bytes | None
    """The encoded image as it is to be stored, or None for a text-only sample."""
    extension: str = "png"
    """Extension of the image member, without a dot."""
    metadata: dict[str, Any] = field(default_factory=dict)
    """What goes into the ``.json`` member: `captions`, `alignment`, `group` and free fields."""


@dataclass(frozen=True)
class Captions:
    """The text of one sample."""

    captions: dict[str, list[str]]
    """BCP-47 tag → captions, in stored order; cleaned by :func:`clean_caption`, none empty, no language without captions."""
    alignment: str
    """One of :data:`ALIGNMENTS`."""
    extra: dict[str, Any]
    """The free fields of the json, untouched."""


def clean_caption(text: str) -> str:
    """`text` in NFC, without bidi marks, white space of any kind collapsed to single spaces, invisible ends trimmed.

    Captions that look the same become equal; one that shows nothing becomes the empty string.
    """
    if text.isascii():
        return " ".join(text.split()) if _shows(text) else ""
    text = unicodedata.normalize("NFC", text.translate(_BIDI_MARKS))
    while True:
        trimmed = " ".join(text.split()).strip(_INVISIBLE_ENDS)
        if trimmed == text:
            break
        text = trimmed
    return text if _shows(text) else ""


def _shows(text: str) -> bool:
    """Whether anything is to be seen: not control and format characters, spaces and marks alone."""
    return any(unicodedata.category(character) not in _UNSEEN for character in text)


_UNSEEN = ("Cc", "Cf", "Mn", "Zs", "Zl", "Zp")


def decode_json(data: bytes, where: str) -> dict[str, Any]:
    """A json object from UTF-8 or UTF-16/32 bytes, with or without a byte-order mark.

    Raises:
        SampleError: not text, not json, or not an object.
    """
    try:
        text = data.decode(_encoding(data))
    except UnicodeDecodeError as error:
        raise SampleError(where, f"json is not {error.encoding} text (byte {error.start})") from None
    try:
        value = json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        raise SampleError(where, f"not valid json: {error}" if text.strip() else "the json member is empty") from None
    except ValueError as error:  # an integer too long to convert
        raise SampleError(where, f"not usable json: {error}") from None
    if not isinstance(value, dict):
        raise SampleError(where, f"json holds {_kind(value)} where an object was expected")
    return value


def _encoding(data: bytes) -> str:
    if data.startswith(codecs.BOM_UTF8):
        return "utf-8-sig"
    return json.detect_encoding(data)  # looks at byte-order marks and at zeros in the first four bytes


def parse_captions(data: bytes, where: str = "") -> Captions:
    """Read the ``.json`` member of a sample.

    Args:
        data: bytes of the member.
        where: how errors call the sample (shard and key).

    Returns:
        Captions with languages normalised to BCP-47. Languages whose tags become equal are merged; a single string counts
        as a list of one; captions that show nothing are dropped.

    Raises:
        SampleError: text that cannot be decoded, json of another form, a tag that names no language, an unknown alignment.
    """
    value = decode_json(data, where)
    stored = value.pop("captions", None)
    if stored is None:
        stored = {}
    if not isinstance(stored, dict):
        raise SampleError(where, f"'captions' is {_kind(stored)} where an object of language → list of captions was expected")
    captions: dict[str, list[str]] = {}
    for tag, texts in stored.items():
        language = _language(tag, where)
        cleaned = _clean_all(texts, tag, where)
        if cleaned:
            captions.setdefault(language, []).extend(cleaned)
    alignment = value.pop("alignment", None) or "strict"
    if alignment not in ALIGNMENTS:
        raise SampleError(where, f"'alignment' is {alignment!r} where one of {', '.join(ALIGNMENTS)} was expected")
    return Captions(captions, alignment, value)


def _language(tag: str, where: str) -> str:
    try:
        return normalise_language(tag)
    except ValueError as error:
        raise SampleError(where, str(error)) from None


def _clean_all(texts: Any, tag: str, where: str) -> list[str]:
    if texts is None:
        return []
    cleaned = []
    for text in [texts] if isinstance(texts, str) else texts if isinstance(texts, list) else [texts]:
        if not isinstance(text, str):
            raise SampleError(where, f"a caption in {tag!r} is {_kind(text)} where text was expected")
        if _SURROGATE.search(text):
            raise SampleError(where, f"a caption in {tag!r} holds half a surrogate pair, which is no character")
        if text := clean_caption(text):
            cleaned.append(text)
    return cleaned


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "text", bool: "true or false", int: "a number", float: "a number", type(None): "null"}
    return names.get(type(value), type(value).__name__)
