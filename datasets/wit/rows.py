"""Rows of WIT's files: tab-separated values with quotes, over which fields may hold line ends, packed by gzip."""

import csv
import gzip
import io
import re
import sys
import zlib
from collections.abc import Iterator, Sequence
from typing import BinaryIO, NamedTuple, cast

from raysys.errors import UserError
from raysys.shards.languages import normalise_language
from raysys.storage import Storage

from ..common.lines import CutShort
from .captions import ALT, ATTRIBUTION, REFERENCE, choose_caption

COLUMNS = (
    "language", "page_url", "image_url", "page_title", "section_title", "hierarchical_section_title", REFERENCE, ATTRIBUTION, ALT,
    "mime_type", "original_height", "original_width", "is_main_image", "attribution_passes_lang_id", "page_changed_recently",
    "context_page_description", "context_section_description",
)  # fmt: skip

_PUBLISHED = """
af an ar arz ast az azb ba bar be be-tarask bg bn br bs ca ce ceb ckb cs cv cy da de el en eo es et eu fa fi fil fr fy ga gl hi hr hsb ht
hu hy ia id io is it iw ja jv ka kk kn ko la lah lb lmo lt lv mg mk ml mn mr ms my nan nds ne nl nn no nv oc pa pl pt qu ro ru sco si sk
sl sq sr sr-Latn sv sw ta te tg th tr tt uk ur uz vec vi vo war xmf yue zh zh-TW
"""
AVAILABLE = tuple(dict.fromkeys(normalise_language(tag) for tag in _PUBLISHED.split()))
"""The languages of WIT."""

_SURROGATE = re.compile("[\udc80-\udcff]")


class Row(NamedTuple):
    """One row; either `cause` says why it cannot be used, or the other fields are all there."""

    file: str
    """Its name."""
    number: int
    """1 for the first row after the header."""
    cause: str
    language: str = ""
    url: str = ""
    """Of the picture."""
    caption: str = ""
    page: str = ""
    """Address of the page."""

    @property
    def where(self) -> str:
        return f"{self.file} row {self.number}"


def check_header(uri: str) -> None:
    """Raise UserError unless the file begins with the names of all columns that are read."""
    with _open(uri) as file:
        _columns(uri, csv.reader(file, delimiter="\t"))


def read_rows(uri: str, languages: Sequence[str], caption_columns: Sequence[str]) -> Iterator[Row]:
    """All rows of a file, in order.

    Raises:
        CutShort: the compressed file is damaged from here on.
        UserError: it is missing, or has other columns.
    """
    csv.field_size_limit(min(sys.maxsize, 1 << 30))  # of the process; the usual limit is shorter than some contexts
    number = 0
    name = uri.rpartition("/")[2]
    wanted = frozenset(languages)
    with _open(uri) as file:
        reader = csv.reader(file, delimiter="\t")
        columns = _columns(uri, reader)
        while True:
            try:
                cells = next(reader)
            except StopIteration:
                return
            except csv.Error:
                cells = [""]
            except (EOFError, zlib.error, gzip.BadGzipFile) as error:
                raise CutShort(uri, number, str(error)) from None
            if not cells:  # an empty line
                continue
            number += 1
            if len(cells) != len(columns):
                yield Row(name, number, "row is malformed")
            else:
                yield _row(name, number, dict(zip(columns, cells, strict=True)), wanted, caption_columns)


def _row(file: str, number: int, row: dict[str, str], wanted: frozenset[str], caption_columns: Sequence[str]) -> Row:
    try:
        language = normalise_language(row["language"])
    except ValueError:
        language = ""
    if language not in AVAILABLE:
        return Row(file, number, "unknown language")
    if language not in wanted:
        return Row(file, number, "language not asked for")
    caption = choose_caption(row, language, caption_columns)
    if _SURROGATE.search(caption + row["image_url"]):
        return Row(file, number, "not UTF-8")
    if not caption:
        return Row(file, number, "no caption")
    return Row(file, number, "", language, row["image_url"].strip(), caption, row["page_url"].encode("utf-8", "replace").decode())


def _open(uri: str) -> io.TextIOWrapper:
    raw = Storage().open(uri)
    file = cast(BinaryIO, gzip.GzipFile(fileobj=raw)) if uri.endswith(".gz") else raw
    return io.TextIOWrapper(file, encoding="utf-8-sig", errors="surrogateescape", newline="")


def _columns(uri: str, reader: Iterator[list[str]]) -> list[str]:
    try:
        header = next(reader, [])
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise CutShort(uri, 0, str(error)) from None
    if missing := [name for name in COLUMNS if name not in header]:
        raise UserError(f"{uri} is no file of WIT: its first line lacks the column {missing[0]!r}; it has {', '.join(header[:20])[:300]!r}")
    return header
