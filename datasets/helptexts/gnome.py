"""Paragraphs of GNOME's user and administration guides: pages of Mallard, translated sentence by sentence, never in their structure."""

import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterator, Mapping

from raysys.shards.languages import normalise_language

FOLDER = "usr/share/help"

_MALLARD = "{http://projectmallard.org/1.0/}"
_BLOCKS = frozenset(_MALLARD + name for name in ("p", "title", "subtitle", "desc"))
_APART = frozenset(name for local in ("comment", "credit", "media") for name in (_MALLARD + local, local))
"""Notes of writers, who wrote it, and what is said where a picture cannot be shown."""
_JOINED = {_MALLARD + "keyseq": "+", _MALLARD + "guiseq": " ▸ "}
"""Elements whose children are shown with a sign between them."""


def read_guides(files: Mapping[str, bytes], language: str) -> dict[tuple[str, str], str]:
    """(document, path of the paragraph in it) → text, in order of the documents; empty where a text has a gap that a title fills.

    Args:
        files: paths beneath `FOLDER` → pages (``.page``) of the guides; English ones lie in the folder ``C``.
        language: BCP-47 tag.
    """
    texts: dict[tuple[str, str], str] = {}
    for path in sorted(files):
        locale, _, page = path.partition("/")
        if ("en" if locale == "C" else normalise_language(locale)) == language:
            document = page.removesuffix(".page")
            texts |= {(document, place): text for place, text in _paragraphs(ET.fromstring(files[path]), "")}
    return texts


def same_pages(texts: Mapping[tuple[str, str], str], original: Mapping[tuple[str, str], str]) -> dict[tuple[str, str], str]:
    """`texts` without those of documents that do not have just the places that the original has: they are of another version."""
    differing = {document for document, _ in texts.keys() ^ original.keys()}
    return {place: text for place, text in texts.items() if place[0] not in differing}


def _paragraphs(element: ET.Element, path: str) -> Iterator[tuple[str, str]]:
    """(path, text) of the paragraphs and titles beneath an element; a step of a path is a tag and its number among its siblings."""
    seen: Counter[str] = Counter()
    for child in element:
        tag = child.tag
        if not isinstance(tag, str) or tag in _APART or tag.rpartition("}")[2] == "credit":
            continue
        seen[tag] += 1
        place = f"{path}{tag.rpartition('}')[2]}{seen[tag]}"
        if tag in _BLOCKS:
            yield place, "" if _has_gap(child) else _shown(child)
        else:
            yield from _paragraphs(child, place + "/")


def _has_gap(element: ET.Element) -> bool:
    """Whether there is a link that shows the title of the page it leads to."""
    return any(not "".join(link.itertext()).strip() for link in element.iter(_MALLARD + "link"))


def _shown(element: ET.Element) -> str:
    if element.tag in _JOINED:
        return _JOINED[element.tag].join(text for child in element if (text := _shown(child).strip()))
    parts = [element.text or ""]
    for child in element:
        if child.tag not in _APART and isinstance(child.tag, str):
            parts.append(_shown(child))
        parts.append(child.tail or "")
    return "".join(parts)
