"""A sample's row in a manifest, gathered member by member."""

import itertools
from collections.abc import Iterable

import pyarrow as pa

from raysys.shards.layout import Layout, has_texts
from raysys.shards.pictures import explain_image_error, measure
from raysys.shards.reader import combined, digest
from raysys.shards.sample import Captions, SampleError, captions_by_language, decode_json
from raysys.shards.sentences import FIELD, count_words, read_sentences
from raysys.shards.tar import BLOCK, Member

_MEMBERS = pa.struct({"extension": pa.string(), "offset": pa.int64(), "size": pa.int64()})
SCHEMA = pa.schema(
    {
        "shard": pa.string(),
        "key": pa.string(),
        "offset": pa.int64(),
        "size": pa.int64(),
        "members": pa.list_(_MEMBERS),
        "languages": pa.list_(pa.string()),
        "captions": pa.list_(pa.int32()),
        "texts": pa.list_(pa.int32()),
        "sentences": pa.list_(pa.int16()),
        "alignment": pa.string(),
        "group": pa.string(),
        "image_format": pa.string(),
        "width": pa.int32(),
        "height": pa.int32(),
        "image_id": pa.int64(),
        "checksum": pa.int64(),
        "fault": pa.string(),
        "cause": pa.string(),
    }
)
"""Columns of a manifest; a row per sample.

`offset`, `size`: extent of the sample in its shard, headers and padding included. `members`: where each member's content
lies. `captions`: number of captions of each of `languages`. `texts`: number of texts of each of `languages`, where a sample has the field
`texts` (language → texts, such as parallel sentences) in place of captions. `sentences`: words
(:func:`raysys.shards.sentences.count_words`) of each sentence, where a sample has ordered sentences in place of captions; `languages` then
names their one language, with 0 captions.
`image_id`: :func:`raysys.shards.reader.digest` of the image's bytes, so that equal pictures are equal numbers; 0 without an image.
`checksum`: :func:`raysys.shards.reader.checksum_of` all members in stored order. `fault`: why the sample cannot be used, or null;
`cause`: one of :data:`raysys.shards.sample.CAUSES`, or null.
"""

_NO_TEXT = Captions({}, "none", {})


class Gathered:
    """What is known of one sample after some of its members."""

    __slots__ = (
        "checksums", "end", "extensions", "faults", "fields", "image", "key", "language", "offsets", "pending", "sizes", "start", "text",
        "texts", "words",
    )  # fmt: skip

    def __init__(self, key: str, start: int):
        self.key, self.start, self.end = key, start, 0
        self.extensions: list[str] = []
        self.offsets: list[int] = []
        self.sizes: list[int] = []
        self.checksums: list[int] = []
        self.pending: dict[str, bytes] = {}
        """Text members not read yet."""
        self.text: Captions | None = None
        self.fields: Iterable[str] = ()
        """Of the json member."""
        self.texts: dict[str, int] = {}
        """Language → texts, where it has them in place of captions."""
        self.language = ""
        """Of its ordered sentences; empty without them."""
        self.words: list[int] = []
        """Of each of its ordered sentences."""
        self.image: tuple[str | None, int, int, int] | None = None
        """Format, width, height, digest."""
        self.faults: list[tuple[int, str, str, str]] = []
        """(byte, member, reason, cause)"""

    def add(self, extension: str, member: Member, layout: Layout) -> None:
        """Take in one of its members."""
        checksum = digest(member.data)
        if extension in self.extensions:
            self.faults.append((member.offset, extension, "two members have this name", "duplicate"))
        elif extension in layout.text_members:
            self.pending[extension] = member.data
        elif self.image is None and layout.image_extension((extension,)):
            self._look_at(extension, member, checksum)
        self.extensions.append(extension)
        self.offsets.append(member.offset)
        self.sizes.append(member.size)
        self.checksums.append(checksum)
        self.end = member.offset + -(-member.size // BLOCK) * BLOCK

    def _look_at(self, extension: str, member: Member, checksum: int) -> None:
        self.image = (None, 0, 0, checksum)
        try:
            self.image = (*measure(member.data), checksum)
        except Exception as error:  # Pillow's format readers raise errors of any kind on damaged headers
            self.faults.append((member.offset, extension, explain_image_error(error, member.data), "image"))

    def read_text(self, layout: Layout, last: bool) -> None:
        """Read the text once its members are there; `last`: no more will come."""
        if self.text is not None or not (last or len(self.pending) == len(layout.text_members)):
            return
        self.text = _NO_TEXT
        pending, self.pending = self.pending, {}
        try:
            if pending or self.image:
                self.text = layout.read(dict.fromkeys(self.extensions, b"") | pending)
                self.fields = self.text.extra
                if FIELD in self.fields and not self.text.captions:
                    self.language, sentences = read_sentences(self.text.extra)
                    self.words = [count_words(sentence) for sentence in sentences]
                elif isinstance(stored := self.text.extra.get("texts"), dict) and not self.text.captions:
                    texts = captions_by_language(stored, "", "json", layout.unknown_languages)
                    self.texts = {language: len(found) for language, found in texts.items()}
            else:
                names = " + ".join("." + name for name in self.extensions)
                raise SampleError("", f"it holds neither an image nor a json member, but {names}", "", "layout")
        except SampleError as error:
            if error.cause == "layout" and "json" in pending:
                self.fields = decode_json(pending["json"], "")
            at = self.offsets[self.extensions.index(error.member)] if error.member in self.extensions else self.start
            self.faults.append((at, error.member, error.reason, error.cause))

    @property
    def has_text(self) -> bool:
        """Whether it has a caption, or `texts` or `sentences`."""
        return self.text is not None and (bool(self.text.captions) or has_texts(self.text))


def table_of(shard: str, samples: list[Gathered]) -> pa.Table:
    """Rows of a manifest."""
    counts = [len(sample.extensions) for sample in samples]
    flat = pa.StructArray.from_arrays(
        [
            pa.array([extension for sample in samples for extension in sample.extensions], pa.string()),
            pa.array([offset for sample in samples for offset in sample.offsets], pa.int64()),
            pa.array([size for sample in samples for size in sample.sizes], pa.int64()),
        ],
        fields=list(_MEMBERS),
    )
    texts = [sample.text or _NO_TEXT for sample in samples]
    languages = [
        [sample.language] if sample.language else list(sample.texts or text.captions) for sample, text in zip(samples, texts, strict=True)
    ]
    groups = [text.extra.get("group") for text in texts]
    images = [sample.image or (None, 0, 0, 0) for sample in samples]
    columns = {
        "shard": [shard] * len(samples),
        "key": [sample.key for sample in samples],
        "offset": [sample.start for sample in samples],
        "size": [sample.end - sample.start for sample in samples],
        "members": pa.ListArray.from_arrays(pa.array([0, *itertools.accumulate(counts)], pa.int32()), flat),
        "languages": languages,
        "captions": [[len(text.captions.get(tag, ())) for tag in tags] for tags, text in zip(languages, texts, strict=True)],
        "texts": [[sample.texts.get(tag, 0) for tag in tags] for tags, sample in zip(languages, samples, strict=True)],
        "sentences": [sample.words for sample in samples],
        "alignment": [text.alignment for text in texts],
        "group": [None if group is None else str(group) for group in groups],
        "image_format": [image[0] for image in images],
        "width": [image[1] for image in images],
        "height": [image[2] for image in images],
        "image_id": [image[3] for image in images],
        "checksum": [combined(sample.checksums) for sample in samples],
        "fault": ["; ".join(f".{fault[1]}: {fault[2]}" if fault[1] else fault[2] for fault in sample.faults) or None for sample in samples],
        "cause": [sample.faults[0][3] if sample.faults else None for sample in samples],
    }
    return pa.table([pa.array(columns[name], SCHEMA.field(name).type) for name in SCHEMA.names], schema=SCHEMA)
