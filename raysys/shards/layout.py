"""Where a sample's image, captions and languages lie, for tars of our own form and of other tools.

Examples, as settings: img2dataset and CC3M as open_clip reads them ``{caption_member: txt, language: en}``, or from their json
``{caption_field: caption, language: en}``; a field of tag → captions ``{caption_field: texts.by_language}``.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import pydantic

from raysys.settings import Settings
from raysys.shards.languages import normalise_language
from raysys.shards.sample import (
    ALIGNMENTS,
    IMAGE_EXTENSIONS,
    Captions,
    SampleError,
    UnknownLanguages,
    captions_by_language,
    decode_json,
    encoding_of,
    kind_of,
    parse_captions,
)

TEXT_FIELDS = ("texts", "sentences")
"""Fields of the json member of samples that hold text without an image."""


class Layout(Settings):
    """Where images, captions and languages lie in a sample; as it is, the project's own form (`captions` in ``.json``)."""

    image_member: str = ""
    """Extension of the member that holds the image (`img`, `input.jpg`); empty: the first with a known image extension."""
    caption_member: str = ""
    """Extension of the member whose whole text is the caption (`txt`, `caption`)."""
    caption_field: str = ""
    """Field of the .json member that holds the caption: a text, a list of texts, or an object of language → texts; `a.b` looks in `a`."""
    language_field: str = ""
    """Field of the .json member that names the language of the sample's captions."""
    language: str = ""
    """Language of all captions (BCP-47), or of those whose `language_field` is empty."""
    unknown_languages: UnknownLanguages = "raise"
    """What captions under a tag that names no language lead to: the sample is a faulty one (raise), or they are left out (drop)."""

    @pydantic.field_validator("image_member", "caption_member")
    @classmethod
    def _as_extension(cls, extension: str) -> str:
        return extension.strip().lstrip(".").lower()

    @pydantic.field_validator("language")
    @classmethod
    def _one_spelling(cls, language: str) -> str:
        return normalise_language(language) if language else ""

    @pydantic.model_validator(mode="after")
    def _consistent(self) -> "Layout":
        if self.caption_member and self.caption_field:
            raise ValueError("caption_member and caption_field exclude each other: the caption is a member of its own or a field of .json")
        if self.caption_member and not (self.language or self.language_field):
            raise ValueError("caption_member says nothing of the language: set language (such as en) or language_field too")
        if (self.language or self.language_field) and not (self.caption_member or self.caption_field):
            raise ValueError("language and language_field need caption_member or caption_field, which say where captions lie")
        return self

    @property
    def known_extensions(self) -> tuple[str, ...]:
        """Extensions that this layout names; they end the key of a sample, whatever dots they hold."""
        return tuple(extension for extension in (self.image_member, self.caption_member) if extension)

    @property
    def text_members(self) -> tuple[str, ...]:
        """Extensions of the members that :meth:`read` looks at."""
        return (self.caption_member, "json") if self.caption_member else ("json",)

    def image_extension(self, extensions: Iterable[str]) -> str | None:
        """The extension under which a sample's image lies; None in a text-only sample."""
        if self.image_member:
            return self.image_member if self.image_member in extensions else None
        return next((extension for extension in extensions if extension in IMAGE_EXTENSIONS), None)

    def read(self, members: Mapping[str, bytes], where: str = "") -> Captions:
        """The text of a sample.

        Args:
            members: extension in lower case → content.
            where: how errors call the sample (shard and key).

        Returns:
            Its captions, cleaned, with languages in BCP-47; none where it has nothing but an image in the project's own form, or
            holds `texts` or `sentences` instead (in `extra`).

        Raises:
            SampleError: a member or field is missing (cause `layout`) or cannot be read, or there is no caption (cause `text`).
        """
        if not (self.caption_member or self.caption_field):
            return self._own_form(members, where)
        fields = decode_json(members["json"], where) if "json" in members else {}
        member = self.caption_member or "json"
        value = _text_of(members, member, where) if self.caption_member else self._field_of(fields, members, where)
        if isinstance(value, dict):
            captions = captions_by_language(value, where, member, self.unknown_languages)
        else:
            captions = captions_by_language({self._language_of(fields, where): value}, where, member, self.unknown_languages)
        if not captions:
            raise SampleError(where, "it holds no caption", member, "text")
        alignment = fields.get("alignment")
        return Captions(captions, alignment if alignment in ALIGNMENTS else "strict", fields)

    def _own_form(self, members: Mapping[str, bytes], where: str) -> Captions:
        if "json" not in members:
            return Captions({}, "none", {})
        text = parse_captions(members["json"], where, self.unknown_languages)
        if not text.captions and not has_texts(text):
            named = b'"captions"' in members["json"]
            reason = "it holds no caption" if named else f"it holds no caption: there is no field 'captions' but {_names(text.extra)}"
            raise SampleError(where, reason, "json", "text" if named else "layout")
        return text

    def _field_of(self, fields: dict[str, Any], members: Mapping[str, bytes], where: str) -> Any:
        if "json" not in members:
            raise SampleError(where, f"it has no .json member but {_names(members, '.')}", "", "layout")
        value = _lookup(fields, self.caption_field)
        if value is None and self.caption_field.partition(".")[0] not in fields:
            reason = f"there is no field {self.caption_field!r} (data.layout.caption_field) but {_names(fields)}"
            raise SampleError(where, reason, "json", "layout")
        return value

    def _language_of(self, fields: dict[str, Any], where: str) -> str:
        """The tag that the sample's captions are under."""
        value = _lookup(fields, self.language_field) if self.language_field else None
        if value is not None and not isinstance(value, str):
            raise SampleError(where, f"its {self.language_field!r} is {kind_of(value)} where a language was expected", "json", "text")
        if value or self.language:
            return value or self.language
        if self.language_field:
            reason = f"its language is not named: field {self.language_field!r} (data.layout.language_field) is missing or empty"
        else:
            reason = "the language of its caption is not named: set data.layout.language or data.layout.language_field"
        raise SampleError(where, reason, "json" if self.language_field else "", "layout")

    def wanted(self) -> str:
        """What captions are looked for in, in words."""
        if self.caption_member:
            return f"a .{self.caption_member} member (data.layout.caption_member)"
        if self.caption_field:
            return f"the field {self.caption_field!r} of a .json member (data.layout.caption_field)"
        return 'a .json member with {"captions": {"<language>": ["…"]}}'


OWN_FORM = Layout()
"""The project's own form."""


def has_texts(text: Captions) -> bool:
    """Whether a sample holds text without an image, in `texts` or `sentences`."""
    return any(name in text.extra for name in TEXT_FIELDS)


def advice(members: Iterable[str], fields: Iterable[str]) -> str:
    """Which settings to try for samples of these members and json fields; empty where nothing looks like a caption."""
    hints = [f"data.layout.caption_member: {name}" for name in members if name in ("txt", "caption", "text")]
    hints += [f"data.layout.caption_field: {name}" for name in fields if any(part in name.lower() for part in ("caption", "text", "title"))]
    return f"; try {' or '.join(hints[:3])}, with data.layout.language" if hints else "; see data.layout.caption_member and caption_field"


def _text_of(members: Mapping[str, bytes], member: str, where: str) -> str:
    if member not in members:
        raise SampleError(where, f"it has no .{member} member (data.layout.caption_member) but {_names(members, '.')}", "", "layout")
    data = members[member]
    try:
        return data.decode(encoding_of(data))
    except UnicodeDecodeError as error:
        raise SampleError(where, f"it is not {error.encoding} text (byte {error.start})", member, "text") from None


def _lookup(fields: Any, path: str) -> Any:
    """The value of a field, whose name itself may hold dots, or None."""
    if not isinstance(fields, dict):
        return None
    if path in fields:
        return fields[path]
    head, dot, rest = path.partition(".")
    return _lookup(fields.get(head), rest) if dot else None


def _names(names: Iterable[str], prefix: str = "") -> str:
    return ", ".join(prefix + name for name in list(names)[:12]) or "nothing"
