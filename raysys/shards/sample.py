"""The sample contract: what one sample of a shard holds, and how its text is read.

A sample is a handful of members of a tar that share a key: an image in a common format and a ``.json`` of the form
``{"captions": {"de": ["…", "…"], "en": ["…"]}, "alignment": "strict" | "weak" | "none", …free fields…}``.
"""

import codecs
import json
import re
import unicodedata
from dataclasses import dataclass, field
from typing import Any, Literal

from raysys.errors import RunFailed
from raysys.shards.languages import normalise_language

IMAGE_EXTENSIONS = ("jpg", "jpeg", "png", "webp", "gif", "bmp", "tif", "tiff")
"""Extensions under which an image may lie; the format itself is recognised by content."""

MANIFEST_NAME = "manifest.parquet"
"""Name of the file beside the shards that lists their samples."""

ALIGNMENTS = ("strict", "weak", "none")
"""How closely the captions of one image agree: translations, descriptions of the same picture, or unrelated."""

UnknownLanguages = Literal["raise", "drop"]
"""What a tag that names no language leads to."""

# Marks that only order glyphs on a screen; the sentence is the same without them.
_BIDI_MARKS = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
# Invisible at either end of a sentence, meaningful inside (word boundaries in Thai or Khmer, joiners in Persian or Sinhala).
_INVISIBLE_ENDS = "\u200b\u200c\u2060\ufeff\u00ad\u180e"
_BYTES_AS_TEXT = re.compile(r"""b(['"]).*\1\s*""", re.DOTALL)
_SURROGATE = re.compile("[\ud800-\udfff]")


CAUSES = ("shard", "lost", "checksum", "duplicate", "layout", "json", "text", "image")
"""What faults are counted by.

`shard`: the archive is damaged, unfinished or has gone; `lost`: a sample that was listed is not found any more; `checksum`: bytes are
not those that were indexed; `duplicate`: a key or a member is there twice; `layout`: members or fields that were looked for are not
there; `json`: a json member that cannot be read; `text`: captions that are none; `image`: a picture that cannot be read.
"""


class SampleError(RunFailed):
    """One sample cannot be used.

    Attributes: `where` it lies (shard and key), `reason`, `member` (extension; empty where no single member is at fault), `cause` (one
    of :data:`CAUSES`).
    """

    def __init__(self, where: str, reason: str, member: str = "", cause: str = "text"):
        place = ", ".join(part for part in (where, member and f"member .{member}") if part)
        super().__init__(f"{place}: {reason}" if place else reason)
        self.where, self.reason, self.member, self.cause = where, reason, member, cause

    def __reduce__(self):
        return type(self), (self.where, self.reason, self.member, self.cause)


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
    extra: dict[str, bytes] = field(default_factory=dict)
    """Further members: extension (``rois.npz``) → content."""


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
    text = unicodedata.normalize("NFC", _BIDI_MARKS.sub("", text))
    while True:
        trimmed = " ".join(text.split()).strip(_INVISIBLE_ENDS)
        if trimmed == text:
            break
        text = trimmed
    return text if _shows(text) else ""


def _shows(text: str) -> bool:
    """Whether anything is to be seen: not control and format characters, spaces and marks alone."""
    for character in text:  # noqa: SIM110 - a third of the time of any(), and every caption of every batch comes by
        if unicodedata.category(character) not in _UNSEEN:
            return True
    return False


_UNSEEN = frozenset(("Cc", "Cf", "Mn", "Zs", "Zl", "Zp"))


def decode_json(data: bytes, where: str) -> dict[str, Any]:
    """A json object from UTF-8 or UTF-16/32 bytes, with or without a byte-order mark.

    Raises:
        SampleError: not text, not json, or not an object.
    """
    try:
        text = data.decode(encoding_of(data))
    except UnicodeDecodeError as error:
        raise SampleError(where, f"json is not {error.encoding} text (byte {error.start})", "json", "json") from None
    try:
        value = json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        reason = f"not valid json: {error}" if text.strip() else "the json member is empty"
        raise SampleError(where, reason, "json", "json") from None
    except ValueError as error:  # an integer too long to convert
        raise SampleError(where, f"not usable json: {error}", "json", "json") from None
    if not isinstance(value, dict):
        raise SampleError(where, f"json holds {kind_of(value)} where an object was expected", "json", "json")
    return value


def encoding_of(data: bytes) -> str:
    """How a text is encoded: UTF-8, UTF-16 or UTF-32."""
    if data.startswith(codecs.BOM_UTF8):
        return "utf-8-sig"
    return json.detect_encoding(data)  # looks at byte-order marks and at zeros in the first four bytes


def parse_captions(data: bytes, where: str = "", unknown_languages: UnknownLanguages = "raise") -> Captions:
    """Read the ``.json`` member of a sample.

    Args:
        data: bytes of the member.
        where: how errors call the sample (shard and key).
        unknown_languages: what a tag that names no language leads to: an error, or its captions are left out.

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
        reason = f"'captions' is {kind_of(stored)} where an object of language → list of captions was expected"
        raise SampleError(where, reason, "json", "layout")
    captions = captions_by_language(stored, where, "json", unknown_languages)
    alignment = value.pop("alignment", None) or "strict"
    if alignment not in ALIGNMENTS:
        raise SampleError(where, f"'alignment' is {alignment!r} where one of {', '.join(ALIGNMENTS)} was expected", "json", "text")
    return Captions(captions, alignment, value)


def captions_by_language(stored: dict[str, Any], where: str, member: str, unknown_languages: UnknownLanguages) -> dict[str, list[str]]:
    """Clean captions of an object of tag → text or list of texts; languages without captions are left out.

    Raises:
        SampleError: a tag that names no language (unless they are dropped), or a caption that is no text.
    """
    captions: dict[str, list[str]] = {}
    for tag, texts in stored.items():
        try:
            language = normalise_language(tag)
        except ValueError as error:
            if unknown_languages == "drop":
                continue
            raise SampleError(where, str(error), member, "text") from None
        if cleaned := _clean_all(texts, tag, where, member):
            captions.setdefault(language, []).extend(cleaned)
    return captions


def _clean_all(texts: Any, tag: str, where: str, member: str) -> list[str]:
    if texts is None:
        return []
    cleaned = []
    for text in [texts] if isinstance(texts, str) else texts if isinstance(texts, list) else [texts]:
        if not isinstance(text, str):
            raise SampleError(where, f"a caption in {tag!r} is {kind_of(text)} where text was expected", member, "text")
        if not text.isascii() and _SURROGATE.search(text):
            raise SampleError(where, f"a caption in {tag!r} holds half a surrogate pair, which is no character", member, "text")
        if _BYTES_AS_TEXT.fullmatch(text):
            raise SampleError(where, f"a caption in {tag!r} is Python's notation of bytes ({text[:20]}…), not text", member, "text")
        if text := clean_caption(text):
            cleaned.append(text)
    return cleaned


def kind_of(value: Any) -> str:
    """What a json value is, in words."""
    names = {dict: "an object", list: "a list", str: "text", bool: "true or false", int: "a number", float: "a number", type(None): "null"}
    return names.get(type(value), type(value).__name__)
